"""The keywords of JSON Schema that hold schemas: how they hold them, and which speak of the value itself."""

from __future__ import annotations

SCHEMAS = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
IN_PLACE = (
    *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref"),
    *("dependentSchemas", "dependencies"),
)
"""Those that speak of the value at whose schema they stand, not of values inside it."""
