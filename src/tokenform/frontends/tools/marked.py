"""Arguments as `{key:value,…}` with raw strings between two marks, as a tree.

Purpose: Gemma's notation: keys bare, a string as it is between two marks (one token each), everything else as
JSON has it, without spaces.
Invariant: a string can't hold the mark that closes it, nor what opens or closes a
call; a key is one that the reader ends at `:`.
Complexity: that of `notation.py`; two orders of the members where the declared one is not sorted.
Source: the chat template of google/gemma-4-31B-it (`format_argument`, which sorts keys).
Rejected: any order of the members (n! orders).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.layout import MarkedArguments
from tokenform.frontends.tools.notation import Members, Pair, texts
from tokenform.frontends.tools.order import in_order
from tokenform.frontends.tools.pythonic import COLON, COMMA, Bracketed
from tokenform.frontends.tools.shape import (
    Choice,
    Json,
    Node,
    RawString,
    Seq,
    Text,
    choice,
    joined,
    sequence,
)

_WORDS: dict[Any, list[str]] = {True: ["true"], False: ["false"], None: ["null", "None"]}


class Marked(Bracketed):
    """Values of one layout."""

    what = "this format's values"

    def __init__(
        self,
        rules: dict[str, Node],
        order: str,
        layout: MarkedArguments,
        literal: Callable[[str], Node],
        scope: str = "",
        values: dict[Any, Node] | None = None,
    ) -> None:
        super().__init__(rules, order, scope, values)
        self.opened, self.closed = literal(layout.opened), literal(layout.closed)
        self.layout, self._barred = layout, (layout.closed, *layout.markers)

    def arguments(self, schema: Any, owner: str, strict: bool) -> Node:
        """The arguments with the braces around them."""
        return choice([self.mapping(members, None) for members in self.members(schema, owner, strict)])

    def constant(self, value: Any, place: Node | None) -> Node:
        if isinstance(value, str):
            if any(mark in value for mark in self._barred):
                return Choice(())
            return sequence(self.opened, Text(value), self.closed)
        if isinstance(value, list):
            items = [(self.constant(item, None), True) for item in value]
            return sequence(Text("["), joined(items, COMMA) if items else Seq(()), Text("]"))
        if isinstance(value, Mapping):
            pairs = [(key, self.constant(item, None), True) for key, item in value.items()]
            return self.mapping(Members(pairs), None)
        return self._either(
            texts(_WORDS[value] if value is None or isinstance(value, bool) else [repr(value)])
        )

    def string(self, schema: Any, bounded: bool, place: Node | None) -> Node:
        raw = RawString(schema, self._barred)
        return sequence(self.opened, raw, self.closed)

    def number(self, schema: dict[str, Any], place: Node | None) -> Node:
        return self._either(Json(schema))

    def _either(self, value: Node) -> Node:
        """A value that is no string, by itself, or between marks too."""
        return (
            choice([value, sequence(self.opened, value, self.closed)]) if self.layout.marked_json else value
        )

    def mapping(self, members: Members, place: Node | None) -> Node:
        orders = [members.pairs]
        if self.order != "any" and sorted(members.pairs, key=_folded) != members.pairs:
            orders.append(sorted(members.pairs, key=_folded))
        rows = [
            in_order(self.order, self._row(o), members.more, COMMA, bounds=members.bounds) for o in orders
        ]
        return choice([sequence(Text("{"), row, Text("}")) for row in rows])

    def _row(self, pairs: list[Pair]) -> list[tuple[Node, bool]]:
        written: list[tuple[Node, bool]] = []
        for key, value, needed in pairs:
            bad = not key or key != key.strip() or self.layout.opened in key
            if bad or re.search(r"[:,{}\[\]\n]", key):
                raise ToolError(f"the member {key!r} can't be written in this format; rename it")
            written.append((sequence(Text(key), COLON, value), needed))
        return written


def _folded(pair: Pair) -> str:
    """The order of Jinja's `dictsort`."""
    return pair[0].lower()
