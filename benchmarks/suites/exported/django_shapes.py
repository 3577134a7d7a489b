"""Serializers of Django REST framework at random, as drf-spectacular writes them into OpenAPI 3.0.

Source: drf-spectacular's documentation and what its 0.30 writes for each field of the framework's reference.
`nullable`, `readOnly`, `writeOnly` and `discriminator` say nothing to a validator of JSON Schema, so the
documents are those of the fields alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Value = Callable[[random.Random], Any]
Made = tuple[dict[str, Any], Value]


def _of(*values: Any) -> Value:
    return lambda rng: rng.choice(values)


# Fields by the framework's names, with texts that their own validators take.
FIELDS: list[Made] = [
    ({"type": "string"}, _of("", "red")), ({"type": "string", "maxLength": 50}, _of("red")),
    ({"type": "string", "minLength": 1, "maxLength": 5}, _of("red")),
    ({"type": "string", "format": "email", "maxLength": 254}, _of("me@example.org")),
    ({"type": "string", "maxLength": 50, "pattern": "^[-a-zA-Z0-9_]+$"}, _of("red-shoes")),
    ({"type": "string", "maxLength": 50, "pattern": "^[-a-zA-Z0-9_]+\\Z"}, _of("red-shoes")),
    ({"type": "string", "maxLength": 50, "pattern": "^[-\\w]+\\Z"}, _of("red-shoes")),
    ({"type": "string", "pattern": "^[\\w.@+-]+$", "maxLength": 150,
      "description": "Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only."},
     _of("me.too@x")),
    ({"type": "string", "pattern": "^[\\w.@+-]+\\Z", "maxLength": 150}, _of("me.too@x")),
    ({"type": "string", "format": "uri", "maxLength": 200}, _of("https://a.example/x")),
    ({"type": "string", "format": "uri", "maxLength": 200,
      "pattern": "^(?:[a-z0-9.+-]*)://(?:[^\\s:@/]+(?::[^\\s:@/]*)?@)?(?:[a-z0-9-]+\\.)+"
      "[a-z]{2,63}(?:[/?#][^\\s]*)?\\Z"},
     _of("https://a.example/x")),
    ({"type": "string", "format": "uuid"}, _of("3fa85f64-5717-4562-b3fc-2c963f66afa6")),
    ({"type": "string", "format": "date"}, _of("2024-02-29")),
    ({"type": "string", "format": "date-time"},
     _of("2024-02-29T10:00:00Z", "2024-02-29T10:00:00.123456+02:00")),
    ({"type": "string", "format": "time"}, _of("10:00:00Z")), ({"type": "string"}, _of("3 00:00:10")),
    ({"type": "string", "format": "decimal", "pattern": "^-?\\d{0,8}(?:\\.\\d{0,2})?$"}, _of("12.50", "-1")),
    ({"type": "string", "format": "binary"}, _of("x")), ({"type": "string", "format": "byte"}, _of("YQ==")),
    ({"type": "string", "format": "ipv4"}, _of("1.2.3.4")),
    ({"type": "string", "format": "ipv6"}, _of("::1")),
    ({"type": "string", "pattern": "^(?i:(?:[0-9a-f]{2}:){5}[0-9a-f]{2})$"}, _of("aa:BB:cc:dd:EE:ff")),
    ({"type": "string", "pattern": "^(?P<area>\\d{3})-(?P<rest>\\d{4})\\Z"}, _of("555-0100")),
    ({"type": "string", "pattern": "^\\+?1?\\d{9,15}$"}, _of("+491234567890")),
    ({"type": "integer"}, _of(1, -3)),
    ({"type": "integer", "maximum": 2147483647, "minimum": -2147483648}, _of(7)),
    ({"type": "integer", "maximum": 2**63 - 1, "minimum": -(2**63), "format": "int64"}, _of(7)),
    ({"type": "integer", "maximum": 32767, "minimum": 0}, _of(0, 9)),
    ({"type": "number", "format": "double"}, _of(1.5, 2)), ({"type": "boolean"}, _of(True, False)),
    ({"type": "number", "format": "double", "maximum": 1000000, "minimum": -1000000, "exclusiveMaximum": True,
      "exclusiveMinimum": True}, _of(12.5)),
    ({}, _of(1, "x", [1], {"a": 1})), ({"type": "object", "additionalProperties": {}}, _of({}, {"k": [1]})),
    ({"type": "object", "additionalProperties": {"type": "string"}}, _of({"k": "v"})),
    ({"type": "array", "items": {"type": "string", "maxLength": 9}}, _of([], ["a"])),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 4}, _of([1])),
    ({"enum": ["a", "b"], "type": "string", "description": "* `a` - A\n* `b` - B"}, _of("a", "b")),
    ({"enum": [0, 1], "type": "integer"}, _of(0, 1)),
]  # fmt: skip
_ENUMS: dict[str, Any] = {
    "StatusEnum": {
        "enum": ["draft", "done"],
        "type": "string",
        "description": "* `draft` - Draft\n* `done` - Done",
    },
    "BlankEnum": {"enum": [""]},
    "NullEnum": {"enum": [None]},
}


class Serializers:
    """The components of one document."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.components: dict[str, Any] = dict(_ENUMS)

    def component(self, depth: int) -> Made:
        """A serializer, by reference."""
        rng = self.rng
        name = f"Made{len(self.components)}"
        self.components[name] = {}
        members = {key: self.field(depth) for key in rng.sample(["id", "name", "made_at", "x_y", "tags"], 3)}
        required = [key for key in members if rng.random() < 0.6]
        schema: dict[str, Any] = {"type": "object"}
        schema["properties"] = {key: one[0] for key, one in members.items()}
        self.components[name] = {**schema, **({"required": required} if required else {})}
        if rng.random() < 0.3:
            self.components[name]["description"] = "Adds `nullable` and so on."

        def make(rng: random.Random) -> Any:
            return {
                key: one(rng) for key, (_, one) in members.items() if key in required or rng.random() < 0.7
            }

        return {"$ref": f"#/components/schemas/{name}"}, make

    def field(self, depth: int) -> Made:
        """A field of a serializer."""
        rng = self.rng
        schema, one = rng.choice(FIELDS)
        if depth and rng.random() < 0.5:
            return rng.choice([self._nested, self._many, self._paged, self._choice, self._polymorphic])(
                depth - 1
            )
        said: dict[str, Any] = rng.choice(
            [
                {},
                {},
                {"readOnly": True},
                {"writeOnly": True},
                {"nullable": True},
                {"title": "T"},
                {"default": "x"},
            ]
        )
        return {**schema, **said}, one

    def _nested(self, depth: int) -> Made:
        schema, one = self.component(depth)
        how = self.rng.random()
        if how < 0.4:
            return {"allOf": [schema], "readOnly": True}, one
        return ({"allOf": [schema], "nullable": True}, one) if how < 0.6 else (schema, one)

    def _many(self, depth: int) -> Made:
        schema, one = self.component(depth)
        return {"type": "array", "items": schema}, lambda rng: [one(rng) for _ in range(rng.randint(0, 2))]

    def _paged(self, depth: int) -> Made:
        schema, one = self._many(depth)
        link = {
            "type": "string",
            "nullable": True,
            "format": "uri",
            "example": "http://api.example.org/?page=4",
        }
        properties = {
            "count": {"type": "integer", "example": 123},
            "next": link,
            "previous": link,
            "results": schema,
        }
        paged = {"type": "object", "required": ["count", "results"], "properties": properties}
        return paged, lambda rng: {"count": 1, "next": "http://api.example.org/?page=4", "results": one(rng)}

    def _choice(self, depth: int) -> Made:
        names = ["StatusEnum", *self.rng.sample(["BlankEnum", "NullEnum"], self.rng.randint(0, 2))]
        parts = [{"$ref": f"#/components/schemas/{name}"} for name in names]
        values = [value for name in names for value in _ENUMS[name]["enum"]]
        if len(parts) == 1:
            return {"allOf": parts, "description": "The state."}, _of(*values)
        return {"nullable": "NullEnum" in names, "oneOf": parts}, _of(*values)

    def _polymorphic(self, depth: int) -> Made:
        made = []
        for tag in ("cat", "dog"):
            schema, one = self.component(depth)
            name = f"{tag.title()}Typed{len(self.components)}"
            kind = {
                "type": "object",
                "properties": {"kind": {"type": "string", "enum": [tag]}},
                "required": ["kind"],
            }
            self.components[name] = {"allOf": [kind, schema]}
            made.append((name, tag, one))
        refs = {tag: f"#/components/schemas/{name}" for name, tag, _ in made}
        schema = {
            "oneOf": [{"$ref": ref} for ref in refs.values()],
            "discriminator": {"propertyName": "kind", "mapping": refs},
        }

        def make(rng: random.Random) -> Any:
            _, tag, one = rng.choice(made)
            return {"kind": tag, **one(rng)}

        return schema, make


def make(rng: random.Random) -> tuple[Any, list[Any]]:
    """The schema of a request's body, with the components of its document."""
    serializers = Serializers(rng)
    schema, one = serializers.component(2)
    return {**schema, "components": {"schemas": serializers.components}}, [one(rng) for _ in range(6)]
