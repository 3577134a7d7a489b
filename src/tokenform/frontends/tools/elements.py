"""Arguments as elements inside each other: as a tree, and read.

Purpose: each member of an object and each item of a list is an element; text stands in it raw, other scalars
as JSON, lists and objects as further elements.
Invariant: raw text can't hold what markers begin with.  Where the closing marker repeats the member's name,
members that the schema does not name are not written, and objects of such members alone are written as JSON:
no grammar can ask for the same unknown name twice, and readers take both.
Complexity: that of `notation.py`, with one rule for each reference and name.  Reading is linear in the text;
nesting is bounded by `DEPTH`.
Source: the chat templates named in the format files; a list that begins with an item where no schema speaks,
as vLLM 0.33 and SGLang 0.5.23 read it.
Rejected: closing markers of any name (texts would be allowed that no reader takes); reading elements as XML
(raw text holds any `<` and `&`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.layout import Elements
from tokenform.frontends.tools.members import dump
from tokenform.frontends.tools.notation import Members, Notation, Spot
from tokenform.frontends.tools.order import in_order
from tokenform.frontends.tools.places import WORDS, Place, leaf
from tokenform.frontends.tools.read_literals import ArgumentsReader
from tokenform.frontends.tools.read_values import DEPTH, Emit, fail, inside_string
from tokenform.frontends.tools.shape import (
    LINE,
    Choice,
    Json,
    Node,
    RawString,
    Regex,
    Repeat,
    Seq,
    Text,
    sequence,
)
from tokenform.frontends.tools.source import Reading

TEXT, JSON, OBJECT, LIST = range(4)
_SCALARS: dict[str, Any] = {"type": ["number", "boolean", "null"]}


class NestedReader(ArgumentsReader):
    """Reads elements of one layout."""

    layout: Elements

    def arguments(self) -> Reading[None]:
        self.calls.more = self.layout.member
        yield from self.settled(self._outermost, self.place, self.calls.fragment)

    def _outermost(self, place: Place, emit: Emit) -> Reading[None]:
        yield from self._members(emit, place, 0)

    def _members(self, emit: Emit, place: Place, depth: int) -> Reading[None]:
        """All elements that stand here, as the members of one object."""
        if depth and not place.declares:
            yield from self._free_members(emit, place, depth)
            return
        seen: set[str] = set()
        emit("{")
        while (head := (yield from self._opened(self.layout.member))) is not None:
            key, kind = head
            self.key(key, seen, not depth and place.member(key).declared, emit)
            yield from self._value(emit, place.member(key), kind, self._closer(key), depth + 1)
        emit("}")

    def _free_members(self, emit: Emit, place: Place, depth: int) -> Reading[None]:
        """Members that the schema does not name: one that is repeated is a list (vLLM 0.33 reads so)."""
        found: dict[str, list[str]] = {}
        while (head := (yield from self._opened(self.layout.member))) is not None:
            key, kind = head
            if not key:
                raise fail(self.source, "an argument needs a name")
            pieces: list[str] = []
            yield from self._value(pieces.append, place.member(key), kind, self._closer(key), depth + 1)
            found.setdefault(key, []).append("".join(pieces))
        pairs = []
        for key, values in found.items():
            text = values[0] if len(values) == 1 else f"[{', '.join(values)}]"
            pairs.append(f"{json.dumps(key, ensure_ascii=False)}: {text}")
        emit("{" + ", ".join(pairs) + "}")

    def _items(self, emit: Emit, place: Place, depth: int) -> Reading[None]:
        count = 0
        while (head := (yield from self._opened(self.layout.item))) is not None:
            emit(", " if count else "[")
            yield from self._value(emit, place.item(count), head[1], self.layout.close_item, depth + 1)
            count += 1
        emit("]" if count else "[]")

    def _closer(self, key: str) -> str:
        return self.layout.close.replace("{name}", key)

    def _opened(self, marker: str) -> Reading[tuple[str, str] | None]:
        """Take the opener of an element: its name and kind; None where something else stands."""
        mark = self.source.mark()
        yield from self.source.blank()
        found: dict[str, str] = {"name": "", "kind": ""}
        rest, there = marker, True
        while rest and there:
            literal, _, rest = rest.partition("{")
            there = yield from self.source.accept(literal)
            field, _, rest = rest.partition("}") if there else ("", "", "")
            if there and field:
                pieces: list[str] = []
                stop = rest.partition("{")[0]
                yield from self.source.until([stop, self.layout.marker], pieces.append)
                found[field] = "".join(pieces)
        there = (
            there and not found["name"].startswith("/") and not re.search(r"[\s\"'=]", found["name"].strip())
        )
        if not there:
            self.source.back(mark)
        self.source.release(mark)
        return (found["name"].strip(), found["kind"]) if there else None

    def _value(self, emit: Emit, place: Place, kind: str, closer: str, depth: int) -> Reading[None]:
        """What stands in an element, and its end."""
        if depth > DEPTH:
            raise fail(self.source, f"elements are nested deeper than {DEPTH}")
        kind_index = (
            self.layout.kinds.index(kind) if self.layout.kinds and kind in self.layout.kinds else None
        )
        if self.layout.kinds and kind_index is None:
            raise fail(self.source, f"{kind!r} is no kind of element")

        def read(place: Place, emit: Emit) -> Reading[None]:
            found = (yield from self._element_kind(place)) if kind_index is None else kind_index
            if found == OBJECT:
                yield from self._members(emit, place, depth)
                yield from self.source.blank()
            elif found == LIST:
                yield from self._items(emit, place, depth)
                yield from self.source.blank()
            else:
                yield from self._text(emit, place, found, kind_index is None)
            if not (yield from self.source.accept(closer)):
                raise fail(self.source, f"{closer!r} is needed here")

        return self.settled(read, place, emit)

    def _element_kind(self, place: Place) -> Reading[int]:
        """Whether elements follow, and of which kind."""
        mark = self.source.mark()
        yield from self.source.blank()
        kinds = place.kinds
        opens = self.layout.marker + "<"
        child = (yield from self.source.matches(opens)) and not (yield from self.source.matches(opens + "/"))
        first_item = child and (yield from self.source.matches(self.layout.item))
        ends = yield from self.source.matches(opens + "/")
        self.source.undo(mark)
        if child:
            return LIST if "array" in kinds and (first_item or "object" not in kinds) else OBJECT
        if ends and kinds & {"array", "object"} and not (yield from self._blank_text(place)):
            return LIST if "array" in kinds and ("object" not in kinds or place.takes([])) else OBJECT
        return TEXT

    def _blank_text(self, place: Place) -> Reading[bool]:
        """Whether the whitespace that stands here, alone in its element, is a text that the place takes."""
        if "string" not in place.kinds:
            return False
        mark, pieces = self.source.mark(), list[str]()
        yield from self.source.until([self.layout.marker], pieces.append)
        self.source.undo(mark)
        return place.takes("".join(pieces))

    def _text(self, emit: Emit, place: Place, kind_index: int, open_kind: bool) -> Reading[None]:
        """Raw text or JSON up to the next marker."""
        kinds = place.kinds
        if kind_index == TEXT and ("string" in kinds if not open_kind else kinds == {"string"}):
            emit('"')
            yield from self.source.until(self.layout.barred, lambda text: emit(inside_string(text)))
            emit('"')
            return
        pieces: list[str] = []
        yield from self.source.until(self.layout.barred, pieces.append)
        text = "".join(pieces)
        if open_kind and place.silent and text.strip() not in WORDS:
            emit(json.dumps(text, ensure_ascii=False))  # where no schema speaks, a text is a text
        else:
            emit(leaf(self.source, text, place, json_only=kind_index == JSON))


class Nested(Notation):
    """Elements of one layout; a place is the name of the member, None an item.

    spelled: how the names of members are written; None: as they are, where readers take them.
    """

    layout: Elements
    reader = NestedReader
    behind = LINE
    spelled: Callable[[str], str] | None = None

    def member_place(self, key: str) -> Node:
        if self.spelled is not None:
            return Text(self.spelled(key))
        if not key or key != key.strip() or any(c in key for c in '<>"&/= \n'):
            raise ToolError(f"the member {key!r} can't be written in this format; rename it")
        return Text(key)

    def element(self, kind: int, inside: Node, place: Node | None) -> Node:
        """What opens it, what stands in it, what closes it."""
        opened = self.layout.item if place is None else self.layout.member
        closed = self.layout.close_item if place is None else self.layout.close
        called = self.layout.kinds[kind] if self.layout.kinds else ""
        return sequence(*self._marker(opened, place, called), inside, *self._marker(closed, place, called))

    def _marker(self, marker: str, place: Node | None, kind: str) -> list[Node]:
        before, named, after = marker.replace("{kind}", kind).partition("{name}")
        if not named:
            return [self.literal(before)]
        assert place is not None
        return [self.literal(before), place, self.literal(after)]

    def any(self, place: Node | None) -> Node:
        text = self.string({"type": "string"}, False, place)
        if self.layout.kinds is None:  # where no schema speaks, a text is a text
            return text
        name = f"{self.scope}element of {place!r}"
        if name not in self.rules:
            self.rules[name] = Seq(())
            scalars = self.element(JSON, self._json(_SCALARS), place)
            self.rules[name] = Choice((text, scalars, *self._free_elements(place)))
        return self.rule(name)

    def _free_elements(self, place: Node | None) -> list[Node]:
        """Lists and objects of anything."""
        items, pairs = (Repeat(sequence(self.any(p), LINE), 0, None) for p in (None, Regex(self.key)))
        return [self.element(LIST, items, place), self.element(OBJECT, pairs, place)]

    def _json(self, schema: Any) -> Node:
        return Json(schema, self.layout.barred)

    def constant(self, value: Any, place: Node | None) -> Node:
        if isinstance(value, str):
            fits = not any(mark in value for mark in self.layout.barred)
            return self._text(Text(value), True, place) if fits else Choice(())
        if isinstance(value, list):
            items = sequence(*(self.constant(item, None) for item in value))
            return self.element(LIST, items, place)
        if isinstance(value, Mapping):
            pairs = [(key, self.constant(item, self.member_place(key)), True) for key, item in value.items()]
            return self.mapping(Members(pairs), place)
        return self.element(JSON, Text(dump(value)), place)

    def string(self, schema: Any, bounded: bool, place: Node | None) -> Node:
        return self._text(RawString(schema, self.layout.barred), bounded, place)

    def _text(self, text: Node, bounded: bool, place: Node | None) -> Node:
        """A text; where nobody reads it whitespace may stand around one that is not any text."""
        spaced = bounded and self.spelled is not None
        return self.element(TEXT, sequence(LINE, text, LINE) if spaced else text, place)

    def number(self, schema: dict[str, Any], place: Node | None) -> Node:
        return self.element(JSON, sequence(LINE, self._json(schema), LINE), place)

    def array(self, inside: Node, place: Node | None) -> Node:
        return self.element(LIST, sequence(LINE, inside), place)

    def mapping(self, members: Members, place: Node | None) -> Node:
        return self.element(OBJECT, sequence(LINE, self.row(members)), place)

    def row(self, members: Members) -> Node:
        written = [(sequence(value, LINE), needed) for _, value, needed in members.pairs]
        return in_order(self.order, written, members.more, Seq(()), bounds=members.bounds)

    def other(self, key: Node, schema: Any, spot: Spot) -> Node | None:
        placed = spot._replace(place=key)
        return None if self.layout.kinds is None else sequence(self.value(schema, placed), LINE)

    def free_mapping(self, values: Any, spot: Spot) -> Node:
        if self.layout.kinds is not None:
            return super().free_mapping(values, spot)
        schema = {**{k: v for k, v in spot.root.items() if k in ("$defs", "definitions")}, "type": "object"}
        return self.element(JSON, self._json({**schema, "additionalProperties": values}), spot.place)
