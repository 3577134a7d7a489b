"""Schemas as zod-to-json-schema, drf-spectacular and FastAPI write them; transcribed from their formats."""

from __future__ import annotations

from typing import Any

# One shape each: (name, schema, documents).
ZOD: list[tuple[str, dict[str, Any], list[Any]]] = [
    (
        "object",
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "number"}},
            "required": ["a"],
            "additionalProperties": False,
            "$schema": "http://json-schema.org/draft-07/schema#",
        },
        [{"a": "x"}, {"a": "x", "b": 1.5}, {"b": 1}, {"a": "x", "c": 1}],
    ),
    (
        "passthrough",
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
            "additionalProperties": True,
        },
        [{"a": 1, "z": [1]}, {}],
    ),
    (
        "catchall",
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
            "additionalProperties": {"type": "number"},
        },
        [{"a": "x", "n": 2}, {"a": "x", "n": "2"}],
    ),
    ("nullable", {"type": ["string", "null"]}, ["x", None, 1]),
    (
        "nullable object",
        {"anyOf": [{"type": "object", "properties": {}, "additionalProperties": False}, {"type": "null"}]},
        [{}, None, {"a": 1}],
    ),
    ("nullish", {"anyOf": [{"anyOf": [{"not": {}}, {"type": "string"}]}, {"type": "null"}]}, ["x", None, 1]),
    ("enum", {"type": "string", "enum": ["a", "b"]}, ["a", "c"]),
    ("native enum", {"type": ["string", "number"], "enum": ["a", 1]}, ["a", 1, 2, "1"]),
    ("literal", {"type": "string", "const": "a"}, ["a", "b"]),
    (
        "union of literals",
        {"type": ["string", "number", "boolean"], "enum": ["a", 1, True]},
        ["a", True, False],
    ),
    ("plain union", {"type": ["string", "number"]}, ["a", 1, None]),
    (
        "discriminated union",
        {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"t": {"type": "string", "const": "a"}, "v": {"type": "string"}},
                    "required": ["t", "v"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"t": {"type": "string", "const": "b"}, "v": {"type": "number"}},
                    "required": ["t", "v"],
                    "additionalProperties": False,
                },
            ]
        },
        [{"t": "a", "v": "x"}, {"t": "b", "v": 1}, {"t": "b", "v": "x"}],
    ),
    (
        "intersection",
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
            ],
            "unevaluatedProperties": False,
        },
        [{"a": "x", "b": "y"}, {"a": "x"}, {"a": "x", "b": "y", "c": 1}],
    ),
    (
        "tuple",
        {"type": "array", "minItems": 2, "maxItems": 2, "items": [{"type": "string"}, {"type": "number"}]},
        [["a", 1], ["a"], [1, "a"]],
    ),
    (
        "tuple with rest",
        {
            "type": "array",
            "minItems": 1,
            "items": [{"type": "string"}],
            "additionalItems": {"type": "number"},
        },
        [["a"], ["a", 1, 2], ["a", "b"]],
    ),
    ("record", {"type": "object", "additionalProperties": {"type": "number"}}, [{"a": 1}, {"a": "x"}]),
    (
        "record of an enum",
        {"type": "object", "additionalProperties": {"type": "number"}, "propertyNames": {"enum": ["a", "b"]}},
        [{"a": 1}, {"c": 1}],
    ),
    (
        "map",
        {
            "type": "array",
            "maxItems": 125,
            "items": {
                "type": "array",
                "items": [{"type": "string"}, {"type": "number"}],
                "minItems": 2,
                "maxItems": 2,
            },
        },
        [[["a", 1]], [["a"]]],
    ),
    ("set", {"type": "array", "uniqueItems": True, "items": {"type": "string"}}, [["a", "b"], ["a", "a"]]),
    ("array", {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3}, [["a"], []]),
    ("integer", {"type": "integer", "exclusiveMinimum": 0, "maximum": 9007199254740991}, [1, 0, 1.5]),
    ("multiple", {"type": "number", "multipleOf": 0.01, "minimum": 0}, [1.25, 1.255]),
    ("email", {"type": "string", "format": "email"}, ["a@b.co", "a"]),
    ("uuid", {"type": "string", "format": "uuid"}, ["3fa85f64-5717-4562-b3fc-2c963f66afa6", "x"]),
    ("url", {"type": "string", "format": "uri"}, ["https://a.example/x", "no uri"]),
    ("datetime", {"type": "string", "format": "date-time"}, ["2024-01-01T00:00:00Z", "2024-01-01"]),
    ("date", {"type": "string", "format": "date"}, ["2024-02-29", "2023-02-29"]),
    (
        "ip",
        {"anyOf": [{"type": "string", "format": "ipv4"}, {"type": "string", "format": "ipv6"}]},
        ["1.2.3.4", "::1", "1.2.3"],
    ),
    ("cuid", {"type": "string", "pattern": "^[cC][^\\s-]{8,}$"}, ["cjld2cjxh0000", "x"]),
    ("trimmed", {"type": "string", "minLength": 1, "maxLength": 5}, ["abc", "", "abcdef"]),
    ("starts with", {"type": "string", "pattern": "^abc"}, ["abcd", "xabc"]),
    ("base64", {"type": "string", "contentEncoding": "base64"}, ["YQ==", "a"]),
    (
        "default",
        {
            "type": "object",
            "properties": {"a": {"type": "string", "default": "x"}},
            "additionalProperties": False,
        },
        [{}, {"a": "y"}, {"a": 1}],
    ),
    (
        "lazy",
        {
            "$ref": "#/definitions/Node",
            "definitions": {
                "Node": {
                    "type": "object",
                    "properties": {"v": {"type": "string"}, "next": {"$ref": "#/definitions/Node"}},
                    "required": ["v"],
                    "additionalProperties": False,
                }
            },
        },
        [{"v": "a", "next": {"v": "b"}}, {"v": 1}],
    ),
    (
        "reused by path",
        {
            "type": "object",
            "properties": {
                "a": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]},
                "b": {"$ref": "#/properties/a"},
            },
            "required": ["a", "b"],
            "additionalProperties": False,
        },
        [{"a": {"x": "1"}, "b": {"x": "2"}}, {"a": {"x": "1"}, "b": {}}],
    ),
    ("any", {}, [1, {"a": []}, None]),
    ("never", {"not": {}}, []),
    ("bigint", {"type": "integer", "format": "int64"}, [1, 1.5]),
]

