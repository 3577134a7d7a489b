"""A schema's instances as a tree, in any notation that writes values other than JSON does.

Purpose: taking a schema apart by types (`enum`, `anyOf`, references, members, items) is the same work whether
strings stand in quotes of Python, between two marks, or in elements; a notation says only how each kind of
value is written.
Invariant: every instance of the schema has a text in the tree, and every text is an instance but for the
keywords that `notes` name, which are checked when a call is read; recursive schemas become recursive rules.
Complexity: one node per subschema and place; shared subschemas (`$ref`) are one rule for each place.
Source: JSON Schema 2020-12, core and validation.
Rejected: every applicator of JSON Schema (`contains`, `uniqueItems` … over values that are not JSON); and
refusing such schemas, which took the other tools with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from tokenform.errors import UnsupportedSchema
from tokenform.frontends.forms import written
from tokenform.frontends.pattern_dialects import DIALECT
from tokenform.frontends.tools.cases import ASSERTIONS, Splitter
from tokenform.frontends.tools.conjuncts import (
    ANNOTATIONS,
    DEFINITIONS,
    alone,
    conjuncts,
    first_items,
    further_items,
    resolve,
    types_of,
)
from tokenform.frontends.tools.judge import satisfies
from tokenform.frontends.tools.members import Case, all_of, member_cases, of_kind
from tokenform.frontends.tools.read_literals import ArgumentsReader
from tokenform.frontends.tools.shape import Given, Node, Regex, Rule, Seq, Text, choice, listed, sequence

_ARRAY = ("contains", "uniqueItems", "unevaluatedItems")
_BOUNDS = ("minLength", "maxLength", "pattern", "format", "not", "if")
# A member's value: its key, its tree, and whether it has to be there.
Pair = tuple[str, Node, bool]


@dataclass(frozen=True, eq=False)
class Members:
    """The members of an object in one of the ways in which they may stand together.

    more: a further one, if there may be any.  bounds: how many there are in all.
    """

    pairs: list[Pair]
    more: Node | None = None
    bounds: tuple[int, int | None] = (0, None)


class Spot(NamedTuple):
    """Where a schema stands, and its values.

    owner: what errors call it.  root: what references are looked up in.  place: see `Notation`.
    """

    owner: str
    root: Mapping[str, Any]
    place: Node | None = None


class Notation:
    """Builds the trees of one grammar; the rules of its recursive schemas gather in `rules`.

    A place is where a value stands, for notations that write it there: the member's name, or None.

    Args:
        order: of members, "declared" or "any".
        literal: makes a marker's node.
        scope: what the names of rules begin with.
        values: trees that are known; more are added.
    """

    reader: type[ArgumentsReader]  # of arguments in this notation
    key = r"[A-Za-z_][A-Za-z0-9_.-]*"  # the names of members that a schema does not name
    item_separator: Node | None = None  # between two items of a list
    behind: Node = Seq(())  # after each item

    def __init__(
        self,
        layout: Any,
        rules: dict[str, Node],
        order: str,
        literal: Callable[[str], Node],
        scope: str = "",
        values: dict[Any, Node] | None = None,
    ) -> None:
        self.layout, self.literal = layout, literal
        self.rules, self.order, self.scope = rules, order, scope
        self.values = {} if values is None else values
        self._ruled = 0
        self.loosened: list[str] = []  # keywords that are not kept
        self.notes: list[str] = []  # what the schemas allow and the format can't write
        self._named: dict[tuple[int, str, Node | None], str] = {}
        self._roots: list[Any] = []

    # What a notation says.

    def any(self, place: Node | None) -> Node:
        """Any JSON-like value."""
        raise NotImplementedError

    def constant(self, value: Any, place: Node | None) -> Node:
        """This value, in all its spellings."""
        raise NotImplementedError

    def string(self, schema: Any, bounded: bool, place: Node | None) -> Node:
        """The strings that the schema (which stands alone) allows; not bounded: any string."""
        raise NotImplementedError

    def number(self, schema: dict[str, Any], place: Node | None) -> Node:
        """The numbers that the schema allows."""
        raise NotImplementedError

    def array(self, inside: Node, place: Node | None) -> Node:
        """A list of these items."""
        raise NotImplementedError

    def mapping(self, members: Members, place: Node | None) -> Node:
        """Objects of these members."""
        raise NotImplementedError

    def row(self, members: Members) -> Node:
        """The arguments of a call."""
        raise NotImplementedError

    def other(self, key: Node, schema: Any, spot: Spot) -> Node | None:
        """A member of such a name whose value satisfies the schema; None: it can't be written."""
        raise NotImplementedError

    def unknown(self, declared: list[str]) -> Node:
        """The names that are not declared."""
        return unknown_name(self.key, declared)

    def named(self, schema: Any) -> Node:
        """The names that satisfy the schema."""
        return named_by(self.key, schema)

    def free_mapping(self, values: Any, spot: Spot) -> Node:
        """Objects of any members whose values satisfy the schema."""
        return self.mapping(Members([], self.other(self.unknown([]), values, spot)), spot.place)

    def member_place(self, key: str) -> Node | None:
        """Where the value of a member stands."""
        return None

    # What is the same in all of them.

    def arguments(self, schema: Any, owner: str, strict: bool) -> Node:
        """The arguments of a call, as the schema of an object says; owner: what errors call the tool."""
        return choice([self.row(members) for members in self.members(schema, owner, strict)])

    def members(
        self,
        schema: Any,
        owner: str,
        strict: bool,
        kind: str = "argument",
        root: Mapping[str, Any] | None = None,
    ) -> list[Members]:
        """The members of an object, each with its value's tree.

        kind: what errors call them.  root: the schema that references are looked up in; None: each member's
        own.
        """
        found: list[Members] = []
        for case in self.cases(schema, owner, strict):
            pairs: list[Pair] = []
            for member in case.members:
                place = self.member_place(member.key)
                value = self.shared(member.schema, f"{owner}, {kind} {member.key!r}", root, place)
                pairs.append((member.key, value, member.required))
            name = f"{owner}, {kind}s that are not declared"
            found.append(Members(pairs, self.others(case, name, root), case.bounds))
        return found

    def cases(self, schema: Any, owner: str, strict: bool) -> list[Case]:
        """The members of an object as their names and schemas."""
        counts = self.order != "any"
        return member_cases(schema, owner, strict, self.loosens(owner), written=True, counts=counts)

    def others(self, case: Case, owner: str, root: Mapping[str, Any] | None) -> Node | None:
        """A member that is not declared; None: there are none, or they can't be written."""
        said = [(self.named(key), value) for key, value in case.keyed]
        if not said and case.others is not False:
            said = [(self.unknown(case.names), case.others)]
        made = [self.other(key, value, Spot(owner, root or root_of(value))) for key, value in said]
        written = [node for node in made if node is not None]
        if len(written) < len(made):
            self.notes.append(f"{owner}: this format can't write them")
        return choice(written) if written else None

    def loosens(self, owner: str) -> Callable[[str], None]:
        """Notes keywords that are not kept there."""

        def note(keyword: str) -> None:
            self.loosened.append(keyword)
            self.notes.append(loosened(owner, keyword))

        return note

    def shared(self, schema: Any, owner: str, root: Mapping[str, Any] | None, place: Node | None) -> Node:
        """The values of a member; one tree for all members of all tools of which the same is said.

        What names rules or tells notes is its owner's.
        """
        if isinstance(schema, Mapping):
            schema = {key: said for key, said in schema.items() if key not in ANNOTATIONS}
        text = json.dumps(schema) if isinstance(schema, bool) else written(schema)
        own = text, place, self.scope, owner
        found = self.values.get(own[:2]) or self.values.get(own)
        if found is None:
            before = self._ruled, len(self.notes)
            found = self.value(schema, Spot(owner, root or root_of(schema), place))
            alike = before == (self._ruled, len(self.notes)) and '"$ref"' not in text
            self.values[own[:2] if alike else own] = found
        return found

    def rule(self, name: str) -> Rule:
        """The rule of this name, which is the tool's own."""
        self._ruled += 1
        return Rule(name)

    def value(self, schema: Any, spot: Spot) -> Node:
        """The values that satisfy the schema, as they are written in this place."""
        owner, root, place = spot
        if schema is False:
            raise UnsupportedSchema(f"{owner}: nothing satisfies the schema false")
        if schema is True or not ASSERTIONS & set(schema):
            return self.any(place)
        if ASSERTIONS & set(schema) == {"$ref"}:
            named = str(schema["$ref"])
            return self._ruled_value(named, resolve(named, root, owner), spot)
        parts = [part for part, _ in conjuncts(schema, root, owner)]
        whole = alone(schema, root)
        for part in parts:
            if "enum" in part or "const" in part:
                values = part["enum"] if "enum" in part else [part["const"]]
                return choice([self.constant(v, place) for v in values if satisfies(v, whole)])
        for part in parts:
            for key in ("anyOf", "oneOf"):
                if key in part:
                    return self._branches(part, key, parts, spot)
        return choice(self._kinds(whole, parts, types_of(schema, owner, root), spot))

    def _branches(
        self, part: Mapping[str, Any], key: str, parts: list[Mapping[str, Any]], spot: Spot
    ) -> Node:
        """The values of one branch each, and of all that is said besides."""
        owner, root, _ = spot
        split = Splitter(root, owner, self.loosens(owner))
        branches = part[key]
        pairs = combinations(branches, 2) if key == "oneOf" else ()
        if len(branches) > 100 or not all(split.disjoint(one, two) for one, two in pairs):
            self.loosens(owner)(key)
        said = ASSERTIONS - {"$ref", "allOf"} | {DIALECT}
        rest = [{k: v for k, v in p.items() if k in said and not (p is part and k == key)} for p in parts]
        rest = [p for p in rest if p.keys() - {DIALECT}]
        made = []
        for branch in branches:
            schema = {"allOf": [*rest, branch]} if rest else branch
            if types_of(schema, owner, root):
                ruled = self._ruled_value(json.dumps(schema), schema, spot) if rest else None
                made.append(ruled or self.value(schema, spot))
        return choice(made)

    def _kinds(
        self, whole: Any, parts: list[Mapping[str, Any]], kinds: frozenset[str], spot: Spot
    ) -> list[Node]:
        """The values type by type."""
        options: list[Node] = []
        place = spot.place
        logic = any(key in part for part in parts for key in ("not", "if"))
        if "string" in kinds:
            bounded = any(key in part for part in parts for key in _BOUNDS)
            options.append(self.string(whole, bounded, place))
        words = (("boolean", True), ("boolean", False), ("null", None))
        options += [
            self.constant(word, place)
            for kind, word in words
            if kind in kinds and (not logic or satisfies(word, whole))
        ]
        if "number" in kinds or "integer" in kinds:
            kind = "number" if "number" in kinds else "integer"
            bounds = _numbers(parts, "number" in kinds)
            options.append(self.number(of_kind(whole, kind) if logic else bounds, place))
        if "array" in kinds:
            options.append(self._array(parts, spot))
        if "object" in kinds:
            options.append(self._object(whole, spot))
        return options

    def _ruled_value(self, said: str, schema: Any, spot: Spot) -> Node:
        """A schema as a rule, for it may lead back to itself.  said: a reference to it, or its text."""
        key = (id(spot.root), said, spot.place)
        if key not in self._named:
            self._roots.append(spot.root)  # keeps the id from being used again
            self._named[key] = name = f"{self.scope}value_{len(self.rules)}"
            self.rules[name] = Seq(())
            self.rules[name] = self.value(schema, spot)
        return self.rule(self._named[key])

    def _array(self, parts: list[Mapping[str, Any]], spot: Spot) -> Node:
        for part in parts:
            for key in (*_ARRAY, "not", "if"):
                if part.get(key):
                    self.loosens(spot.owner)(key)
        firsts = [first_items(part) for part in parts]
        length = max(map(len, firsts))
        items = [further_items(part) for part in parts]
        places = [
            all_of([f[i] if i < len(f) else rest for f, rest in zip(firsts, items, strict=True)])
            for i in range(length)
        ]
        least = max((part.get("minItems", 0) for part in parts), default=0)
        bounds = [part["maxItems"] for part in parts if "maxItems" in part]
        more = all_of(items)
        if False in places:
            places, more = places[: places.index(False)], False
        inside = spot._replace(place=None)
        first = [sequence(self.value(said, inside), self.behind) for said in places]
        item = None if more is False else sequence(self.value(more, inside), self.behind)
        most = min(bounds, default=None)
        return self.array(listed(first, item, least, most, self.item_separator), spot.place)

    def _object(self, schema: Any, spot: Spot) -> Node:
        owner, root, place = spot
        definitions = {k: v for k, v in root.items() if k in DEFINITIONS}
        whole = {**definitions, **schema}
        cases = self.cases({**whole, "type": "object"}, owner, False)
        only = cases[0]
        if (
            len(cases) == 1
            and only.others is not False
            and not (only.names or only.keyed or any(only.bounds))
        ):
            return self.free_mapping(only.others, spot._replace(root=root or root_of(only.others)))
        made = self.members(whole, owner, False, "member", root)
        return choice([self.mapping(members, place) for members in made])


