"""The arguments' schema taken apart, for formats that write each argument by itself.

Purpose: XML-like and Python-like formats need to know the members of the arguments' object, which of them are
required, and of which types each may be; whole-JSON formats hand the schema on as it is.
Invariant: every object that the schema allows is of one of the cases given out.
Complexity: linear in the schema, times its cases (`cases.py`).
Source: JSON Schema 2020-12, core and validation.
Rejected: refusing what binds the members together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from tokenform.errors import InvalidSchema
from tokenform.frontends.pattern_dialects import DIALECT
from tokenform.frontends.tools.cases import BESIDE, MOST, WORK, Parts, Splitter, count_bounds, counted
from tokenform.frontends.tools.conjuncts import DEFINITIONS, TYPES, alone, types_of
from tokenform.frontends.tools.judge import possible, satisfies

_SPOKEN = ("additionalProperties", "unevaluatedProperties", "patternProperties")
_SPEAKS = frozenset(_SPOKEN)
_BRANCHES = ("anyOf", "oneOf", "allOf", "if", "then", "else", "not")


@dataclass(frozen=True, eq=False)
class Member:
    """One argument: its key, its schema, which stands alone, and whether it has to be there.

    bare: the schema as it stands in the document.
    """

    key: str
    schema: Any
    required: bool
    bare: Any


@dataclass(frozen=True, eq=False)
class Case:
    """Members that may stand together, in the order of `properties`, then those only named as required.

    others: the schema of the members that are not declared; False: there are none.
    names: all that are declared, those too that may not come here.
    keyed: schemas of their keys, each with that of its values, where they hang together.
    bounds: how many members there are in all.
    """

    members: list[Member]
    others: Any
    names: list[str]
    keyed: list[tuple[Any, Any]] = field(default_factory=list)
    bounds: tuple[int, int | None] = (0, None)


def close(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with undeclared members forbidden, unless it says itself what it allows.

    What is required and nowhere declared may be anything.
    """
    if not _SPEAKS.isdisjoint(schema):
        return dict(schema)
    named = [schema.get("properties", {})] if "properties" in schema else []
    undeclared = _undeclared(schema)
    if undeclared:
        schema = {**schema, "properties": {**(named[0] if named else {}), **dict.fromkeys(undeclared, True)}}
    if "$ref" in schema or any(k in schema for k in ("anyOf", "oneOf", "allOf", "if", "dependentSchemas")):
        return {**schema, "unevaluatedProperties": False}
    return {**schema, "additionalProperties": False}


def _undeclared(schema: Mapping[str, Any]) -> list[str]:
    """Names that are required and declared nowhere in a schema of the same object."""
    required: list[str] = []
    declared: set[str] = set()
    waiting: list[Any] = [schema]
    for _ in range(10 * MOST):
        if not waiting:
            break
        part = waiting.pop()
        if not isinstance(part, Mapping):
            continue
        if "$ref" in part:  # what it names is in no copy of the schema: the engine reads it
            return []
        required += part.get("required", ())
        declared |= set(part.get("properties", {}))
        for key in _BRANCHES:
            inner = part.get(key, ())
            waiting += inner if isinstance(inner, list) else [inner]
        for key in ("dependentSchemas", "dependencies"):
            waiting += part.get(key, {}).values()
        for needed in [*part.get("dependentRequired", {}).values(), *part.get("dependencies", {}).values()]:
            required += needed if isinstance(needed, list) else ()
    return [key for key in dict.fromkeys(required) if key not in declared]


def member_cases(
    schema: Any,
    owner: str,
    strict: bool = True,
    loosen: Callable[[str], None] = lambda keyword: None,
    written: bool = False,
    counts: bool = False,
) -> list[Case]:
    """The members of an object schema, in each of the ways that they may stand together.

    Where the schema does not speak of members that are not declared, strict forbids them.
    loosen: is told of each keyword that the cases do not keep.
    written: the caller writes `Case.keyed`, which keeps patternProperties and propertyNames.
    counts: it counts the members, too.
    Raises:
        InvalidSchema: there are none.
    """
    root = schema if isinstance(schema, Mapping) else {}
    found: dict[str, Case] = {}
    wrong: InvalidSchema | None = None
    split = Splitter(root, owner, loosen).split(root)
    for parts in split:
        names, keyed = _names(parts), _keyed(parts, strict) if written else []
        others = True if keyed else _others(parts, strict, loosen)
        bounds = _bounds(parts, names, others is False, loosen) if counts else (0, None)
        for case in [parts] if counts else counted(parts, names, others is False, loosen):
            try:
                made = replace(_case(case, root, owner, others, len(split) > 1), bounds=bounds)
            except InvalidSchema as error:
                wrong = error
                continue
            made.keyed.extend((_besides(key, names), alone(said, root)) for key, said in keyed)
            members = [[member.key, member.bare, member.required] for member in made.members]
            found.setdefault(json.dumps([members, made.others, made.names, bounds]), made)
    if not found:
        raise wrong or InvalidSchema(f"{owner}: no object satisfies the schema")
    return list(found.values())


def _bounds(
    parts: Parts, names: list[str], closed: bool, loosen: Callable[[str], None]
) -> tuple[int, int | None]:
    """How many members there are, as far as rows can count them."""
    needed = {key for part in parts for key in part.get("required", ())}
    least, most = count_bounds(parts)
    if most is not None and closed and most >= len(names):
        most = None
    if least > len(needed) + 1 and not closed:
        loosen("minProperties")  # an unknown name may come twice, and counts once
    least = least if least > len(needed) else 0
    for keyword, bound in (("minProperties", least), ("maxProperties", most)):
        if bound and bound * len(names) > WORK:
            loosen(keyword)
            return 0, None
    return least, most


