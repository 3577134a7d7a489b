"""A regular expression that is a row of literals and named groups, taken apart.

Purpose: patterns that say where a region begins are nearly always a few literals with a group or two; as
literals they have a grammar and are read in linear time.
Invariant: the spellings together are the pattern, but that whitespace of any length is one line feed (inside)
or nothing (at the beginning), which the readers of layouts take as any whitespace, and that what a look-ahead
asks for is not asked.
Complexity: linear in the pattern, times the number of spellings.
Source: Python's `re` parses the pattern.
Rejected: patterns with free text outside of groups (they have no layout).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import Any, Union

try:
    from re import _parser as sre  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_parse as sre


@dataclass(frozen=True)
class Group:
    """A named group and its pattern."""

    name: str
    pattern: str


Piece = Union[str, Group]  # noqa: UP007


def spellings(pattern: str, most: int) -> list[list[Piece]] | None:
    """The rows that the pattern may be, the longest first; None where it is something else.

    Raises nothing: a pattern that Python can't read is something else, too.
    """
    try:
        parsed = sre.parse(pattern, re.DOTALL)
    except (re.error, OverflowError, RecursionError):
        return None
    names = {number: name for name, number in parsed.state.groupdict.items()}
    rows = _rows(parsed, names, pattern, most)
    if rows is None:
        return None
    joined = [_joined(row) for row in rows]
    return sorted((row for row in joined if row), key=lambda row: -sum(len(str(p)) for p in row)) or None


def _rows(parsed: Any, names: dict[int, str], pattern: str, most: int) -> list[list[Piece]] | None:
    rows: list[list[Piece]] = [[]]
    for op, value in parsed:
        found = _piece(str(op), value, names, pattern, most)
        if found is None:
            return None
        rows = [[*row, *more] for row, more in product(rows, found)]
        if len(rows) > most:
            return None
    return rows


def _piece(op: str, value: Any, names: dict[int, str], pattern: str, most: int) -> list[list[Piece]] | None:
    """The spellings of one item of a parsed pattern."""
    if op == "LITERAL":
        return [[chr(value)]]
    if op in ("AT", "ASSERT"):
        return [[]]
    if op == "IN" and _blank(value):
        return [["\n"]]
    if op in ("MAX_REPEAT", "MIN_REPEAT"):
        least, more, inner = value
        if [(str(o), v) for o, v in inner] and str(inner[0][0]) == "IN" and _blank(inner[0][1]):
            return [["\n"]]
        if (least, more) != (0, 1):
            return None
        rows = _rows(inner, names, pattern, most)
        return None if rows is None else [*rows, []]
    if op == "SUBPATTERN":
        number, _, _, inner = value
        if number in names:
            return [[Group(names[number], _text_of(pattern, names[number]))]]
        return _rows(inner, names, pattern, most)
    if op == "BRANCH":
        found: list[list[Piece]] = []
        for branch in value[1]:
            rows = _rows(branch, names, pattern, most)
            if rows is None:
                return None
            found += rows
        return found
    return None


def _blank(items: Any) -> bool:
    """Whether a class is whitespace alone."""
    return all(
        (str(op) == "CATEGORY" and str(value) == "CATEGORY_SPACE")
        or (str(op) == "LITERAL" and chr(value) in " \t\r\n")
        for op, value in items
    )


def _text_of(pattern: str, name: str) -> str:
    """What stands inside a named group."""
    start = pattern.index(f"(?P<{name}>") + len(name) + 5
    depth, at, inside = 1, start, False
    while depth:
        character = pattern[at]
        if character == "\\":
            at += 1
        elif inside:
            inside = character != "]"
        elif character == "[":
            inside = True
        else:
            depth += (character == "(") - (character == ")")
        at += 1
    return pattern[start : at - 1]


def _joined(row: list[Piece]) -> list[Piece]:
    """The row with neighbouring texts joined, without whitespace at its beginning."""
    out: list[Piece] = []
    for piece in row:
        if isinstance(piece, str) and out and isinstance(out[-1], str):
            out[-1] += piece
        elif piece:
            out.append(piece)
    if out and isinstance(out[0], str):
        out[0] = out[0].lstrip()
    return [piece for piece in out if piece]


def around(pattern: str, name: str | None) -> tuple[str, str] | None:
    """The literals right before and right after a group, without whitespace; None: there is no such group.

    name: of the group; None: the first.  Of alternatives beside it the first counts, what is free does not.
    """
    try:
        parsed = sre.parse(pattern, re.DOTALL)
    except (re.error, OverflowError, RecursionError):
        return None
    number = 1 if name is None else parsed.state.groupdict.get(name)
    if number is None or number >= parsed.state.groups:
        return None
    waiting: list[Any] = [list(parsed)]
    while waiting:
        items = waiting.pop()
        for index, (op, value) in enumerate(items):
            if str(op) == "SUBPATTERN" and value[0] == number:
                return _run(items[:index][::-1])[::-1], _run(items[index + 1 :])
            inner = {"SUBPATTERN": 3, "MAX_REPEAT": 2, "MIN_REPEAT": 2, "ASSERT": 1}.get(str(op))
            waiting += [list(value[inner])] if inner else map(list, value[1]) if str(op) == "BRANCH" else []
    return None


def _run(items: list[Any]) -> str:
    """The literals that the items begin with."""
    text = ""
    for op, value in items:
        if str(op) == "LITERAL":
            text += chr(value)
        elif str(op) == "SUBPATTERN" and value[0] is None:
            return text + _run(list(value[3]))
        elif str(op) == "BRANCH":
            return text + _run(list(value[1][0]))
        elif not (str(op) == "AT" or _skipped(str(op), value)):
            break
    return "".join(text.split())


def _skipped(op: str, value: Any) -> bool:
    """Whether the item is whitespace, of any length."""
    if op in ("MAX_REPEAT", "MIN_REPEAT") and len(value[2]) == 1:
        op, value = str(value[2][0][0]), value[2][0][1]
        return (op == "LITERAL" and chr(value).isspace()) or (op == "IN" and _blank(value))
    return op == "IN" and _blank(value)