def unknown_name(pattern: str, declared: list[str]) -> Node:
    """The names of a pattern that are not declared."""
    names = "|".join(map(re.escape, declared))
    return Regex((rf"(?!(?:{names})\Z)" if declared else "") + pattern)


def named_by(pattern: str, schema: Any) -> Node:
    """The names of a pattern that satisfy a schema."""
    plain = {"regex": pattern, "dialect": "python"}
    return Given({"language": {"and": [plain, {"string": json.dumps(schema)}]}})


def loosened(owner: str, keyword: str) -> str:
    """What a report says of a keyword that a format can't keep."""
    return (
        f"{owner}: {keyword!r} is checked when a call is read, the format can't keep it while it is written"
    )


def _numbers(parts: list[Mapping[str, Any]], fractions: bool) -> dict[str, Any]:
    keys = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
    bounds = [{k: part[k] for k in keys if k in part} for part in parts]
    bounds = [b for b in bounds if b]
    kind = {"type": "number" if fractions else "integer"}
    return {**kind, **bounds[0]} if len(bounds) == 1 else ({**kind, "allOf": bounds} if bounds else kind)


def root_of(schema: Any) -> Mapping[str, Any]:
    """What the references of a schema that stands alone are looked up in."""
    return schema if isinstance(schema, Mapping) else {}


def texts(spelled: list[str]) -> Node:
    """One of these texts."""
    return choice([Text(text) for text in dict.fromkeys(spelled)])
