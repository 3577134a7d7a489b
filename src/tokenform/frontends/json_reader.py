"""A JSON text read as it is written: the value so far after every piece, in one pass.

Purpose: partial objects of a stream, checks of a field as soon as it is written, and where in the text each
value stands. A shape (`value_shapes`) says what becomes of the values; without one they are what
`json.loads` gives.
Invariant: after any beginning of a document `value()` is that of the document with what is not known yet left
out: numbers, names and constants that may go on, halves of escapes and of surrogate pairs.  A value that is
complete is never touched again, so that earlier values stay as they were.
Complexity: linear in the text; `value()` copies the containers that are open, no others.
Rejected: closing the brackets and parsing from the start (quadratic); one object that grows in place (who
keeps the values of a stream would hold one object many times)."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from typing import Any, Protocol

from tokenform.errors import InvalidSchema
from tokenform.frontends.json_text import read_json

_PLAIN = re.compile(r'[^"\\]*')
_NUMBER = re.compile(r"[-+0-9.eE]*")
_WORD = re.compile(r"[a-z]*")
_WORDS = {"true": True, "false": False, "null": None}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_GAP, _STRING, _NUMERIC, _NAME = range(4)


class Missing:
    """Nothing is known of a value yet."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING = Missing()


class Frame:
    """An object or array that is open.

    Attributes:
        items: its complete values.
        key: the name whose value is being written; None before a name, and in arrays.
        shape: what becomes of it, or None.
        start: where its bracket stands.
    """

    __slots__ = ("items", "key", "shape", "start")

    def __init__(self, items: Any, shape: Any, start: int, key: str | None = None) -> None:
        self.items, self.shape, self.start, self.key = items, shape, start, key

    @property
    def place(self) -> str | int:
        """The key of the value that is being written, or its number."""
        return len(self.items) if isinstance(self.items, list) else self.key or ""

    def copy(self) -> Frame:
        return Frame(self.items.copy(), self.shape, self.start, self.key)


class ValueShape(Protocol):
    """What becomes of the values at one place."""

    growing: bool
    """Whether a string is shown before it is complete."""

    def child(self, frame: Frame) -> ValueShape | None:
        """The shape of the next value inside."""
        ...

    def opened(self, items: Any) -> Any:
        """The value of a container that is not complete; `MISSING` hides it."""
        ...

    def closed(self, value: Any, reader: JsonReader, start: int, end: int) -> Any:
        """The complete value; raises where it is refused."""
        ...


OnValue = Callable[[tuple[str | int, ...], Any, int, int], None]


