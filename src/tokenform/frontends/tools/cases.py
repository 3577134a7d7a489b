"""Which members may stand together: a schema of an object as cases that speak of members one by one.

Purpose: formats that write each argument by itself know members, which of them have to be there, and which
may not.  What binds members together (`anyOf` over the whole, `dependentRequired`, `minProperties`, `if`, …)
is a choice between such lists.
Invariant: every object that the schema allows is of one of the cases.  What is no such choice, or one of too
many, is left out of them and said to `loosen`: the reader's judge has the whole schema.
Complexity: at most `MOST` cases and `WORK` steps for each object.
Source: JSON Schema 2020-12, core and validation; `dependencies` of the drafts before.
Rejected: refusing such schemas (one tool of many took the request with it).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import combinations
from math import comb
from typing import Any

from tokenform.frontends.pattern_dialects import DIALECT
from tokenform.frontends.tools.conjuncts import conjuncts, types_of

MOST = 64
WORK = 2_000
Parts = list[Mapping[str, Any]]
# What speaks of members one by one, or of their names and number.
PLAIN = (
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
)
# Every keyword that asserts something; what is none of these annotates.
ASSERTIONS = frozenset(
    (
        *PLAIN,
        *("type", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref"),
        *("dependentRequired", "dependentSchemas", "dependencies", "$dynamicRef", "$recursiveRef"),
        *("minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum"),
        *("exclusiveMaximum", "multipleOf", "items", "prefixItems", "additionalItems", "unevaluatedItems"),
        *("contains", "minContains", "maxContains", "minItems", "maxItems", "uniqueItems"),
    )
)
# Of a part: members that another branch may declare, which count where nothing else names them.
BESIDE = "properties of other branches"


class Splitter:
    """Takes the schema of one object apart.  loosen: is told of keywords that are not kept."""

    def __init__(self, root: Mapping[str, Any], owner: str, loosen: Callable[[str], None]) -> None:
        self.root, self.owner, self.loosen = root, owner, loosen
        self._work = 0

    def split(self, schema: Any) -> list[Parts]:
        """The cases: schemas without anything that binds members together, all of which hold."""
        found: list[Parts] = [[]]
        self._work += 1
        for part, _ in conjuncts(schema, self.root, self.owner):
            kinds = part.get("type", "object")
            if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
                return []
            found = [[*case, {k: part[k] for k in (*PLAIN, DIALECT) if k in part}] for case in found]
            for keyword, ways in self._bound(part):
                joined = None if ways is None else _product(found, ways)
                if joined is None:
                    self.loosen(keyword)
                else:
                    found = joined
        return found

    def _bound(self, part: Mapping[str, Any]) -> list[tuple[str, list[Parts] | None]]:
        """For each keyword that binds members together the ways to satisfy it; None: they are not known."""
        found: list[tuple[str, list[Parts] | None]] = []
        spent = self._work > WORK
        for keyword, of in (("const", [part.get("const")]), ("enum", part.get("enum"))):
            if keyword in part:
                found.append((keyword, [[_exactly(v)] for v in of or () if isinstance(v, Mapping)]))
        for keyword in ("anyOf", "oneOf"):
            if keyword in part:
                found.append((keyword, None if spent else self._branches(part[keyword], keyword == "oneOf")))
        if "not" in part:
            found.append(("not", None if spent else self.negate(part["not"])))
        if "if" in part and not spent:
            found.append(("if", self._condition(part)))
        for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
            for key, needed in part.get(keyword, {}).items():
                there: list[Parts] | None = (
                    [[{"required": [key, *needed]}]] if isinstance(needed, list) else None
                )
                if there is None:
                    there = None if spent else _product([[{"required": [key]}]], self.split(needed))
                found.append((keyword, None if there is None else [[_without(key)], *there]))
        return found

    def _branches(self, branches: list[Any], one: bool) -> list[Parts] | None:
        split = [self.split(branch) for branch in branches]
        found: list[Parts] = []
        for index, cases in enumerate(split):
            others = [b for b in range(len(branches)) if b != index]
            near = [b for b in others if not self.disjoint(branches[index], branches[b])]
            beside = {
                key: schema
                for b in near
                for case in split[b]
                for part in case
                for key, schema in part.get("properties", {}).items()
                if schema is not False
            }
            ways = [[*case, {BESIDE: beside}] for case in cases] if beside else cases
            for b in near if one else ():
                refused = self.negate(branches[b])
                joined = None if refused is None else _product(ways, refused)
                if joined is None:
                    self.loosen("oneOf")
                    break
                ways = joined
            found += ways
        return found if len(found) <= MOST else None

    def _condition(self, part: Mapping[str, Any]) -> list[Parts] | None:
        if "then" not in part and "else" not in part:
            return [[]]
        then, otherwise = (self.split(part.get(key, True)) for key in ("then", "else"))
        refused = self.negate(part["if"])
        if refused is None:
            self.loosen("if")
            return then + otherwise
        met, unmet = _product(self.split(part["if"]), then), _product(refused, otherwise)
        return None if met is None or unmet is None else met + unmet

    def negate(self, schema: Any) -> list[Parts] | None:
        """The cases of what does not satisfy the schema; None: they are not known."""
        found: list[Parts] = []
        self._work += 1
        for part, _ in conjuncts(schema, self.root, self.owner):
            kinds = part.get("type", "object")
            if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
                return [[]]
            for key, value in part.items():
                if key == "required":
                    found += [[_without(name)] for name in value]
                elif key == "properties":
                    found += [
                        [{"required": [name], "properties": {name: {"not": said}}}]
                        for name, said in value.items()
                        if said is not True and said != {}
                    ]
                elif key == "not" and self._work <= WORK:
                    found += self.split(value)
                elif key == "anyOf" and self._work <= WORK:
                    ways: list[Parts] | None = [[]]
                    for branch in value:
                        refused = self.negate(branch)
                        ways = None if ways is None or refused is None else _product(ways, refused)
                    if ways is None:
                        return None
                    found += ways
                elif key in ASSERTIONS and key not in ("type", "$ref", "allOf"):
                    return None
        return found if len(found) <= MOST else None

    def disjoint(self, one: Any, two: Any) -> bool:
        """Whether it is plain that no value satisfies both: by types, or by a member that both ask for."""
        if not types_of(one, self.owner, self.root) & types_of(two, self.owner, self.root):
            return True
        first, second = self._tags(one), self._tags(two)
        return any(not first[key] & second[key] for key in first if key in second)

    def _tags(self, schema: Any) -> dict[str, set[str]]:
        """The values of members that have to be there and may have a few values only."""
        parts = [part for part, _ in conjuncts(schema, self.root, self.owner)]
        needed = {key for part in parts for key in part.get("required", ())}
        found: dict[str, set[str]] = {}
        for part in parts:
            for key, said in part.get("properties", {}).items():
                if key not in needed or not isinstance(said, Mapping):
                    continue
                for inner, _ in conjuncts(said, self.root, self.owner):
                    values = [inner["const"]] if "const" in inner else inner.get("enum")
                    # 1 and 1.0 are the same value: numbers tell nothing here
                    if values and all(isinstance(v, (str, bool)) for v in values):
                        found[key] = {json.dumps(v) for v in values}
        return found


def counted(parts: Parts, names: list[str], closed: bool, loosen: Callable[[str], None]) -> list[Parts]:
    """The cases of one, where it says how many members there are.  closed: no others may come besides."""
    needed = {key for part in parts for key in part.get("required", ())}
    found: list[Parts] = [parts]
    least, bound = count_bounds(parts)
    most = len(names) if bound is None else bound
    if least > len(needed):
        free = [name for name in names if name not in needed]
        more = least - len(needed)
        if not closed or comb(len(free), more) > MOST:
            loosen("minProperties")
        else:
            found = [[*parts, {"required": list(chosen)}] for chosen in combinations(free, more)]
    if bound is not None and (most < len(names) or not closed):
        free = [name for name in names if name not in needed]
        fewer = len(names) - most
        if not closed or comb(len(free), fewer) * len(found) > MOST:
            loosen("maxProperties")
        else:
            gone = [{"properties": dict.fromkeys(chosen, False)} for chosen in combinations(free, fewer)]
            found = [[*case, out] for case in found for out in gone]
    return found


def count_bounds(parts: Parts) -> tuple[int, int | None]:
    """How many members there are at least and at most."""
    least = max((int(part.get("minProperties", 0)) for part in parts), default=0)
    return least, min((int(part["maxProperties"]) for part in parts if "maxProperties" in part), default=None)


def _product(one: list[Parts], two: list[Parts]) -> list[Parts] | None:
    """Both hold; None: there are too many cases."""
    return [[*first, *second] for first in one for second in two] if len(one) * len(two) <= MOST else None


def _without(key: str) -> Mapping[str, Any]:
    return {"properties": {key: False}}


def _exactly(value: Mapping[str, Any]) -> Mapping[str, Any]:
    inside = {key: {"const": inner} for key, inner in value.items()}
    return {"properties": inside, "required": list(value), "additionalProperties": False}
