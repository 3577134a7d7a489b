"""Schemas whose formulas multiply: towers of logic, products of counts, keys that decide each other.

Purpose: each doubles, or is squared, wherever a walk forgets that a part stands in two places, or where
branches are multiplied out that a value decides one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def tower(height: int, level: Callable[[int, Any], Any], ground: Any) -> dict[str, Any]:
    """Definitions l0 … l{height}, each made of a reference to the next."""
    definitions = {f"l{i}": level(i, {"$ref": f"#/$defs/l{i + 1}"}) for i in range(height)}
    return {"$ref": "#/$defs/l0", "$defs": {**definitions, f"l{height}": ground}}


def needs(*names: str) -> dict[str, Any]:
    """An object that requires these keys."""
    return {"type": "object", "required": list(names)}


def _towers() -> dict[str, Any]:
    return {
        "oneOf tower of required keys": tower(
            25, lambda i, low: {"oneOf": [low, {"required": [f"k_{i}"]}]}, {"type": "object"}
        ),
        "anyOf of allOf tower": tower(
            40, lambda i, low: {"anyOf": [{"allOf": [low, needs(f"a{i}")]}, {"not": low}]}, {"type": "object"}
        ),
        "if tower over one key": tower(
            60,
            lambda i, low: {"if": needs(f"k{i}"), "then": low, "else": {"not": low}},
            {"type": "object"},
        ),
        "pairs of items, 30 levels": tower(
            30,
            lambda i, low: {"type": "array", "minItems": 2, "items": False, "prefixItems": [low, low]},
            {"type": "integer"},
        ),
        "pairs of properties, 40 levels": tower(
            40,
            lambda i, low: {**needs("a", "b"), "properties": {"a": low, "b": low}},
            {"type": "null"},
        ),
        "unique pairs, 20 levels": tower(
            20,
            lambda i, low: {"type": "array", "minItems": 2, "uniqueItems": True, "items": low},
            {"type": "boolean"},
        ),
        "required keys 400 deep": tower(
            400, lambda i, low: {**needs("a"), "properties": {"a": low}}, {"type": "integer"}
        ),
    }


def _keys() -> dict[str, Any]:
    def chain(n: int, step: int) -> dict[str, Any]:
        return {f"k{i}": needs(f"k{(i * step + 1) % (n + 1)}") for i in range(n)}

    nested: dict[str, Any] = {"type": "object"}
    for i in range(400):
        nested = {"type": "object", "dependentSchemas": {f"k{i}": nested}}
    return {
        "dependentSchemas chain of 400": {"type": "object", "dependentSchemas": chain(400, 1)},
        "dependentSchemas in a scattered circle": {"type": "object", "dependentSchemas": chain(256, 77)},
        "dependentSchemas 400 deep": nested,
        "oneOf of 1,200 keys": {"oneOf": [needs(f"k{i}") for i in range(1200)]},
        "oneOf of 400 objects with a key each": {
            "oneOf": [{**needs(f"k{i}"), "properties": {f"k{i}": {"type": "integer"}}} for i in range(400)]
        },
        "a required key of 100,000 letters": needs("k" * 100_000),
        "10,000 required keys": needs(*(f"k{i}" for i in range(10_000))),
        "ten letters anywhere in a key": {
            "type": "object",
            "minProperties": 1,
            "patternProperties": {c: {"multipleOf": p} for c, p in zip(LETTERS, PRIMES[:10], strict=False)},
        },
        "twenty letters anywhere in a key": {
            "type": "object",
            "minProperties": 1,
            "patternProperties": {c: {"minimum": i} for i, c in enumerate(LETTERS[:20])},
        },
        "propertyNames of lookaheads": {
            "propertyNames": {"pattern": "^" + "".join(f"(?=.*{c}.*{c})" for c in LETTERS[:8]) + "[a-h]*$"},
            "minProperties": 3,
        },
        "anyOf of 300 pairs of keys": {
            "anyOf": [needs(f"k{i}", f"k{(i * 7) % 300}") for i in range(300)],
            "maxProperties": 3,
        },
    }


def _counts() -> dict[str, Any]:
    password = r"^(?=(.*[A-Z]){4})(?=(.*[0-9]){4})(?=(.*[!@#]){4})(?=(.*[a-z]){4}).*$"
    every = [{"pattern": f"^(a{{{p}}})*$"} for p in PRIMES]
    return {
        "a pattern of 30,000 letters": {"type": "string", "pattern": "a{30000}"},
        "six primes": {"type": "string", "allOf": every[:6]},
        "seven primes": {"type": "string", "allOf": every[:7]},
        "twelve primes, not empty": {"type": "string", "minLength": 1, "allOf": every[:12]},
        "four kinds of four characters in sixteen": {"maxLength": 16, "type": "string", "pattern": password},
        "four kinds of four characters in twelve": {"maxLength": 12, "type": "string", "pattern": password},
        "counts in counts": {"type": "string", "pattern": "^((a{1,30}b{1,30}){1,30}c{1,30}){1,30}$"},
        "negative lookaheads": {
            "type": "string",
            "pattern": "^" + "".join(f"(?!.*{c}.{{{i}}}{c})" for i, c in enumerate(LETTERS)) + ".{40}$",
        },
        "integers of a thousand digits": {
            "type": "integer",
            "minimum": 10**1000,
            "maximum": 10**1000 + 10,
        },
        "multiples of many primes": {"allOf": [{"type": "integer", "multipleOf": p} for p in PRIMES]},
        "multiples of a great number and not of a small one": {
            "type": "number",
            "allOf": [{"multipleOf": 3e300}, {"not": {"multipleOf": 7e-299}}],
            "minimum": 1,
        },
        "multiples of numbers of hundreds of digits": {
            "allOf": [{"multipleOf": int("7" * 900)}, {"multipleOf": int("3" * 800)}],
            "minimum": int("5" * 950),
        },
        "not multiples of many primes": {
            "type": "integer",
            "allOf": [{"not": {"multipleOf": p}} for p in PRIMES],
            "minimum": 1,
        },
    }


def _items() -> dict[str, Any]:
    def contains(values: Sequence[int]) -> list[dict[str, Any]]:
        return [{"contains": {"type": "integer", "multipleOf": p}} for p in values]

    booleans = {"type": "array", "maxItems": 2, "items": {"type": "boolean"}}
    branches = [{"properties": {f"k{i}": {"type": "integer"}}} for i in range(20)]
    return {
        "contains by 8 primes": {"type": "array", "allOf": contains(PRIMES[:8])},
        "enum of 5,000 objects": {"enum": [{"a": i, "b": [i, {"c": str(i)}]} for i in range(5000)]},
        "all but 3,000 objects": {
            "type": "object",
            "not": {"enum": [{"a": i, "b": [i, {"c": str(i)}]} for i in range(3000)]},
        },
        "contains by 14 primes": {"type": "array", "allOf": contains(PRIMES[:14])},
        "contains counted twice": {
            "type": "array",
            "allOf": [
                {"contains": {"minimum": i}, "minContains": i, "maxContains": 3 * i + 1} for i in range(6)
            ],
        },
        "seven unique pairs of booleans": {
            "type": "array",
            "uniqueItems": True,
            "minItems": 7,
            "items": booleans,
        },
        "eight unique pairs of booleans": {
            "type": "array",
            "uniqueItems": True,
            "minItems": 8,
            "items": booleans,
        },
        "2,000 unique of 1,000": {
            "type": "array",
            "uniqueItems": True,
            "minItems": 2000,
            "items": {"enum": list(range(1000))},
        },
        "unevaluatedProperties over 20 anyOf, below": {
            "type": "object",
            "properties": {"a": {"unevaluatedProperties": False, "anyOf": branches}},
        },
        "unevaluatedProperties over itself, below": {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/n"}},
            "$defs": {"n": {"unevaluatedProperties": False, "allOf": [{"$ref": "#/$defs/n"}]}},
        },
        "unevaluatedItems over 12 contains": {
            "type": "array",
            "unevaluatedItems": False,
            "anyOf": [{"contains": {"const": i}} for i in range(12)],
        },
        "unevaluatedItems over 30 prefixes": {
            "type": "array",
            "unevaluatedItems": False,
            "anyOf": [{"prefixItems": [{"const": i}] * i} for i in range(30)],
        },
    }


def formula_schemas() -> dict[str, Any]:
    """Name -> schema."""
    return {**_towers(), **_keys(), **_counts(), **_items()}