DJANGO: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("slug", {"type": "string", "maxLength": 50, "pattern": "^[-a-zA-Z0-9_]+$"}, ["red-shoes", "red shoes"]),
    (
        "decimal",
        {"type": "string", "format": "decimal", "pattern": "^-?\\d{0,8}(?:\\.\\d{0,2})?$"},
        ["12.50", "-3", "1.234"],
    ),
    ("choices", {"enum": ["new", "paid"], "type": "string", "description": "* `new` - New"}, ["new", "x"]),
    ("blank choice", {"oneOf": [{"enum": ["new"], "type": "string"}, {"enum": [""]}]}, ["new", "", "x"]),
    (
        "null choice",
        {"oneOf": [{"enum": ["new"], "type": "string"}, {"enum": [""]}, {"enum": [None]}]},
        ["new", None, "y"],
    ),
    (
        "read only",
        {
            "type": "object",
            "properties": {
                "id": {"type": "integer", "readOnly": True},
                "name": {"type": "string", "maxLength": 100},
            },
            "required": ["id", "name"],
        },
        [{"id": 1, "name": "x"}, {"name": "x"}],
    ),
    (
        "page",
        {
            "type": "object",
            "required": ["count", "results"],
            "properties": {
                "count": {"type": "integer", "example": 123},
                "next": {"type": ["string", "null"], "format": "uri"},
                "results": {"type": "array", "items": {"$ref": "#/components/schemas/Item"}},
            },
            "components": {
                "schemas": {
                    "Item": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
                }
            },
        },
        [{"count": 1, "next": None, "results": [{"n": 1}]}, {"count": 1, "results": [{}]}],
    ),
    ("integer field", {"type": "integer", "maximum": 2147483647, "minimum": 0}, [7, -1]),
    ("duration", {"type": "string"}, ["1 02:03:04"]),
    ("json field", {}, [{"a": 1}, None]),
    (
        "list field",
        {"type": "array", "items": {"type": "string", "format": "uuid"}},
        [["3fa85f64-5717-4562-b3fc-2c963f66afa6"], ["x"]],
    ),
]

FASTAPI: list[tuple[str, dict[str, Any], list[Any]]] = [
    (
        "item",
        {
            "$ref": "#/components/schemas/Item",
            "components": {
                "schemas": {
                    "Item": {
                        "properties": {
                            "name": {"type": "string", "title": "Name"},
                            "tags": {
                                "items": {"type": "string"},
                                "type": "array",
                                "title": "Tags",
                                "default": [],
                            },
                            "owner": {"anyOf": [{"$ref": "#/components/schemas/User"}, {"type": "null"}]},
                        },
                        "type": "object",
                        "required": ["name"],
                        "title": "Item",
                    },
                    "User": {
                        "properties": {"id": {"type": "string", "format": "uuid", "title": "Id"}},
                        "type": "object",
                        "required": ["id"],
                        "title": "User",
                    },
                }
            },
        },
        [
            {"name": "x", "owner": None},
            {"name": "x", "owner": {"id": "3fa85f64-5717-4562-b3fc-2c963f66afa6"}},
            {"owner": None},
        ],
    ),
    (
        "validation error",
        {
            "properties": {
                "loc": {
                    "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                    "type": "array",
                    "title": "Location",
                },
                "msg": {"type": "string"},
                "type": {"type": "string"},
            },
            "type": "object",
            "required": ["loc", "msg", "type"],
        },
        [{"loc": ["body", 0], "msg": "m", "type": "t"}, {"loc": [None], "msg": "m", "type": "t"}],
    ),
    (
        "discriminated",
        {
            "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
            "discriminator": {
                "propertyName": "kind",
                "mapping": {"cat": "#/components/schemas/Cat", "dog": "#/components/schemas/Dog"},
            },
            "components": {
                "schemas": {
                    "Cat": {
                        "type": "object",
                        "properties": {"kind": {"const": "cat", "type": "string"}},
                        "required": ["kind"],
                    },
                    "Dog": {
                        "type": "object",
                        "properties": {"kind": {"const": "dog", "type": "string"}, "n": {"type": "integer"}},
                        "required": ["kind", "n"],
                    },
                }
            },
        },
        [{"kind": "cat"}, {"kind": "dog", "n": 1}, {"kind": "dog"}],
    ),
    (
        "bounded query",
        {"type": "integer", "maximum": 100, "exclusiveMinimum": 0, "default": 10, "title": "Limit"},
        [10, 0, 101],
    ),
]
