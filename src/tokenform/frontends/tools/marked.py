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
from tokenform.frontends.tools.source import Reading, Source

_WORDS: dict[Any, list[str]] = {True: ["true"], False: ["false"], None: ["null", "None"]}


class Marked(Bracketed):
    """Values of one layout."""

    layout: MarkedArguments

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


def marked_object(
    source: Source,
    layout: MarkedArguments,
    emit: Emit,
    place: Place,
    depth: int = 0,
) -> Reading[None]:
    """`{key:value,…}`, handed on as JSON; the arguments may stand in parentheses."""
    yield from source.blank()
    closer = ")" if not depth and (yield from source.accept("(")) else "}"
    if closer == "}" and not (yield from source.accept("{")):
        raise fail(source, "the arguments must be an object in braces")
    seen: set[str] = set()
    emit("{")
    yield from source.blank()
    while not (yield from source.accept(closer)):
        key = yield from _marked_key(source, layout)
        # Further inside, where members may be of any name, the last holds, as in Python.
        if not key or (key in seen and not depth):
            raise fail(source, f"the member {key!r} is given twice" if key else "a member needs a name")
        emit((", " if seen else "") + json.dumps(key, ensure_ascii=False) + ": ")
        seen.add(key)
        yield from source.blank()
        yield from _marked_value(source, layout, emit, place.member(key), depth + 1)
        yield from comma(source, closer)
    emit("}")


def _marked_key(source: Source, layout: MarkedArguments) -> Reading[str]:
    """The name before `:`, with marks around it or without; without them it holds no comma and no bracket."""
    taken: list[str] = []
    if (yield from source.accept(layout.opened)):
        yield from source.until([layout.closed], taken.append)
        yield from source.accept(layout.closed)
        yield from source.blank()
    else:
        stops = [":", ",", "[", "]", "{", "}", layout.opened, layout.closed, *layout.markers]
        yield from source.until(stops, taken.append)
        if (yield from source.matches(layout.opened)) or (yield from source.matches(layout.closed)):
            raise fail(source, f"the mark {layout.opened!r} stands in a key: a string lacks its other one")
    if not (yield from source.accept(":")):
        raise fail(source, "an object needs ':' after a key")
    return "".join(taken).strip()


def _marked_value(
    source: Source, layout: MarkedArguments, emit: Emit, place: Place, depth: int
) -> Reading[None]:
    if depth > DEPTH:
        raise fail(source, f"values are nested deeper than {DEPTH}")
    first = yield from source.peek()
    if (yield from source.accept(layout.opened)):
        yield from _marked_string(source, layout, emit, place)
    elif first == "{":
        yield from marked_object(source, layout, emit, place, depth)
    elif first == "[":
        source.take(1)
        yield from source.blank()
        count = 0
        while not (yield from source.accept("]")):
            emit(", " if count else "[")
            yield from _marked_value(source, layout, emit, place.item(count), depth + 1)
            yield from comma(source, "]")
            count += 1
        emit("]" if count else "[]")
    else:
        taken: list[str] = []
        yield from source.until([",", "}", "]", layout.opened, layout.closed, *layout.markers], taken.append)
        text = "".join(taken).strip()
        if not text:
            raise fail(source, "a value is needed here")
        if (yield from source.matches(layout.opened)) or (yield from source.matches(layout.closed)):
            raise fail(source, f"the mark {layout.opened!r} stands in a value: a string lacks its other one")
        emit(leaf(source, text, place))


def _marked_string(source: Source, layout: MarkedArguments, emit: Emit, place: Place) -> Reading[None]:
    """The text up to the mark; JSON where the place takes no such string."""
    strings = place.silent or place.kinds == {"string"}
    taken: list[str] = []
    if strings:
        emit('"')
    stop = yield from source.until(
        [layout.closed, *layout.markers],
        (lambda text: emit(inside_string(text))) if strings else taken.append,
    )
    if stop != layout.closed:
        raise fail(source, f"a string needs {layout.closed!r}")
    yield from source.accept(layout.closed)
    text = "".join(taken)
    if not strings and "string" in place.kinds and place.takes(text):
        emit(json.dumps(text, ensure_ascii=False))
    else:
        emit('"' if strings else leaf(source, text, place))
