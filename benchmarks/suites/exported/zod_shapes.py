"""Types of zod at random, as zod-to-json-schema (draft-07, OpenAPI 3) and zod itself (2020-12) export them.

Source: the tables of zod-to-json-schema's README and parsers; zod's documentation, "JSON Schema".
Each type is one function that gives the schema and what makes values of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Value = Callable[[random.Random], Any]
Made = tuple[dict[str, Any], Value]
TARGETS = ("draft-07", "openapi", "2020-12")
_SAFE = 9007199254740991


def _of(*values: Any) -> Value:
    return lambda rng: rng.choice(values)


def _text(rng: random.Random) -> str:
    return "".join(rng.choices('abcxyz AZ09_-é"\\/', k=rng.randint(0, 8)))


# z.string() and its checks: format or pattern by either library, and texts that zod takes.
_OLD_STRINGS: list[tuple[dict[str, Any], list[str]]] = [
    ({"format": "email"}, ["me@example.org"]),
    ({"format": "uri"}, ["https://a.example/x"]),
    ({"format": "uuid"}, ["3fa85f64-5717-4562-b3fc-2c963f66afa6"]),
    ({"format": "date-time"}, ["2024-01-01T00:00:00Z"]),
    ({"format": "date"}, ["2024-02-29"]),
    ({"format": "time"}, ["10:00:00Z"]),
    ({"format": "duration"}, ["P1DT2H"]),
    ({"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}, ["1.2.3.4", "::1"]),
    ({"pattern": "^[cC][^\\s-]{8,}$"}, ["cjld2cjxh0000qzrmn831i7rn"]),
    ({"pattern": "^[0-9a-z]+$"}, ["tz4a98xxat96iws9zmbrgj3a"]),
    ({"pattern": "^[0-9A-HJKMNP-TV-Z]{26}$"}, ["01ARZ3NDEKTSV4RRFFQ69G5FAV"]),
    ({"pattern": "^[a-zA-Z0-9_-]{21}$"}, ["V1StGXR8_Z5jdHi6B-myT"]),
    ({"pattern": "^(\\p{Extended_Pictographic}|\\p{Emoji_Component})+$"}, ["😀"]),
    ({"pattern": "^(?:[0-9a-zA-Z+/]{4})*(?:(?:[0-9a-zA-Z+/]{2}==)|(?:[0-9a-zA-Z+/]{3}=))?$"}, ["YQ==", ""]),
    ({"contentEncoding": "base64"}, ["YQ=="]),
    ({"pattern": "^[A-Za-z0-9-_]+\\.[A-Za-z0-9-_]+\\.[A-Za-z0-9-_]*$"}, ["a.b.c"]),
    ({"pattern": "^abc"}, ["abcd"]), ({"pattern": "xyz$"}, ["wxyz"]), ({"pattern": "a\\/b\\.c"}, ["xa/b.cx"]),
    ({"allOf": [{"pattern": "^a"}, {"pattern": "z$"}]}, ["az", "abz"]),
    ({"minLength": 2, "maxLength": 5}, ["ab", "abcde"]), ({"minLength": 3, "maxLength": 3}, ["abc"]),
]  # fmt: skip
_EMAIL = (
    "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"
)
_UUID = (
    "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}"
    "|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$"
)
_DATE = (
    "(?:(?:\\d\\d[2468][048]|\\d\\d[13579][26]|\\d\\d0[48]|[02468][048]00|[13579][26]00)-02-29"
    "|\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)"
    "|(?:02)-(?:0[1-9]|1\\d|2[0-8])))"
)
_CLOCK = "(?:[01]\\d|2[0-3]):[0-5]\\d"
_NEW_STRINGS: list[tuple[dict[str, Any], list[str]]] = [
    ({"format": "email", "pattern": _EMAIL}, ["me@example.org"]),
    ({"format": "uri"}, ["https://a.example/x"]),
    ({"format": "uuid", "pattern": _UUID}, ["3fa85f64-5717-4562-b3fc-2c963f66afa6"]),
    ({"format": "date-time", "pattern": f"^{_DATE}T(?:{_CLOCK}(?::[0-5]\\d(?:\\.\\d+)?)?(?:Z))$"},
     ["2024-01-01T00:00:00Z", "2024-02-29T23:59:59.5Z"]),
    ({"format": "date", "pattern": f"^{_DATE}$"}, ["2024-02-29"]),
    ({"format": "duration",
      "pattern": "^P(?:(\\d+W)|(?!.*W)(?=\\d|T\\d)(\\d+Y)?(\\d+M)?(\\d+D)?"
      "(T(?=\\d)(\\d+H)?(\\d+M)?(\\d+([.,]\\d+)?S)?)?)$"},
     ["P1DT2H"]),
    ({"format": "ipv4", "pattern": "^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])\\.){3}"
      "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])$"}, ["1.2.3.4"]),
    ({"format": "cidrv4", "pattern": "^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])\\.){3}"
      "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])\\/([0-9]|[1-2][0-9]|3[0-2])$"}, ["10.0.0.0/8"]),
    ({"format": "cuid", "pattern": "^[cC][^\\s-]{8,}$"}, ["cjld2cjxh0000qzrmn831i7rn"]),
    ({"format": "cuid2", "pattern": "^[0-9a-z]+$"}, ["tz4a98xxat96iws9zmbrgj3a"]),
    ({"format": "ulid", "pattern": "^[0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{26}$"}, ["01ARZ3NDEKTSV4RRFFQ69G5FAV"]),
    ({"format": "nanoid", "pattern": "^[a-zA-Z0-9_-]{21}$"}, ["V1StGXR8_Z5jdHi6B-myT"]),
    ({"format": "emoji", "pattern": "^(\\p{Extended_Pictographic}|\\p{Emoji_Component})+$"}, ["😀"]),
    ({"format": "base64", "contentEncoding": "base64",
      "pattern": "^$|^(?:[0-9a-zA-Z+/]{4})*(?:(?:[0-9a-zA-Z+/]{2}==)|(?:[0-9a-zA-Z+/]{3}=))?$"},
     ["YQ==", ""]),
    ({"format": "base64url", "contentEncoding": "base64url", "pattern": "^[A-Za-z0-9_-]*$"}, ["YQ"]),
    ({"format": "e164", "pattern": "^\\+(?:[0-9]){6,14}[0-9]$"}, ["+4930123456"]),
    ({"pattern": "^abc.*"}, ["abcd"]), ({"pattern": ".*xyz$"}, ["wxyz"]),
    ({"pattern": "^[^A-Z]*$"}, ["ab"]),
    ({"allOf": [{"pattern": "^a.*"}, {"pattern": ".*z$"}]}, ["az", "abz"]),
    ({"minLength": 2, "maxLength": 5}, ["ab", "abcde"]), ({"minLength": 3, "maxLength": 3}, ["abc"]),
]  # fmt: skip


def _tagged(tag: str, one: Value) -> Value:
    return lambda rng: {"t": tag, "v": one(rng)}


class Zod:
    """The types for one target."""

    def __init__(self, rng: random.Random, target: str) -> None:
        self.rng, self.target = rng, target
        self.definitions: dict[str, Any] = {}

    def type(self, depth: int) -> Made:
        """A type at random."""
        rng = self.rng
        plain = [self.string, self.number, self.integer, self.plain, self.literal, self.enumeration]
        if depth == 0 or rng.random() < 0.35:
            return rng.choice(plain)(depth)
        nested = [
            self.object, self.object, self.array, self.tuple, self.record, self.union, self.discriminated,
            self.intersection, self.nullable, self.lazy, self.set, self.map, self.described,
        ]  # fmt: skip
        return rng.choice(nested)(depth - 1)

    def string(self, depth: int) -> Made:
        """z.string() with a check, or z.email() and its like."""
        if self.rng.random() < 0.3:
            return {"type": "string"}, _text
        schema, texts = self.rng.choice(_NEW_STRINGS if self.target == "2020-12" else _OLD_STRINGS)
        return {"type": "string", **schema}, _of(*texts)

    def number(self, depth: int) -> Made:
        """z.number() with its checks."""
        made: list[Made] = [
            ({"type": "number"}, _of(0, 1.5, -2)),
            ({"type": "number", "minimum": 0, "maximum": 10}, _of(0, 2.5, 10)),
            ({"type": "number", "multipleOf": 0.25}, _of(0.5, 1)),
        ]
        above: dict[str, Any] = {"exclusiveMinimum": 0}
        if self.target == "openapi":
            above = {"minimum": 0, "exclusiveMinimum": True}
        return self.rng.choice([*made, ({"type": "number", **above}, _of(0.5, 3))])

    def integer(self, depth: int) -> Made:
        """z.int(), z.bigint()."""
        if self.target == "2020-12":
            return {"type": "integer", "minimum": -_SAFE, "maximum": _SAFE}, _of(0, 7, -9)
        return self.rng.choice(
            [
                ({"type": "integer"}, _of(0, 7, -9)),
                ({"type": "integer", "format": "int64"}, _of(0, 7)),
                ({"type": "integer", "format": "unix-time"}, _of(0, 1_700_000_000)),
            ]
        )

    def plain(self, depth: int) -> Made:
        """z.boolean(), z.null(), z.any(), z.never() in an optional place."""
        null: dict[str, Any] = {"type": "null"}
        if self.target == "openapi":
            null = {"enum": ["null"], "nullable": True}  # as it is written there, and means in no validator
            return self.rng.choice(
                [({"type": "boolean"}, _of(True)), ({}, _of(1, "a", None)), (null, _of("null"))]
            )
        return self.rng.choice([({"type": "boolean"}, _of(True)), ({}, _of(1, "a", None)), (null, _of(None))])

    def literal(self, depth: int) -> Made:
        """z.literal()."""
        value = self.rng.choice(["a", 'q"', 5, True])
        kind = {str: "string", int: "number", bool: "boolean"}[type(value)]
        said = {"enum": [value]} if self.target == "openapi" else {"const": value}
        return {"type": kind, **said}, _of(value)

    def enumeration(self, depth: int) -> Made:
        """z.enum(), z.nativeEnum()."""
        if self.rng.random() < 0.3:
            return {"type": ["string", "number"], "enum": ["a", 1]}, _of("a", 1)
        return {"type": "string", "enum": ["red", "green", "blue"]}, _of("red", "blue")

    def object(self, depth: int) -> Made:
        """z.object(), .strict(), .passthrough(), .catchall(), .partial()."""
        rng = self.rng
        members = {
            name: self.type(depth) for name in rng.sample(["a", "b", "c-d", "$e", "f"], rng.randint(1, 4))
        }
        required = [name for name in members if rng.random() < 0.6]
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: one[0] for name, one in members.items()},
        }
        if required or self.target == "2020-12":
            schema |= {"required": required}
        more = rng.choice([False, False, True, {}, {"type": "number"}, {"not": {}}])
        if self.target != "2020-12" or more is False:
            schema["additionalProperties"] = more

        def make(rng: random.Random) -> Any:
            return {
                name: one[1](rng) for name, one in members.items() if name in required or rng.random() < 0.5
            }

        return schema, make

    def array(self, depth: int) -> Made:
        """z.array(), .min(), .max(), .nonempty()."""
        schema, one = self.type(depth)
        bounds = self.rng.choice([{}, {"minItems": 1}, {"minItems": 1, "maxItems": 3}])
        return {"type": "array", **bounds, "items": schema}, lambda rng: [
            one(rng) for _ in range(rng.randint(1, 3))
        ]

    def tuple(self, depth: int) -> Made:
        """z.tuple(), .rest()."""
        made = [self.type(depth) for _ in range(self.rng.randint(1, 3))]
        rest = self.type(0) if self.rng.random() < 0.4 else None
        schemas, count = [schema for schema, _ in made], len(made)
        schema: dict[str, Any] = {"type": "array"}
        if self.target == "2020-12":
            schema |= {"prefixItems": schemas, **({"items": rest[0]} if rest else {})}
        elif self.target == "openapi":
            schema |= {"minItems": count, "items": {"anyOf": schemas}}
            schema |= {} if rest else {"maxItems": count}
        else:
            schema |= {"minItems": count, "items": schemas}
            schema |= {"additionalItems": rest[0]} if rest else {"maxItems": count}
        return schema, lambda rng: [one(rng) for _, one in made]

    def record(self, depth: int) -> Made:
        """z.record(), its keys any strings, an enum or strings with a check."""
        schema, one = self.type(depth)
        keys: dict[str, Any] = self.rng.choice(
            [{"type": "string"}, {"type": "string", "enum": ["a", "b"]}, {"type": "string", "minLength": 1}]
        )
        made: dict[str, Any] = {"type": "object", "additionalProperties": schema}
        if self.target == "2020-12":
            made["propertyNames"] = keys
            if "enum" in keys:
                made["required"] = keys["enum"]
                return made, lambda rng: {"a": one(rng), "b": one(rng)}
        elif len(keys) > 1 and self.target == "draft-07":
            made["propertyNames"] = {name: value for name, value in keys.items() if name != "type"}
        return made, lambda rng: {name: one(rng) for name in rng.sample("ab", rng.randint(0, 2))}

    def map(self, depth: int) -> Made:
        """z.map()."""
        schema, one = self.type(depth)
        if self.target != "draft-07":
            return self.record(depth)
        pair = {"type": "array", "items": [{"type": "string"}, schema], "minItems": 2, "maxItems": 2}
        return {"type": "array", "maxItems": 125, "items": pair}, lambda rng: [["k", one(rng)]]

    def set(self, depth: int) -> Made:
        """z.set()."""
        schema, one = self.type(0)
        return {"type": "array", "uniqueItems": True, "items": schema}, lambda rng: [one(rng)]

    def union(self, depth: int) -> Made:
        """z.union()."""
        made = [self.type(depth) for _ in range(self.rng.randint(2, 3))]
        if self.rng.random() < 0.2 and self.target == "draft-07":
            return {"type": ["string", "number"]}, _of("a", 1)
        return {"anyOf": [schema for schema, _ in made]}, lambda rng: rng.choice(made)[1](rng)

    def discriminated(self, depth: int) -> Made:
        """z.discriminatedUnion()."""
        made: list[Made] = []
        for tag in ("a", "b"):
            schema, one = self.type(depth)
            said = {"enum": [tag]} if self.target == "openapi" else {"const": tag}
            part = {
                "type": "object",
                "properties": {"t": {"type": "string", **said}, "v": schema},
                "required": ["t", "v"],
                "additionalProperties": False,
            }
            made.append((part, _tagged(tag, one)))
        key = "oneOf" if self.target == "2020-12" and self.rng.random() < 0.5 else "anyOf"
        return {key: [schema for schema, _ in made]}, lambda rng: rng.choice(made)[1](rng)

    def intersection(self, depth: int) -> Made:
        """z.intersection() of two objects."""
        (first, one), (second, two) = self.type(0), self.type(0)
        parts = [
            {"type": "object", "properties": {name: schema}, "required": [name]}
            for name, schema in (("p", first), ("q", second))
        ]
        closed = {"unevaluatedProperties": False} if self.target == "draft-07" else {}
        return {"allOf": parts, **closed}, lambda rng: {"p": one(rng), "q": two(rng)}

    def nullable(self, depth: int) -> Made:
        """.nullable(), .nullish()."""
        schema, one = self.type(depth)

        def make(rng: random.Random) -> Any:
            return one(rng) if rng.random() < 0.7 else None

        if self.target == "openapi":
            return {**schema, "nullable": True}, one  # no validator of JSON Schema reads it
        if isinstance(schema.get("type"), str) and len(schema) == 1 and self.target == "draft-07":
            return {"type": [schema["type"], "null"]}, make
        return {"anyOf": [schema, {"type": "null"}]}, make

    def lazy(self, depth: int) -> Made:
        """z.lazy(), a type that holds itself."""
        if self.target == "openapi":
            return self.object(depth)
        name = f"node{len(self.definitions)}"
        folder = "$defs" if self.target == "2020-12" else "definitions"
        ref = {"$ref": f"#/{folder}/{name}"}
        leaf, one = self.type(0)
        self.definitions[name] = {
            "type": "object",
            "properties": {"v": leaf, "under": {"type": "array", "items": ref}},
            "required": ["v", "under"],
            "additionalProperties": False,
        }
        return ref, lambda rng: {
            "v": one(rng),
            "under": [{"v": one(rng), "under": []}] if rng.random() < 0.5 else [],
        }

    def described(self, depth: int) -> Made:
        """.describe(), .default(), .brand(), .readonly()."""
        schema, one = self.type(depth)
        if "$ref" in schema:
            return {"allOf": [schema], "description": "d"}, one
        return {**schema, "description": "d", "default": "x", "readOnly": True}, one


def make(rng: random.Random) -> tuple[Any, list[Any]]:
    """A schema as zod's exporters write it."""
    target = rng.choice(TARGETS)
    zod = Zod(rng, target)
    schema, one = zod.type(3)
    if target == "draft-07":
        named = {"definitions": zod.definitions} if zod.definitions else {}
        schema = {**schema, **named, "$schema": "http://json-schema.org/draft-07/schema#"}
        if "$ref" in schema:  # whatever stands beside it is not read in this draft
            reference = schema.pop("$ref")
            schema = {"allOf": [{"$ref": reference}], **schema}
    elif target == "2020-12":
        named = {"$defs": zod.definitions} if zod.definitions else {}
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, **named}
    return schema, [one(rng) for _ in range(6)]
