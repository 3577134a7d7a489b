"""Subschemas: what must hold together, what references name, which types a value may have.

Purpose: what every part that takes schemas apart asks of one.
Invariant: every subschema given out stands alone: the definitions that its references name travel with it.
Complexity: linear in the schema; a reference is followed once per chain (cycles of bare references are
refused).
Source: JSON Schema 2020-12, core.
Rejected: references outside of the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenform.errors import InvalidSchema, UnsupportedSchema

TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
DEFINITIONS = ("$defs", "definitions")
# What says nothing of values.
ANNOTATIONS = (
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
)


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


def alone(schema: Any, root: Mapping[str, Any]) -> Any:
    """A subschema as a document of its own: the root's definitions are put beside it."""
    if not isinstance(schema, Mapping):
        return schema
    references = _references(schema)
    if not references:
        return dict(schema)
    if any(not r.startswith(tuple(f"#/{d}/" for d in DEFINITIONS)) for r in references):
        # The whole document travels along, under a name of its own that the references are turned to.
        return {**_turned(schema), "$defs": {"root": _turned(root)}}
    return {**{d: root[d] for d in DEFINITIONS if d in root}, **schema}


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


def first_items(part: Mapping[str, Any]) -> list[Any]:
    """The schemas of a list's first items."""
    items = part.get("items")
    return items if isinstance(items, list) else list(part.get("prefixItems", ()))


def further_items(part: Mapping[str, Any]) -> Any:
    """The schema of its further items."""
    items = part.get("items", True)
    return part.get("additionalItems", True) if isinstance(items, list) else items