def _names(parts: Parts) -> list[str]:
    """All that are declared or required, in their order."""
    declared = [key for part in parts for key in part.get("properties", ())]
    needed = [key for part in parts for key in part.get("required", ())]
    beside = [key for part in parts for key in part.get(BESIDE, ())]
    return list(dict.fromkeys([*declared, *needed, *beside]))


def _others(parts: Parts, strict: bool, loosen: Callable[[str], None]) -> Any:
    """The schema of members that are not declared."""
    spoken = [part[key] for part in parts for key in _SPOKEN[:2] if key in part]
    patterns = [said for part in parts for said in part.get("patternProperties", {}).values()]
    others = all_of(spoken) if spoken else not strict or bool(patterns)
    if any(said is not False for said in patterns):
        loosen("patternProperties")
        others = True
    if others is not False and any("propertyNames" in part for part in parts):
        loosen("propertyNames")
    return others


_MOST_PATTERNS = 4


def _keyed(parts: Parts, strict: bool) -> list[tuple[Any, Any]]:
    """Schemas of keys that are not declared, each with that of its values, by the patterns that keys match;
    none, where keys and values don't hang together or the patterns are too many."""
    patterns = list(dict.fromkeys(p for part in parts for p in part.get("patternProperties", ())))
    allowed = [part["propertyNames"] for part in parts if "propertyNames" in part]
    if not (patterns or allowed) or len(patterns) > _MOST_PATTERNS or any(DIALECT in part for part in parts):
        return []
    spoken = any(key in part for part in parts for key in _SPOKEN)
    found: list[tuple[Any, Any]] = []
    for matched in product([True, False], repeat=len(patterns)):
        key = [*allowed, {"type": "string"}]
        key += [
            {"pattern": p} if yes else {"not": {"pattern": p}}
            for p, yes in zip(patterns, matched, strict=True)
        ]
        inside = {p for p, yes in zip(patterns, matched, strict=True) if yes}
        said: list[Any] = [] if spoken or not strict else [False]
        for part in parts:
            own = [schema for p, schema in part.get("patternProperties", {}).items() if p in inside]
            said += own or [part[k] for k in _SPOKEN[:2] if k in part]
        value = all_of(said)
        if value is not False:
            found.append(({"allOf": key}, value))
    return found


def _besides(key: dict[str, Any], names: list[str]) -> Any:
    return {"allOf": [*key["allOf"], {"not": {"enum": names}}]} if names else key


def _case(
    parts: Parts,
    root: Mapping[str, Any],
    owner: str,
    others: Any,
    judged: bool,
) -> Case:
    """judged: members that can have no value are looked for."""
    needed = {key for part in parts for key in part.get("required", ())}
    allowed = [part["propertyNames"] for part in parts if "propertyNames" in part]
    names, members = _names(parts), []
    for key in names:
        said = [_member_schema(part, key) for part in parts]
        if not any(key in part.get("properties", ()) for part in parts):
            said += [part[BESIDE][key] for part in parts if key in part.get(BESIDE, ())][:1]
        sub = all_of(said)
        if not all(satisfies(key, alone(schema, root)) for schema in allowed):
            sub = False
        schema = alone(sub, root)
        if judged and isinstance(sub, Mapping) and "allOf" in sub:
            text = json.dumps(schema)
            sub = sub if possible(text, True) or possible(text, False) else False
        if sub is not False:
            members.append(Member(key, schema, key in needed, sub))
        elif key in needed:
            raise InvalidSchema(
                f"{owner}: the argument {key!r} is required and forbidden", keyword="required"
            )
    return Case(members, others if others is False else alone(others, root), names)


def _member_schema(part: Mapping[str, Any], key: str) -> Any:
    """What one schema says of the member."""
    schemas = [part["properties"][key]] if key in part.get("properties", {}) else []
    for pattern, schema in part.get("patternProperties", {}).items():
        dialect = {DIALECT: part[DIALECT]} if DIALECT in part else {}
        if satisfies(key, {"type": "string", "pattern": pattern, **dialect}):
            schemas.append(schema)
    return all_of(schemas) if schemas else part.get("additionalProperties", True)


def all_of(schemas: list[Any]) -> Any:
    """The schema of what satisfies all of them."""
    constraints = [schema for schema in schemas if schema is not True]
    if False in constraints:
        return False
    return (constraints[0] if len(constraints) == 1 else {"allOf": constraints}) if constraints else True


def without_strings(schema: Any, owner: str) -> Any:
    """The same schema with strings left out."""
    kinds = [t for t in TYPES if t != "string" and t in types_of(schema, owner)]
    if "number" in kinds and "integer" in kinds:
        kinds.remove("integer")
    return of_kind(schema, kinds)


def of_kind(schema: Any, kind: str | list[str]) -> Any:
    """The same schema for values of one type alone, or of some."""
    if not isinstance(schema, Mapping):
        return {"type": kind}
    definitions = {d: schema[d] for d in DEFINITIONS if d in schema}
    inner = {k: v for k, v in schema.items() if k not in DEFINITIONS}
    if set(inner) <= {"type"}:
        return {**definitions, "type": kind}
    return {**definitions, "type": kind, "allOf": [inner]}


def dump(value: Any) -> str:
    """A value as the formats' templates write it: one space after `,` and `:`, Unicode as it is."""
    return json.dumps(value, ensure_ascii=False)
