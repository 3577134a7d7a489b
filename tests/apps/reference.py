"""A slow reader of cut documents: a recursive descent over the characters, from the start for every cut."""

from __future__ import annotations

import json
import re
from typing import Any

NOTHING = object()
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")

PIECE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\[^u]|[^\\]", re.DOTALL)
HIGH = re.compile(r"\\u[dD][89abAB]..")


def read(text: str) -> Any:
    """The value of the beginning of a document; NOTHING where none is known."""
    return _value(text, 0)[0]


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _value(text: str, at: int) -> tuple[Any, int, bool]:
    """(value, where it ends, whether it is complete)."""
    at = _blank(text, at)
    if at == len(text):
        return NOTHING, at, False
    if text[at] == "{":
        return _container(text, at + 1, {}, "}")
    if text[at] == "[":
        return _container(text, at + 1, [], "]")
    if text[at] == '"':
        return _string(text, at)
    for word, value in (("true", True), ("false", False), ("null", None)):
        if text.startswith(word, at):
            return value, at + len(word), True
        if word.startswith(text[at:]):
            return NOTHING, len(text), False
    found = NUMBER.match(text, at)
    end = at
    while end < len(text) and text[end] in "+-.eE0123456789":
        end += 1
    if end == len(text):  # it may go on
        return NOTHING, end, False
    assert found is not None and found.end() == end
    return json.loads(text[at:end]), end, True


def _container(text: str, at: int, made: Any, last: str) -> tuple[Any, int, bool]:
    while True:
        at = _blank(text, at)
        if at == len(text):
            return made, at, False
        if text[at] == last:
            return made, at + 1, True
        if text[at] == ",":
            at = _blank(text, at + 1)
            if at == len(text):
                return made, at, False
        key: Any = None
        if last == "}":
            key, at, whole = _string(text, at)
            at = _blank(text, at)
            if not whole or at == len(text):
                return made, at, False
            assert text[at] == ":"
            at += 1
        value, at, whole = _value(text, at)
        if value is not NOTHING:
            if last == "}":
                made[key] = value
            else:
                made.append(value)
        if not whole:
            return made, at, False


def _string(text: str, at: int) -> tuple[str, int, bool]:
    end = at + 1
    while end < len(text) and text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    if end < len(text):
        return json.loads(text[at : end + 1]), end + 1, True
    body = text[at + 1 :]
    kept, last = "", ""
    while found := PIECE.match(body, len(kept)):
        last = found[0]
        kept += last
    if HIGH.fullmatch(last):
        kept = kept[: -len(last)]  # the second half may come
    return json.loads(f'"{kept}"'), len(text), False
