"""Arguments as `{key:value,…}` with raw strings between two marks: as a tree, and read.

Purpose: Gemma's notation: keys bare, a string as it is between two marks (one token each), everything else as
JSON has it, without spaces.
Invariant: a string can't hold the mark that closes it, nor what opens or closes a
call; a key is one that the reader ends at `:`.
Complexity: that of `notation.py`; two orders of the members where the declared one is not sorted.  Reading is
linear in the text; nesting is bounded by `DEPTH`.
Source: the chat template of google/gemma-4-31B-it (`format_argument`, which sorts keys); bare words for
strings and a marked number, as vLLM 0.33 and SGLang 0.5.23 read them.
Rejected: any order of the members (n! orders).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.layout import MarkedArguments
from tokenform.frontends.tools.notation import Members, Pair, texts
from tokenform.frontends.tools.order import in_order
from tokenform.frontends.tools.places import Place, leaf
from tokenform.frontends.tools.pythonic import COLON, COMMA, Bracketed
from tokenform.frontends.tools.read_literals import ArgumentsReader
from tokenform.frontends.tools.read_values import DEPTH, Emit, comma, fail, inside_string
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
from tokenform.frontends.tools.source import Reading

_WORDS: dict[Any, list[str]] = {True: ["true"], False: ["false"], None: ["null", "None"]}


class MarkedReader(ArgumentsReader):
    """Reads values of one layout; the arguments may stand in parentheses."""

    layout: MarkedArguments

    def arguments(self) -> Reading[None]:
        yield from self.settled(self._outermost, self.place, self.calls.fragment)
        self.calls.whole = True

    def _outermost(self, place: Place, emit: Emit) -> Reading[None]:
        yield from self.source.blank()
        if (yield from self.source.accept("(")):
            yield from self._members(emit, place, ")", 0)
        elif (yield from self.source.accept("{")):
            yield from self._members(emit, place, "}", 0)
        else:
            raise fail(self.source, "the arguments must be an object in braces")

    def _members(self, emit: Emit, place: Place, closer: str, depth: int) -> Reading[None]:
        """Further inside, where members may be of any name, the last holds, as in Python."""
        seen: set[str] = set()
        emit("{")
        yield from self.source.blank()
        while not (yield from self.source.accept(closer)):
            name = yield from self._name()
            self.key(name, seen, not depth and place.member(name).declared, emit)
            yield from self.source.blank()
            yield from self._value(emit, place.member(name), depth + 1)
            yield from comma(self.source, closer)
        emit("}")

    def _until(self, *stops: str) -> Reading[str]:
        """Bare text up to one of these, in which no mark stands."""
        opened, closed = self.layout.opened, self.layout.closed
        pieces: list[str] = []
        stop = yield from self.source.until([*stops, opened, closed, *self.layout.markers], pieces.append)
        if stop in (opened, closed):
            raise fail(self.source, f"the mark {opened!r} stands in bare text: a string lacks its other one")
        return "".join(pieces).strip()

    def _name(self) -> Reading[str]:
        """The name before `:`, with marks around it or without; without them it holds no comma and no
        bracket."""
        pieces: list[str] = []
        if (yield from self.source.accept(self.layout.opened)):
            yield from self.source.until([self.layout.closed], pieces.append)
            yield from self.source.accept(self.layout.closed)
            yield from self.source.blank()
        else:
            pieces.append((yield from self._until(":", ",", "[", "]", "{", "}")))
        if not (yield from self.source.accept(":")):
            raise fail(self.source, "an object needs ':' after a key")
        return "".join(pieces).strip()

    def _value(self, emit: Emit, place: Place, depth: int) -> Reading[None]:
        if depth > DEPTH:
            raise fail(self.source, f"values are nested deeper than {DEPTH}")
        return self.settled(lambda place, emit: self._read(emit, place, depth), place, emit)

    def _read(self, emit: Emit, place: Place, depth: int) -> Reading[None]:
        if (yield from self.source.accept(self.layout.opened)):
            yield from self._string(emit, place)
        elif (yield from self.source.accept("{")):
            yield from self._members(emit, place, "}", depth)
        elif (yield from self.source.accept("[")):
            yield from self.source.blank()
            count = 0
            while not (yield from self.source.accept("]")):
                emit(", " if count else "[")
                yield from self._value(emit, place.item(count), depth + 1)
                yield from comma(self.source, "]")
                count += 1
            emit("]" if count else "[]")
        else:
            text = yield from self._until(",", "}", "]")
            if not text:
                raise fail(self.source, "a value is needed here")
            emit(leaf(self.source, text, place))

    def _string(self, emit: Emit, place: Place) -> Reading[None]:
        """The text up to the mark; JSON where the place takes no such string."""
        closed = self.layout.closed
        strings = place.silent or place.kinds == {"string"}
        pieces: list[str] = []
        if strings:
            emit('"')
        hear = (lambda text: emit(inside_string(text))) if strings else pieces.append
        if (yield from self.source.until([closed, *self.layout.markers], hear)) != closed:
            raise fail(self.source, f"a string needs {closed!r}")
        yield from self.source.accept(closed)
        text = "".join(pieces)
        if not strings and "string" in place.kinds and place.takes(text):
            emit(json.dumps(text, ensure_ascii=False))
        else:
            emit('"' if strings else leaf(self.source, text, place))


class Marked(Bracketed):
    """Values of one layout."""

    layout: MarkedArguments
    reader = MarkedReader

    @property
    def _barred(self) -> tuple[str, ...]:
        return self.layout.closed, *self.layout.markers

    def _marked(self, value: Node) -> Node:
        """A value between marks."""
        return sequence(self.literal(self.layout.opened), value, self.literal(self.layout.closed))

    def row(self, members: Members) -> Node:
        return self.mapping(members, None)

    def constant(self, value: Any, place: Node | None) -> Node:
        if isinstance(value, str):
            return Choice(()) if any(m in value for m in self._barred) else self._marked(Text(value))
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
        return self._marked(RawString(schema, self._barred))

    def number(self, schema: dict[str, Any], place: Node | None) -> Node:
        return self._either(Json(schema))

    def _either(self, value: Node) -> Node:
        """A value that is no string, by itself, or between marks too."""
        return choice([value, self._marked(value)]) if self.layout.marked_json else value

    def mapping(self, members: Members, place: Node | None) -> Node:
        orders = [members.pairs]
        if self.order != "any" and sorted(members.pairs, key=_folded) != members.pairs:
            orders.append(sorted(members.pairs, key=_folded))
        rows = [
            in_order(self.order, self._pairs(o), members.more, COMMA, bounds=members.bounds) for o in orders
        ]
        return choice([sequence(Text("{"), row, Text("}")) for row in rows])

    def _pairs(self, pairs: list[Pair]) -> list[tuple[Node, bool]]:
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
