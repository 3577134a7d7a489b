"""A JSON Schema whose objects have the keys that it declares, and no others: what a model writes of it.

Purpose: an object that names its `properties` and says nothing of others admits any.  Who writes such a
schema means the keys in it; a model that may go on after them goes on and on (`docs/decisions.md`).
Invariant: each document of the result is one of the schema's.  So an object is closed only where that can do
nothing else: never below `not`, `oneOf`, `if` or `contains`, where fewer documents of a part are more of the
whole, nor below `allOf`, whose parts name each other's keys; and only where it names all that it demands.
Rejected: `unevaluatedProperties: false` everywhere, which closes unions, too (older drafts don't have it).
Complexity: linear in the schema and its local references.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

from tokenform.frontends.json_pointer import pointed
from tokenform.frontends.schema_parts import IN_PLACE

_OF_OTHERS = (
    *("additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames"),
    *("minProperties", "dependentRequired"),
)
_VALUES = ("additionalProperties", "items", "prefixItems", "additionalItems")
_MAPS = ("properties", "patternProperties")
_ELSEWHERE = ("$dynamicRef", "$recursiveRef")


class _NotFollowed(Exception):
    """The schema has something that is not followed here."""


@functools.lru_cache(32)
def closed(text: str) -> str | None:
    """The schema's text with its objects closed; None where none is, or where it can't be told.

    >>> closed('{"properties": {"a": {}}}')
    '{"properties": {"a": {}}, "additionalProperties": false}'
    """
    try:
        schema = json.loads(text, parse_float=_exact, object_pairs_hook=_unique)
        found = _closable(schema)
    except (_NotFollowed, RecursionError, ValueError):
        return None
    for node in found:
        node["additionalProperties"] = False
    return json.dumps(schema, ensure_ascii=False) if found else None


def _exact(text: str) -> float:
    value = float(text)
    if repr(value) != text:
        raise _NotFollowed
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _NotFollowed
    return made


def _closable(schema: Any) -> list[dict[str, Any]]:
    """The objects to be closed: those that stand as values wherever they stand."""
    values, parts = dict[int, dict[str, Any]](), set[int]()
    waiting = [(schema, True)]
    while waiting:
        node, alone = waiting.pop()
        if not isinstance(node, dict) or id(node) in (values if alone else parts):
            continue
        if alone:
            values[id(node)] = node
        else:
            parts.add(id(node))
        if any(key in node for key in _ELSEWHERE):
            raise _NotFollowed
        if node is not schema and ("$id" in node or isinstance(node.get("id"), str)):
            raise _NotFollowed
        waiting.extend(_inside(node, schema, alone))
    return [node for name, node in values.items() if name not in parts and _is_closable(node)]


def _is_closable(node: dict[str, Any]) -> bool:
    declared, demanded = node.get("properties"), node.get("required", ())
    if not isinstance(declared, dict) or not isinstance(demanded, list | tuple):
        return False
    return all(name in declared for name in demanded) and not any(
        name in node for name in (*_OF_OTHERS, *IN_PLACE)
    )


def _inside(node: dict[str, Any], root: Any, alone: bool) -> Iterator[tuple[Any, bool]]:
    """(subschema, whether it alone says what a value is, and its documents are all of the whole)."""
    several = sum(name in node for name in IN_PLACE)
    free = alone and not several and "contains" not in node
    maps = sum(len(below) for name in _MAPS[1:] if isinstance(below := node.get(name), dict))
    for name in _MAPS:
        below, one_each = node.get(name), not maps or (maps == 1 and "properties" not in node)
        yield from ((one, free and one_each) for one in below.values()) if isinstance(below, dict) else ()
    for name in _VALUES:
        below = node.get(name)
        yield from ((one, free) for one in (below if isinstance(below, list) else [below]))
    plain = alone and several == 1 and not any(name in node for name in (*_MAPS, *_VALUES, *_OF_OTHERS))
    for name in ("anyOf", "allOf", "oneOf"):
        below = node.get(name)
        one_each = name == "anyOf" or (name == "allOf" and len(below or ()) == 1)
        yield from ((one, plain and one_each) for one in below) if isinstance(below, list) else ()
    if "$ref" in node:
        yield _target(node["$ref"], root), plain
    for name in ("not", "if", "then", "else", "contains", "unevaluatedItems", "unevaluatedProperties"):
        yield node.get(name), False
    for name in ("dependentSchemas", "dependencies"):
        below = node.get(name)
        yield from ((one, False) for one in below.values()) if isinstance(below, dict) else ()


def _target(reference: Any, root: Any) -> Any:
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise _NotFollowed
    try:
        return pointed(root, reference)
    except LookupError:
        raise _NotFollowed from None
