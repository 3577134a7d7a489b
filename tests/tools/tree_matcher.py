"""A slow, plain matcher for tool shapes: which texts does a tree allow?

It carries the set of places where a node may end, node by node.  Special tokens are their text here; text
that is free may hold none of them but those that it allows.
"""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema

from tokenform.frontends.tools.shape import (
    AnyOrder,
    Choice,
    Free,
    Json,
    Node,
    RawString,
    Regex,
    Repeat,
    Rule,
    Seq,
    Shape,
    Special,
    Text,
)


def accepts(shape: Shape, text: str) -> bool:
    """Whether the whole text is allowed."""
    return len(text) in Matcher(shape, text).ends(shape.root, 0)


class Matcher:
    def __init__(self, shape: Shape, text: str) -> None:
        self.shape, self.text = shape, text
        self.specials = {n.text for n in shape.nodes() if isinstance(n, Special)} | {*shape.marks}
        self.memo: dict[tuple[int, int], frozenset[int]] = {}

    def ends(self, node: Node, at: int) -> frozenset[int]:
        key = (id(node), at)
        if key not in self.memo:
            self.memo[key] = frozenset()
            self.memo[key] = frozenset(self._ends(node, at))
        return self.memo[key]

    def _ends(self, node: Node, at: int) -> set[int]:
        text = self.text
        if isinstance(node, (Text, Special)):
            return {at + len(node.text)} if text.startswith(node.text, at) else set()
        if isinstance(node, Json):
            return self._json(node, at)
        if isinstance(node, Regex):
            pattern = re.compile(node.pattern)
            return {end for end in range(at, len(text) + 1) if pattern.fullmatch(text, at, end)}
        if isinstance(node, RawString):
            return self._raw(node, at)
        if isinstance(node, Free):
            return self._free(node, at)
        if isinstance(node, Seq):
            places = {at}
            for part in node.parts:
                places = {end for place in places for end in self.ends(part, place)}
            return places
        if isinstance(node, Choice):
            return {end for option in node.options for end in self.ends(option, at)}
        if isinstance(node, Repeat):
            return self._repeat(node, at)
        if isinstance(node, AnyOrder):
            return self._any_order(node, at)
        assert isinstance(node, Rule)
        return set(self.ends(self.shape.rules[node.name], at))

    def _json(self, node: Json, at: int) -> set[int]:
        def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            if len(dict(pairs)) < len(pairs):
                raise ValueError("a key is there twice")
            return dict(pairs)

        def refused(word: str) -> Any:
            raise ValueError(word)

        decoder = json.JSONDecoder(object_pairs_hook=unique, parse_constant=refused)
        try:
            value, end = decoder.raw_decode(self.text, at)
        except ValueError:
            return set()
        return (
            {end}
            if jsonschema.Draft202012Validator(node.schema).is_valid(value)
            and not any(w in self.text[at:end] for w in node.without)
            else set()
        )

    def _raw(self, node: RawString, at: int) -> set[int]:
        found = set()
        validator = jsonschema.Draft202012Validator(node.schema)
        for end in range(at, len(self.text) + 1):
            part = self.text[at:end]
            if any(w in part for w in node.without) or any(re.search(p, part) for p in node.never):
                break
            if node.feeds[0]:
                part = part.removeprefix("\n")
            if node.feeds[1]:
                part = part.removesuffix("\n")
            if validator.is_valid(part):
                found.add(end)
        return found

    def _free(self, node: Free, at: int) -> set[int]:
        found = set()
        for end in range(at, len(self.text) + 1):
            part = self.text[at:end]
            if any(re.match(p, part) for p in node.not_prefix):
                break
            if any(s in part for s in self.specials - set(node.allow)):
                break
            if any(_occurs(t.text, t.whole_word, part) for t in node.until):
                break
            if not (node.word_end and re.search(r"\w\Z", part)):
                found.add(end)
        return found

    def _repeat(self, node: Repeat, at: int) -> set[int]:
        found = {at} if node.least == 0 else set()
        places, count, seen = {at}, 0, {at}
        while places and (node.most is None or count < node.most):
            if count and node.separator is not None:
                places = {end for place in places for end in self.ends(node.separator, place)}
            places = {end for place in places for end in self.ends(node.item, place)}
            count += 1
            if count >= node.least:
                found |= places
                places = places - seen if node.most is None else places
                seen |= places
        return found

    def _any_order(self, node: AnyOrder, at: int) -> set[int]:
        found = set()
        waiting = {(at, frozenset(range(len(node.members))))}
        seen = set(waiting)
        while waiting:
            place, left = waiting.pop()
            if not any(node.members[one][1] for one in left):
                found.add(place)
            starts = {place}
            if place > at and node.separator is not None:
                starts = set(self.ends(node.separator, place))
            ways = [(node.members[one][0], left - {one}) for one in left]
            ways += [(node.others, left)] if node.others is not None else []
            if node.prefix is not None:
                starts = {end for start in starts for end in self.ends(node.prefix, start)}
            more = {(end, rest) for part, rest in ways for start in starts for end in self.ends(part, start)}
            waiting |= more - seen
            seen |= more
        return found


def _occurs(trigger: str, whole_word: bool, text: str) -> bool:
    return re.search((r"(?<!\w)" if whole_word else "") + re.escape(trigger), text) is not None
