"""Judging a text against a right answer, field by field.

Purpose: one rule of what "right" means for all families whose answer is a document.
Invariant: the text is read as leniently as a program could (a document alone, in prose, or in a code
block), and no engine is read differently; what cannot be read has no right field.
The rule: a *field* is a leaf of the right document, found by its path. Numbers are compared by value (8 =
8.0; a boolean is no number, and "8" is none). Strings are compared without regard to case, after NFC, with
runs of white space as one space, and without surrounding space and a final full stop. `true`, `false`,
`null` and empty containers are compared exactly. The elements of an array count in their order. A document
is *all right* where every field is right and it has no key and no element that the right one lacks.
Rejected: partial credit inside a string (a name with one wrong letter is a wrong name).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Marks:
    """What a judge found.

    Attributes:
        right: all of the answer is right.
        fields_right, fields: of the answer's fields, how many are.
    """

    right: bool
    fields_right: int
    fields: int


def documents(text: str) -> Iterator[tuple[Any, str]]:
    """(value, its text) of the JSON documents in a text: itself, else the objects and arrays within it."""
    try:
        yield json.loads(text), text
        return
    except (ValueError, RecursionError):
        pass
    decoder, at = json.JSONDecoder(), 0
    while (match := re.compile(r"[\[{]").search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, match.start())
            yield value, text[match.start() : at]
        except (ValueError, RecursionError):
            at = match.end()


def first_object(text: str) -> tuple[dict[str, Any] | None, str]:
    """(the first object among a text's documents, its text); (None, the text) without one."""
    return next(((value, part) for value, part in documents(text) if isinstance(value, dict)), (None, text))


def same(want: Any, given: Any) -> bool:
    """Whether a leaf is right."""
    if isinstance(want, str) and isinstance(given, str):
        return _plain(want) == _plain(given)
    if isinstance(want, bool) or isinstance(given, bool) or want is None or given is None:
        return want is given
    return bool(want == given)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split()).removesuffix(".").rstrip().casefold()


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """(path, value) of the scalars and the empty containers in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    parts = list(inner)
    if not parts:
        yield path, value
    for key, part in parts:
        yield from leaves(part, (*path, key))


def mark_document(answer: Any, given: Any) -> Marks:
    """Compare a document with the right one."""
    wanted, found = dict(leaves(answer)), dict(leaves(given))
    right = sum(path in found and same(value, found[path]) for path, value in wanted.items())
    return Marks(right == len(wanted) and found.keys() <= wanted.keys(), right, len(wanted))


def mark_text(answer: Any, text: str) -> Marks:
    """Judge a text by an answer: a document, or the value of the document's field `answer`; the latter is
    looked for in free text too, as its last number or words."""
    if isinstance(answer, dict | list):
        kind = type(answer)
        found = next((value for value, _ in documents(text) if isinstance(value, kind)), None)
        return Marks(False, 0, len(list(leaves(answer)))) if found is None else mark_document(answer, found)
    held = [value for value, _ in documents(text) if isinstance(value, dict) and "answer" in value]
    right = same(answer, held[0]["answer"]) if held else _ends_with(answer, text)
    return Marks(right, int(right), 1)


def _ends_with(answer: Any, text: str) -> bool:
    """Whether a free text's last number, or its last words, are the answer."""
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        numbers = re.findall(r"-?\d+(?:\.\d+)?", re.sub(r"(?<=\d),(?=\d{3})", "", text))
        return bool(numbers) and float(numbers[-1]) == answer
    tail, words = re.findall(r"[^\s.,:;!?\"'{}]+", text), str(answer).split()
    return bool(tail) and " ".join(tail[-len(words) :]).casefold() == " ".join(words).casefold()
