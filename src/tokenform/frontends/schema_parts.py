"""A JSON Schema as a value: the keywords that hold schemas, those that hold values, changes of all parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

SCHEMAS = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
IN_PLACE = (
    *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref"),
    *("dependentSchemas", "dependencies"),
)
"""Those that speak of the value at whose schema they stand, not of values inside it."""
NOTES = frozenset(("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"))
"""Those that say nothing of the value."""
VALUES = ("enum", "const", "default", "examples")
"""Those that hold values, in which no schema is looked for."""


def changed(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A copy of the schema each of whose mappings is what `change` makes of it, inner ones first."""
    if isinstance(schema, list):
        return [changed(part, change) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    return change({key: one if key in VALUES else changed(one, change) for key, one in schema.items()})
