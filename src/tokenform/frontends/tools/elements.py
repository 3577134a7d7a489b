"""Arguments as elements inside each other, as a tree.

Purpose: each member of an object and each item of a list is an element; text stands in it raw, other scalars
as JSON, lists and objects as further elements.
Invariant: raw text can't hold what markers begin with.  Where the closing marker repeats the member's name,
members that the schema does not name are not written, and objects of such members alone are written as JSON:
no grammar can ask for the same unknown name twice, and readers take both.
Complexity: that of `notation.py`, with one rule for each reference and name.
Source: the chat templates named in the format files.
Rejected: closing markers of any name (texts would be allowed that no reader takes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.layout import Elements
from tokenform.frontends.tools.members import dump
from tokenform.frontends.tools.notation import Members, Notation
from tokenform.frontends.tools.order import in_order
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
    choice,
    sequence,
)

TEXT, JSON, OBJECT, LIST = range(4)
_SCALARS: dict[str, Any] = {"type": ["number", "boolean", "null"]}


class Nested(Notation):
    """Elements of one layout; a place is the name of the member, None an item."""

    what = "this format's elements"
    behind = LINE

    def __init__(
        self,
        rules: dict[str, Node],
        order: str,
        layout: Elements,
        literal: Callable[[str], Node],
        spelled: Callable[[str], str] | None = None,
        scope: str = "",
        values: dict[Any, Node] | None = None,
    ) -> None:
        """spelled: how the names of members are written; None: as they are, where readers take them."""
        super().__init__(rules, order, scope, values)
        self.layout, self.literal, self.spelled = layout, literal, spelled

    def arguments(self, schema: Any, owner: str, strict: bool) -> Node:
        """The elements of all arguments."""
        return choice([self._row(members) for members in self.members(schema, owner, strict)])

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
        return self.element(OBJECT, sequence(LINE, self._row(members)), place)

    def _row(self, members: Members) -> Node:
        written = [(sequence(value, LINE), needed) for _, value, needed in members.pairs]
        return in_order(self.order, written, members.more, Seq(()), bounds=members.bounds)

    def other(self, key: Node, schema: Any, owner: str, root: Mapping[str, Any]) -> Node | None:
        return None if self.layout.kinds is None else sequence(self.value(schema, owner, root, key), LINE)

    def free_mapping(self, values: Any, owner: str, root: Mapping[str, Any], place: Node | None) -> Node:
        if self.layout.kinds is not None:
            return super().free_mapping(values, owner, root, place)
        schema = {**{k: v for k, v in root.items() if k in ("$defs", "definitions")}, "type": "object"}
        return self.element(JSON, self._json({**schema, "additionalProperties": values}), place)
