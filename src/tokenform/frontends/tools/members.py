"""The arguments' schema taken apart, for formats that write each argument by itself.

Purpose: XML-like and Python-like formats need to know the members of the arguments' object, which of them are
required, and of which types each may be; whole-JSON formats hand the schema on as it is.
Invariant: every subschema given out stands alone: the definitions that its references name travel with it.
Complexity: linear in the schema; a reference is followed once per chain (cycles of bare references are
refused).
Source: JSON Schema 2020-12, core and validation.
Rejected: flattening every applicator (`not`, `if`, `dependentSchemas` … over the members as a whole); such a
schema is refused in these formats, with the keyword, and works in all formats that write JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tokenform.errors import InvalidSchema, UnsupportedSchema

TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_DEFINITIONS = ("$defs", "definitions")
_OVER_MEMBERS = (
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "patternProperties",
    "unevaluatedProperties",
    "enum",
    "const",
)


@dataclass(frozen=True, eq=False)
class Member:
    """One argument: its key, its schema, which stands alone, and whether it has to be there."""

    key: str
    schema: Any
    required: bool


def close(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with undeclared members forbidden, unless it says itself what it allows."""
    if any(k in schema for k in ("additionalProperties", "unevaluatedProperties", "patternProperties")):
        return dict(schema)
    if "$ref" in schema or any(k in schema for k in ("anyOf", "oneOf", "allOf", "if", "dependentSchemas")):
        return {**schema, "unevaluatedProperties": False}
    return {**schema, "additionalProperties": False}


def members(schema: Any, owner: str, strict: bool = True) -> tuple[list[Member], Any]:
    """The members of an object schema, in the order of `properties`, then those only named as required.

    Returns: with them the schema of the members that are not declared; False: there are none.  Where the
        schema does not speak of those, strict forbids them.
    Raises:
        UnsupportedSchema: a keyword binds the members together in a way that one-by-one writing can't keep.
    """
    root = schema if isinstance(schema, Mapping) else {}
    parts = [part for part, _ in conjuncts(root, root, owner)]
    for part in parts:
        for keyword in _OVER_MEMBERS:
            if keyword in part and not (keyword.endswith("Properties") and not part[keyword]):
                raise UnsupportedSchema(
                    f"{owner}: {keyword!r} over the arguments as a whole can't be kept in a format that"
                    " writes each argument by itself; choose a format that writes JSON",
                    pointer=f"/{keyword}",
                    keyword=keyword,
                )
    needed = {key for part in parts for key in part.get("required", ())}
    declared = [key for part in parts for key in part.get("properties", ())]
    found: list[Member] = []
    for key in dict.fromkeys([*declared, *(key for part in parts for key in part.get("required", ()))]):
        said = [part.get("properties", {}).get(key, part.get("additionalProperties", True)) for part in parts]
        sub = _all_of(said)
        if sub is not False:
            found.append(Member(key, alone(sub, root, owner), key in needed))
        elif key in needed:
            raise InvalidSchema(
                f"{owner}: the argument {key!r} is required and forbidden", keyword="required"
            )
    spoken = [part["additionalProperties"] for part in parts if "additionalProperties" in part]
    others = _all_of(spoken) if spoken else not strict
    return found, others if others is False else alone(others, root, owner)


def _all_of(schemas: list[Any]) -> Any:
    """The schema of what satisfies all of them."""
    left = [schema for schema in schemas if schema is not True]
    if False in left:
        return False
    return (left[0] if len(left) == 1 else {"allOf": left}) if left else True


def conjuncts(
    schema: Any, root: Mapping[str, Any], owner: str, followed: frozenset[str] = frozenset()
) -> list[tuple[Mapping[str, Any], frozenset[str]]]:
    """The schema objects that must all hold: the schema itself, what it refers to, branches of `allOf`.

    Each comes with the references that led to it, beginning with those `followed` before.
    """
    result: list[tuple[Mapping[str, Any], frozenset[str]]] = []
    stack: list[tuple[Any, frozenset[str]]] = [(schema, followed)]
    while stack:
        part, trail = stack.pop()
        if part is True:
            continue
        if not isinstance(part, Mapping):
            part = {"not": {}}
        result.append((part, trail))
        if "$ref" in part:
            reference = str(part["$ref"])
            if reference in trail - followed:
                raise InvalidSchema(f"{owner}: {reference!r} refers to itself", keyword="$ref")
            stack.append((resolve(reference, root, owner), trail | {reference}))
        stack.extend((branch, trail) for branch in reversed(part.get("allOf", [])))
    return result


