"""Where a string of a schema may be a text of a grammar that is not regular.

Purpose: such a grammar can be joined with other languages and not cut or denied, so that a schema may say
nothing else of the same string: a sibling's `pattern`, `not`, `oneOf`, the name of a property.
Invariant: a place that is let through stands in properties, items, unions (`anyOf`, or `oneOf` with a
discriminator) and definitions alone, beside schemas in place that say nothing of strings.  A regular grammar
is a language of the schema's own, and may stand anywhere.
Complexity: linear in the schema for each place.
Rejected: to ask the formulas (languages of strings hold no texts that stand for others).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tokenform.errors import UnsupportedSchema
from tokenform.frontends.json_pointer import pointed
from tokenform.frontends.schema_parts import IN_PLACE

_PLAIN = {"properties", "patternProperties", "$defs", "definitions", "prefixItems", "items", "anyOf", "allOf"}
_SINGLE = {"items", "additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems"}
_BESIDE = (*IN_PLACE, "$dynamicRef")
_OF_STRINGS = {"pattern", "minLength", "maxLength", "enum", "const", "format", "not"}
_OTHERS = {"not", "if", "oneOf", "contains", "propertyNames", "dependentSchemas", "dependencies"}


def check_place(schema: Any, pointer: str) -> None:
    """Raise UnsupportedSchema unless the strings at a JSON Pointer are bound by their grammar alone."""
    at, path = schema, pointer.split("/")[1:]
    places = {pointer}
    while path:
        key = path.pop(0)
        if key not in _PLAIN | _SINGLE and not _is_tagged(at, key):
            raise _refusal(pointer, key)
        if key not in ("$defs", "definitions"):
            _check_beside(schema, at, key, path[0] if path else "", pointer)
        at = at[key]
        if isinstance(at, list) or (key in _PLAIN - {"items"} and isinstance(at, dict)):
            at = pointed(at, f"/{path.pop(0)}")
        steps = pointer.split("/")
        places.add("/".join(steps[: len(steps) - len(path)]))
    _check_beside(schema, at, "", "", pointer)
    if any("#" + place in _references(part) for place in places for part in _denied(schema)):
        raise _refusal(pointer, "$ref")


def _check_beside(schema: Any, node: Any, taken: str, step: str, pointer: str) -> None:
    """What else is said at a node of the way of the same value, or of the same property."""
    if taken == "items" and node.get("uniqueItems"):
        raise _refusal(pointer, "uniqueItems")
    for keyword in _BESIDE:
        said = node.get(keyword)
        if keyword == taken and isinstance(said, list):
            said = [part for number, part in enumerate(said) if str(number) != step]
        union = keyword == taken and keyword != "allOf"
        if keyword in node and not union and _mentions(schema, {keyword: said}, set()):
            raise _refusal(pointer, keyword)
    if taken == "properties" and _mentions(schema, node.get("patternProperties", {}), set()):
        raise _refusal(pointer, "patternProperties")


def _mentions(schema: Any, part: Any, seen: set[str]) -> bool:
    """Whether something in a part of the schema, or where it refers to, is said of strings."""
    for keyword, value in _members(part):
        if keyword in _OF_STRINGS:
            return True
        if keyword.endswith("Ref") or keyword == "$ref":
            if not isinstance(value, str) or not value.startswith("#/"):
                return True  # somewhere else: what it says is not looked up
            if value not in seen and _mentions(schema, pointed(schema, value), seen | {value}):
                return True
    return False


def _members(part: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(part, Mapping):
        for keyword, value in part.items():
            yield keyword, value
            yield from _members(value)
    elif isinstance(part, list):
        for inner in part:
            yield from _members(inner)


def _nodes(part: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(part, Mapping):
        yield part
    for inner in part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ():
        yield from _nodes(inner)


def _denied(schema: Any) -> list[Any]:
    """What is denied, counted, or said of names; tags keep the parts of a union apart."""
    tagged = [part["oneOf"] for part in _nodes(schema) if _is_tagged(part, "oneOf")]
    found = [value for keyword, value in _members(schema) if keyword in _OTHERS]
    return [value for value in found if not any(value is one for one in tagged)]


def _is_tagged(node: Any, keyword: str) -> bool:
    return keyword == "oneOf" and isinstance(node, Mapping) and "oneOf" in node and "discriminator" in node


def _references(part: Any) -> set[Any]:
    return {value for keyword, value in _members(part) if keyword == "$ref" and isinstance(value, str)}


def _refusal(pointer: str, keyword: str) -> UnsupportedSchema:
    return UnsupportedSchema(
        f"the grammar of the strings at {pointer!r} is not regular, and {keyword!r} may say more of them; "
        "say it in the grammar, or give a regular one (tf.regex, tf.choice).",
        pointer=pointer,
        keyword=keyword,
    )
