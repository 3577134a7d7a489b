"""Families of hostile schemas at growing sizes: whatever grows faster than its text is found at some size.

Purpose: the named inputs beside this file are what was met once; a family says how such inputs are made, and
is asked at every size up to one that must be refused.
Invariant: a schema is built from its size alone, in time and text about linear in it.
Rejected: random draws alone (the differential judge draws those: they find what is wrong, not what is slow).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .formulas import LETTERS, PRIMES, needs, tower

Family = Callable[[int], Any]


def letter(i: int) -> str:
    return LETTERS[i % len(LETTERS)]


def _logic() -> dict[str, Family]:
    def level(i: int, low: Any) -> Any:
        return {"anyOf": [low, {"properties": {f"k{i}": low}}]}

    return {
        "$ref chain": lambda n: tower(n, lambda i, low: low, {"type": "integer"}),
        "$ref chain of properties": lambda n: tower(
            n, lambda i, low: {"properties": {"a": low}}, {"type": "integer"}
        ),
        "$ref circle": lambda n: {
            "$ref": "#/$defs/d0",
            "$defs": {
                f"d{i}": {"properties": {f"k{i}": {"$ref": f"#/$defs/d{(i * 7 + 1) % n}"}}} for i in range(n)
            },
        },
        "$ref circle, all required": lambda n: {
            "$ref": "#/$defs/d0",
            "$defs": {
                f"d{i}": {
                    "type": "object",
                    "required": ["a"],
                    "properties": {
                        "a": {
                            "anyOf": [
                                {"$ref": f"#/$defs/d{(i * 7 + 1) % n}"},
                                {"$ref": f"#/$defs/d{(i + 1) % n}"},
                            ]
                        }
                    },
                }
                for i in range(n)
            },
        },
        "allOf tower": lambda n: tower(
            n, lambda i, low: {"allOf": [low, low, {"maxLength": i}]}, {"type": "string"}
        ),
        "anyOf tower": lambda n: tower(n, level, {"type": "integer"}),
        "oneOf tower of bounds": lambda n: tower(
            n, lambda i, low: {"oneOf": [low, {"minimum": i, "maximum": 2 * i}]}, {"type": "integer"}
        ),
        "oneOf tower of items": lambda n: tower(
            n, lambda i, low: {"oneOf": [{"items": low}, {"minItems": i % 7}]}, {"type": "array"}
        ),
        "not tower": lambda n: tower(
            n, lambda i, low: {"not": {"properties": {"a": low}}}, {"type": "integer"}
        ),
        "not of allOf tower": lambda n: tower(
            n, lambda i, low: {"not": {"allOf": [low, {"required": [f"k{i}"]}]}}, {"type": "object"}
        ),
        "if tower": lambda n: tower(
            n,
            lambda i, low: {
                "if": {"required": [f"k{i % 5}"]},
                "then": low,
                "else": {"properties": {"a": low}},
            },
            {"type": "object"},
        ),
        "oneOf of objects": lambda n: {
            "oneOf": [{"properties": {f"k{i}": {"const": i}}, "required": [f"k{i % 7}"]} for i in range(n)]
        },
        "oneOf of discriminated objects": lambda n: {
            "oneOf": [
                {**needs("kind"), "properties": {"kind": {"const": f"k{i}"}, f"p{i}": {"type": "integer"}}}
                for i in range(n)
            ]
        },
        "oneOf of patterns": lambda n: {
            "type": "string",
            "oneOf": [{"pattern": f"{letter(i)}{i}"} for i in range(n)],
        },
        "oneOf of bounds": lambda n: {
            "oneOf": [{"type": "number", "minimum": i, "maximum": i + 3} for i in range(n)]
        },
        "oneOf of multiples": lambda n: {
            "type": "integer",
            "oneOf": [{"multipleOf": i + 2} for i in range(n)],
        },
        "anyOf of multiples": lambda n: {
            "type": "number",
            "anyOf": [{"multipleOf": (i + 2) / 100} for i in range(n)],
        },
        "allOf of multiples": lambda n: {
            "type": "integer",
            "allOf": [{"multipleOf": i + 2} for i in range(n)],
        },
        "allOf of not multiples": lambda n: {
            "type": "number",
            "allOf": [{"not": {"multipleOf": i + 2}} for i in range(n)],
        },
        "allOf of primes in words": lambda n: {
            "allOf": [{"type": "string", "pattern": f"^(a{{{p}}})*$"} for p in PRIMES[:n]]
        },
        "allOf of counts in words": lambda n: {
            "allOf": [{"type": "string", "pattern": f"^(.*{letter(i)}){{{i % 9}}}"} for i in range(n)]
        },
        "allOf of patterns": lambda n: {
            "allOf": [{"type": "string", "pattern": f"{letter(i)}.*{i}"} for i in range(n)]
        },
        "allOf of anyOf of keys": lambda n: {
            "allOf": [
                {"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}, {"maxProperties": i}]}
                for i in range(n)
            ]
        },
        "allOf of anyOf of values": lambda n: {
            "allOf": [
                {"anyOf": [{"properties": {"a": {"minimum": i}}}, {"properties": {"b": {"maximum": -i}}}]}
                for i in range(n)
            ]
        },
        "allOf of oneOf of types": lambda n: {
            "allOf": [
                {"oneOf": [{"properties": {f"k{i}": {"type": "string"}}}, {"required": [f"k{i + 1}"]}]}
                for i in range(n)
            ]
        },
        "allOf of not of required": lambda n: {
            "type": "object",
            "allOf": [{"not": needs(f"k{i}", f"k{i + 1}")} for i in range(n)],
        },
        "anyOf of formats and patterns": lambda n: {
            "type": "string",
            "anyOf": [
                {"format": f, "pattern": f"^.{{0,{i}}}"}
                for i in range(n // 6 + 1)
                for f in ("email", "uri", "date", "uuid", "ipv6", "hostname")
            ],
        },
        "not of anyOf of formats": lambda n: {
            "type": "string",
            "not": {
                "anyOf": [
                    {"format": f}
                    for f in ("email", "uri", "idn-email", "uuid", "ipv6", "hostname", "iri")[:n]
                ]
            },
            "minLength": n,
        },
    }


def _objects() -> dict[str, Family]:
    def properties(n: int) -> dict[str, Any]:
        return {f"k{i}": {"type": "integer"} for i in range(n)}

    return {
        "required keys": lambda n: needs(*(f"k{i}" for i in range(n))),
        "required keys with values": lambda n: {
            **needs(*(f"k{i}" for i in range(n))),
            "properties": {
                f"k{i}": {"type": "array", "minItems": 2, "items": {"type": "integer"}} for i in range(n)
            },
        },
        "properties": lambda n: {
            "type": "object",
            "properties": properties(n),
            "additionalProperties": False,
        },
        "minProperties of properties": lambda n: {
            "type": "object",
            "properties": properties(n),
            "additionalProperties": False,
            "minProperties": n - 1,
        },
        "minProperties of patterns": lambda n: {
            "type": "object",
            "patternProperties": {f"^{letter(i)}[0-9]?$": {} for i in range(n)},
            "additionalProperties": False,
            "minProperties": n,
        },
        "patternProperties that overlap": lambda n: {
            "type": "object",
            "patternProperties": {f".*{letter(i)}.*{i}": {"minimum": i} for i in range(n)},
            "minProperties": 2,
        },
        "patternProperties of prefixes": lambda n: {
            "type": "object",
            "patternProperties": {"^" + "a" * i: {"maximum": 1000 - i} for i in range(n)},
            "minProperties": 1,
        },
        "patternProperties of counts": lambda n: {
            "type": "object",
            "patternProperties": {f"^(a{{{p}}})*$": {"multipleOf": p} for p in PRIMES[:n]},
            "minProperties": 2,
        },
        "patternProperties required": lambda n: {
            "type": "object",
            "required": [f"a{i}b" for i in range(n)],
            "patternProperties": {f"a.*{i}": {"type": "string", "minLength": i} for i in range(n)},
        },
        "propertyNames counted": lambda n: {
            "propertyNames": {"maxLength": 2, "pattern": "^[ab]*$"},
            "minProperties": n,
        },
        "dependentSchemas chain": lambda n: {
            "type": "object",
            "dependentSchemas": {f"k{i}": needs(f"k{i + 1}") for i in range(n)},
            "minProperties": 1,
        },
        "dependentSchemas that differ": lambda n: {
            "type": "object",
            "dependentSchemas": {
                f"k{i}": {"properties": {f"k{(i * 5 + 1) % n}": {"minimum": i}}} for i in range(n)
            },
        },
        "dependentSchemas of not": lambda n: {
            "type": "object",
            "dependentSchemas": {f"k{i}": {"not": {"required": [f"k{(i * 5 + 2) % n}"]}} for i in range(n)},
            "minProperties": n // 2,
        },
        "dependentRequired, all by all": lambda n: {
            "type": "object",
            "dependentRequired": {f"k{i}": [f"k{j}" for j in range(min(n, 100))] for i in range(min(n, 400))},
            "minProperties": 1,
        },
        "maxProperties below required": lambda n: {
            **needs(*(f"k{i}" for i in range(n))),
            "maxProperties": n + 1,
            "properties": properties(n),
        },
        "unevaluatedProperties over anyOf": lambda n: {
            "type": "object",
            "unevaluatedProperties": False,
            "anyOf": [{"properties": {f"k{i}": {"type": "integer"}}} for i in range(n)],
        },
        "unevaluatedProperties over if": lambda n: {
            "type": "object",
            "unevaluatedProperties": False,
            "allOf": [
                {"if": {"required": [f"k{i}"]}, "then": {"properties": {f"k{i}": {}, f"v{i}": {}}}}
                for i in range(n)
            ],
        },
        "unevaluatedProperties over dependentSchemas": lambda n: {
            "type": "object",
            "unevaluatedProperties": {"type": "string"},
            "dependentSchemas": {
                f"k{i}": {"properties": {f"k{i}": {}, f"v{i}": {"type": "null"}}} for i in range(n)
            },
        },
        "unevaluatedProperties over oneOf": lambda n: {
            "type": "object",
            "unevaluatedProperties": False,
            "oneOf": [{"properties": {f"k{i}": {}, "kind": {"const": i}}} for i in range(n)],
        },
        "unevaluatedProperties in unevaluatedProperties": lambda n: tower(
            n,
            lambda i, low: {
                "unevaluatedProperties": low,
                "anyOf": [{"properties": {f"k{i}": low}}, {"required": ["z"]}],
            },
            {"type": "integer"},
        ),
        "counted keys, nested": lambda n: tower(
            n,
            lambda i, low: {
                "type": "object",
                "minProperties": 2,
                "maxProperties": 3,
                "additionalProperties": low,
            },
            {"type": "integer"},
        ),
    }


def _arrays() -> dict[str, Family]:
    return {
        "contains": lambda n: {"type": "array", "allOf": [{"contains": {"const": i}} for i in range(n)]},
        "contains overlapping": lambda n: {
            "type": "array",
            "allOf": [{"contains": {"type": "integer", "minimum": i}} for i in range(n)],
        },
        "contains that overlap by pattern": lambda n: {
            "type": "array",
            "allOf": [{"contains": {"type": "string", "pattern": f"{letter(i)}{i}"}} for i in range(n)],
        },
        "contains counted": lambda n: {
            "type": "array",
            "allOf": [
                {"contains": {"multipleOf": i + 2}, "minContains": i, "maxContains": n} for i in range(n)
            ],
        },
        "contains many, of few": lambda n: {
            "type": "array",
            "contains": {"enum": [1, 2]},
            "minContains": n,
            "maxItems": n,
            "uniqueItems": n <= 4,
        },
        "not contains": lambda n: {
            "type": "array",
            "minItems": n,
            "not": {"contains": {"type": "integer", "maximum": n}},
        },
        "contains objects": lambda n: {
            "type": "array",
            "allOf": [{"contains": needs(f"k{i}")} for i in range(n)],
            "maxItems": n // 2 + 1,
        },
        "uniqueItems of enums": lambda n: {
            "type": "array",
            "uniqueItems": True,
            "minItems": n,
            "items": {"enum": list(range(n))},
        },
        "uniqueItems one short": lambda n: {
            "type": "array",
            "uniqueItems": True,
            "minItems": n + 1,
            "items": {"enum": list(range(n))},
        },
        "uniqueItems of objects": lambda n: {
            "type": "array",
            "uniqueItems": True,
            "minItems": n,
            "items": {**needs("a", "b"), "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
        },
        "uniqueItems of a pattern": lambda n: {
            "type": "array",
            "uniqueItems": True,
            "minItems": n,
            "items": {"type": "string", "pattern": "^[a-z]+-[0-9]+$"},
        },
        "uniqueItems of long strings": lambda n: {
            "type": "array",
            "uniqueItems": True,
            "minItems": min(n, 300),
            "items": {"type": "string", "minLength": n},
        },
        "uniqueItems but for few": lambda n: {
            "type": "array",
            "uniqueItems": True,
            "minItems": n,
            "items": {"type": "integer", "not": {"enum": list(range(n))}},
        },
        "uniqueItems of small arrays": lambda n: {
            "type": "array",
            "uniqueItems": True,
            "minItems": n,
            "items": {"type": "array", "maxItems": 3, "items": {"type": "boolean"}},
        },
        "uniqueItems of a small range": lambda n: {
            "type": "array",
            "uniqueItems": True,
            "minItems": n,
            "items": {"type": "number", "minimum": 0, "maximum": n, "multipleOf": 0.5},
        },
        "uniqueItems of short words": lambda n: {
            "type": "array",
            "uniqueItems": True,
            "minItems": n,
            "items": {"type": "string", "pattern": "^[ab]{0,6}$"},
        },
        "uniqueItems of small objects": lambda n: {
            "type": "array",
            "uniqueItems": True,
            "minItems": n,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {c: {"type": "boolean"} for c in "abc"},
            },
        },
        "uniqueItems of prefixes": lambda n: {
            "type": "array",
            "uniqueItems": True,
            "minItems": n,
            "prefixItems": [{"enum": list(range(i + 1))} for i in range(min(n, 512))],
            "items": {"type": "integer"},
        },
        "uniqueItems of a permutation": lambda n: {
            "type": "array",
            "uniqueItems": True,
            "minItems": n,
            "items": False,
            "prefixItems": [{"enum": [i, (i + 1) % n, (i * 3) % n]} for i in range(n)],
        },
        "uniqueItems in uniqueItems": lambda n: tower(
            n,
            lambda i, low: {"type": "array", "minItems": 2, "maxItems": 3, "uniqueItems": True, "items": low},
            {"enum": [0, 1, 2]},
        ),
        "not uniqueItems": lambda n: {
            "type": "array",
            "minItems": n,
            "not": {"uniqueItems": True},
            "items": {"type": "integer", "maximum": n},
        },
        "const of an array": lambda n: {"const": [[i, {"a": str(i)}] for i in range(n)]},
        "not const of an array": lambda n: {
            "not": {"const": [[i, {"a": str(i)}] for i in range(n)]},
            "type": "array",
        },
        "const nested": lambda n: {"enum": [_nest(i) for i in range(min(n, 256))]},
        "enum of objects": lambda n: {"enum": [{f"k{j}": (i >> j) & 1 for j in range(8)} for i in range(n)]},
        "not enum of objects": lambda n: {
            "not": {"enum": [{f"k{j}": (i >> j) & 1 for j in range(8)} for i in range(n)]},
            "type": "object",
        },
        "enum of words": lambda n: {"enum": [f"word {i}" * (i % 9 + 1) for i in range(n * 4)]},
        "enum of numbers": lambda n: {"enum": [i / 7 for i in range(n)]},
        "prefixItems": lambda n: {
            "type": "array",
            "prefixItems": [{"const": i} for i in range(n)],
            "minItems": n,
        },
        "prefixItems in a tower": lambda n: tower(
            n,
            lambda i, low: {"type": "array", "prefixItems": [low, low, low], "minItems": 3},
            {"type": "integer"},
        ),
        "unevaluatedItems over prefixes": lambda n: {
            "type": "array",
            "unevaluatedItems": False,
            "anyOf": [{"prefixItems": [{"minimum": j} for j in range(i)]} for i in range(min(n, 128))],
        },
        "unevaluatedItems over contains": lambda n: {
            "type": "array",
            "unevaluatedItems": False,
            "allOf": [{"contains": {"multipleOf": i + 2}} for i in range(n)],
        },
        "arrays nested": lambda n: _wrapped(n, lambda low: {"type": "array", "minItems": 1, "items": low}),
        "objects nested": lambda n: _wrapped(n, lambda low: {**needs("a"), "properties": {"a": low}}),
        "anyOf nested": lambda n: _wrapped(
            n, lambda low: {"anyOf": [low, {"type": "array", "items": low}]} if n < 20 else {"anyOf": [low]}
        ),
        "long bounds": lambda n: {
            "type": "number",
            "minimum": int("1" * n),
            "maximum": int("1" * n) + 5,
            "multipleOf": 0.25,
        },
        "long decimals": lambda n: (
            f'{{"type":"number","exclusiveMinimum":0.{"0" * n}1,"exclusiveMaximum":0.{"0" * n}2}}'
        ),
        "far exponents": lambda n: f'{{"type":"number","minimum":1e{n * n},"maximum":2e{n * n}}}',
        "multiples of long numbers": lambda n: {
            "type": "integer",
            "multipleOf": int("37" * min(n, 2000)),
            "minimum": 1,
        },
        "lengths": lambda n: {
            "type": "string",
            "minLength": n * n,
            "maxLength": n * n + 1,
            "pattern": "^(ab|c)*$",
        },
        "strings by length and pattern": lambda n: {
            "type": "string",
            "allOf": [{"pattern": f"(.*{letter(i)}){{3}}"} for i in range(min(n, 12))],
            "maxLength": 3 * min(n, 12),
        },
    }


def _nest(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def _wrapped(depth: int, wrap: Callable[[Any], Any]) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(min(depth, 300)):
        schema = wrap(schema)
    return schema


def grown_schemas() -> dict[str, Family]:
    """Name -> what gives the schema of a size."""
    return {**_logic(), **_objects(), **_arrays()}