def resolve(reference: str, root: Mapping[str, Any], owner: str) -> Any:
    """What a reference inside the document names."""
    value: Any = root
    if reference != "#" and not reference.startswith("#/"):
        raise UnsupportedSchema(
            f"{owner}: only references like '#/$defs/…' are read, not {reference!r}", keyword="$ref"
        )
    for step in reference[2:].split("/") if reference != "#" else ():
        step = step.replace("~1", "/").replace("~0", "~").replace("%25", "%")
        if not isinstance(value, Mapping) or step not in value:
            raise InvalidSchema(f"{owner}: {reference!r} names nothing", keyword="$ref")
        value = value[step]
    return value


def alone(schema: Any, root: Mapping[str, Any], owner: str) -> Any:
    """A subschema as a document of its own: the root's definitions are put beside it."""
    if not isinstance(schema, Mapping):
        return schema
    references = _references(schema)
    if not references:
        return dict(schema)
    if any(not r.startswith(tuple(f"#/{d}/" for d in _DEFINITIONS)) for r in references):
        # The whole document travels along, under a name of its own that the references are turned to.
        return {**_turned(schema), "$defs": {"root": _turned(root)}}
    return {**{d: root[d] for d in _DEFINITIONS if d in root}, **schema}


def _turned(value: Any) -> Any:
    """The same schema with its references pointing below `#/$defs/root`."""
    if isinstance(value, Mapping):
        return {
            k: "#/$defs/root" + v[1:]
            if k == "$ref" and isinstance(v, str) and v.startswith("#")
            else _turned(v)
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [_turned(v) for v in value]
    return value


def _references(value: Any) -> set[str]:
    """The references anywhere in a schema."""
    found: set[str] = set()
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, Mapping):
            if isinstance(inner.get("$ref"), str):
                found.add(inner["$ref"])
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
    return found


def types_of(
    schema: Any,
    owner: str,
    root: Mapping[str, Any] | None = None,
    followed: frozenset[str] = frozenset(),
) -> frozenset[str]:
    """The types that a value may have, by the keywords that speak of types; "number" includes "integer".

    An upper bound: other keywords may forbid more.  A branch that leads back to itself adds nothing.
    """
    root = root if root is not None else (schema if isinstance(schema, Mapping) else {})
    allowed = frozenset(TYPES)
    for part, trail in conjuncts(schema, root, owner, followed):
        kinds = part.get("type")
        if kinds is not None:
            named = {kinds} if isinstance(kinds, str) else set(kinds)
            allowed &= named | ({"integer"} if "number" in named else set())
        if "const" in part:
            allowed &= _kinds_of([part["const"]])
        if "enum" in part:
            allowed &= _kinds_of(part["enum"])
        for keyword in ("anyOf", "oneOf"):
            if keyword in part:
                branches = [
                    types_of(b, owner, root, trail)
                    for b in part[keyword]
                    if not (isinstance(b, Mapping) and b.get("$ref") in trail)
                ]
                allowed &= frozenset().union(*branches)
        if part.get("not") == {} or part.get("not") is True:
            allowed = frozenset()
    return allowed


def _kinds_of(values: list[Any]) -> frozenset[str]:
    kinds: set[str] = set()
    for value in values:
        if isinstance(value, bool):
            kinds.add("boolean")
        elif isinstance(value, (int, float)):
            kinds |= {"integer", "number"} if float(value).is_integer() else {"number"}
        else:
            kinds.add({str: "string", type(None): "null", list: "array", dict: "object"}[type(value)])
    return frozenset(kinds)


def without_strings(schema: Any, owner: str) -> Any:
    """The same schema with strings left out."""
    kinds = [t for t in TYPES if t != "string" and t in types_of(schema, owner)]
    if "number" in kinds and "integer" in kinds:
        kinds.remove("integer")
    if not isinstance(schema, Mapping):
        return {"type": kinds}
    definitions = {d: schema[d] for d in _DEFINITIONS if d in schema}
    inner = {k: v for k, v in schema.items() if k not in _DEFINITIONS}
    if isinstance(inner.get("type"), (str, list)) and len(inner) == 1:
        return {**definitions, "type": kinds}
    return {**definitions, "type": kinds, "allOf": [inner]}


def of_kind(schema: Any, kind: str) -> Any:
    """The same schema for values of one type alone."""
    if not isinstance(schema, Mapping):
        return {"type": kind}
    definitions = {d: schema[d] for d in _DEFINITIONS if d in schema}
    inner = {k: v for k, v in schema.items() if k not in _DEFINITIONS}
    return {**definitions, "type": kind, "allOf": [inner]} if inner else {**definitions, "type": kind}


def dump(value: Any) -> str:
    """A value as the formats' templates write it: one space after `,` and `:`, Unicode as it is."""
    return json.dumps(value, ensure_ascii=False)