class JsonReader:
    """Reads one JSON document, piece by piece.

    Args:
        shape: of the document, or None.
        on_value: called with (path, value, start, end) of each complete value, children first; `start`
            and `end` count characters.
    Attributes:
        frames: the containers that are open, outermost first.
    """

    def __init__(self, shape: ValueShape | None = None, on_value: OnValue | None = None) -> None:
        self._root, self._on_value = shape, on_value
        self._chunks: list[str] = []
        self._length = 0
        self._mode = _GAP
        self.frames: list[Frame] = []
        self._parts: list[str] = []  # of the string, number or name that is open
        self._escape = ""  # what is there of an escape
        self._high = ""  # the first half of a surrogate pair
        self._start = 0
        self._shape: ValueShape | None = None
        self._is_key = False
        self._done: Any = MISSING

    def copy(self) -> JsonReader:
        """A reader that stands where this one does."""
        made = copy(self)
        made._chunks, made._parts = self._chunks.copy(), self._parts.copy()
        made.frames = [frame.copy() for frame in self.frames]
        return made

    @property
    def complete(self) -> bool:
        """Whether the document has ended (a number at the top may still go on)."""
        return self._done is not MISSING

    @property
    def path(self) -> tuple[str | int, ...]:
        """Keys and numbers that lead to the value being written."""
        return tuple(frame.place for frame in self.frames)

    def slice(self, start: int, end: int) -> str:
        """Characters of the text so far."""
        if len(self._chunks) > 1:
            self._chunks = ["".join(self._chunks)]
        return self._chunks[0][start:end] if self._chunks else ""

    def feed(self, text: str) -> None:
        """The next characters.

        Raises:
            InvalidSchema: they go on no JSON text.  And what the shapes raise.
        """
        base, at, end = self._length, 0, len(text)
        self._chunks.append(text)
        self._length += end
        while at < end:
            if self._mode == _STRING:
                at = self._string(text, at, base)
            elif self._mode == _GAP:
                at = self._gap(text, at, base)
            else:
                pattern = _NUMBER if self._mode == _NUMERIC else _WORD
                found = pattern.match(text, at)
                assert found is not None
                self._parts.append(found[0])
                at = found.end()
                if at < end or (self._mode == _NAME and "".join(self._parts) in _WORDS):
                    self._scalar(base + at)

    def finish(self) -> None:
        """The text has ended: a number at the top is complete."""
        if self._mode in (_NUMERIC, _NAME):
            self._scalar(self._length)

    def value(self) -> Any:
        """The value so far, of the shape's type; `MISSING` where nothing is known."""
        current: Any = MISSING
        if self._mode == _STRING and not self._is_key and (self._shape is None or self._shape.growing):
            if len(self._parts) > 1:
                self._parts = ["".join(self._parts)]
            current = self._parts[0] if self._parts else ""
        for frame in reversed(self.frames):
            items = frame.items.copy()
            if current is not MISSING:
                if isinstance(items, list):
                    items.append(current)
                else:
                    items[frame.key] = current
            current = items if frame.shape is None else frame.shape.opened(items)
        return current if self.frames or self._done is MISSING else self._done

    def _gap(self, text: str, at: int, base: int) -> int:
        char = text[at]
        if char in " \t\n\r,:":
            return at + 1
        if char in "}]":
            if not self.frames or isinstance(self.frames[-1].items, list) != (char == "]"):
                raise self._refused(base + at)
            frame = self.frames.pop()
            self._completed(frame.items, frame.shape, frame.start, base + at + 1)
            return at + 1
        top = self.frames[-1] if self.frames else None
        if self._done is not MISSING:
            raise self._refused(base + at)
        self._is_key = top is not None and top.key is None and not isinstance(top.items, list)
        if not self._is_key:
            inside = None if top is None or top.shape is None else top.shape.child(top)
            self._shape = self._root if top is None else inside
        self._start = base + at
        self._parts = []
        if char == '"':
            self._mode = _STRING
        elif self._is_key:
            raise self._refused(base + at)
        elif char == "{" or char == "[":
            self.frames.append(Frame({} if char == "{" else [], self._shape, self._start))
        elif char in "-0123456789":
            self._mode = _NUMERIC
            return at
        elif char in "tfn":
            self._mode = _NAME
            return at
        else:
            raise self._refused(base + at)
        return at + 1

    def _string(self, text: str, at: int, base: int) -> int:
        if self._escape:
            return self._escaped(text, at)
        found = _PLAIN.match(text, at)
        assert found is not None
        if found[0]:
            self._written(found[0])
        at = found.end()
        if at == len(text):
            return at
        if text[at] == "\\":
            self._escape = "\\"
            return at + 1
        self._mode = _GAP
        value = "".join(self._parts) + self._high
        self._high = ""
        if self._is_key:
            self.frames[-1].key = value
        else:
            self._completed(value, self._shape, self._start, base + at + 1)
        return at + 1

    def _escaped(self, text: str, at: int) -> int:
        self._escape += text[at]
        if self._escape[1] != "u":
            self._written(_ESCAPES.get(self._escape[1], self._escape[1]))
            self._escape = ""
        elif len(self._escape) == 6:
            unit = int(self._escape[2:], 16)
            self._escape = ""
            if self._high and 0xDC00 <= unit < 0xE000:
                pair = 0x10000 + ((ord(self._high) - 0xD800) << 10) + (unit - 0xDC00)
                self._high = ""
                self._parts.append(chr(pair))
            else:
                self._written("")
                if 0xD800 <= unit < 0xDC00:
                    self._high = chr(unit)
                else:
                    self._parts.append(chr(unit))
        return at + 1

    def _written(self, text: str) -> None:
        if self._high:
            self._parts.append(self._high)
            self._high = ""
        self._parts.append(text)

    def _scalar(self, end: int) -> None:
        written = "".join(self._parts)
        mode, self._mode = self._mode, _GAP
        if mode == _NAME:
            if written not in _WORDS:
                raise self._refused(end)
            value: Any = _WORDS[written]
        else:
            value = read_json(written, name="the number", kind=InvalidSchema)
        self._completed(value, self._shape, self._start, end)

    def _completed(self, value: Any, shape: ValueShape | None, start: int, end: int) -> None:
        if shape is not None:
            value = shape.closed(value, self, start, end)
        if self._on_value is not None:
            self._on_value(self.path, value, start, end)
        if not self.frames:
            self._done = value
            return
        frame = self.frames[-1]
        if isinstance(frame.items, list):
            frame.items.append(value)
        elif frame.key is not None:
            frame.items[frame.key] = value
            frame.key = None

    def _refused(self, at: int) -> InvalidSchema:
        return InvalidSchema(f"the document is not JSON at character {at + 1}.", column=at + 1)
