"""Hostile schemas: what a server must survive.

Purpose: the list behind the judge of hostile schemas; each must give a clear error or a working grammar.
Invariant: every schema is built from its size alone; one that can't be a Python value is given as its text.
Source: the shapes that public issue trackers report as crashes and hangs.
Rejected: a fuzzer's findings alone (they come and go; these are named and stay).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenform_bench.keywords import KEYWORDS

from ..hard_cases import object_schema, reference_chain


def _nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        schema = wrap(schema)
    return schema


def _nested_text(depth: int, opening: str, closing: str) -> str:
    return opening * depth + '{"type":"integer"}' + closing * depth


def _tower(depth: int, wrap: Callable[[Any], Any]) -> Any:
    """As `_nested`, each level a definition, so that a level named twice doubles the tree but not the
    text."""
    definitions = {f"l{i}": wrap({"$ref": f"#/$defs/l{i + 1}"}) for i in range(depth)}
    return {"$ref": "#/$defs/l0", "$defs": {**definitions, f"l{depth}": {"type": "integer"}}}


def _one_of_pair(schema: Any) -> Any:
    return {"oneOf": [{"properties": {"a": schema}}, {"properties": {"b": schema}}]}


_PATTERNS = {
    "nested bounded repeats": "^(((a{1,100}){1,100}){1,100})$",
    "ambiguous alternation": "^(a|aa|aaa)*b$",
    "many lookaheads": "^" + "".join(f"(?=.*{c})" for c in "abcdefghijklmnopqrst") + ".*$",
    "unicode classes repeated": r"^(\p{L}\p{N}?){1,200}$",
    "100,000 words": "^(" + "|".join(f"word{i}" for i in range(100_000)) + ")$",
    "counted dot, unanchored": "a.{500}b",
    "deep groups": "(" * 20_000 + "a" + ")" * 20_000,
    "huge repeat": "^a{1000000000}$",
    "back reference": r"^(a+)\1$",
    "unclosed": "([a-z",
    "quantified lookahead mix": "^(?!.*(foo|bar){1,50}baz).{0,1000}$",
}

_WRONG_VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    1e400,
    "",
    "\u0000",
    "a",
    [],
    [[]],
    [None],
    {},
    {"": {}},
    {"a": 1},
    [1, 1],
    -5.5,
)


def hostile_schemas() -> dict[str, Any]:
    """Name -> schema (a Python value, or the JSON text itself where a value can't be built).

    Each must give a clear error or a working grammar within a second and a gigabyte.
    """
    schemas: dict[str, Any] = {
        "10,000 deep properties (text)": _nested_text(10_000, '{"properties":{"a":', "}}"),
        "10,000 deep not (text)": _nested_text(10_000, '{"not":', "}"),
        "10,000 deep allOf (text)": _nested_text(10_000, '{"allOf":[', "]}"),
        "10,000 deep items (text)": _nested_text(10_000, '{"items":', "}"),
        "10,000 deep brackets, no schema (text)": "[" * 10_000 + "]" * 10_000,
        "100 deep not": _nested(100, lambda s: {"not": s}),
        "500 deep anyOf of not": _tower(500, lambda s: {"anyOf": [{"not": s}, {"not": {"not": s}}]}),
        "200 deep if": _tower(200, lambda s: {"if": s, "then": s, "else": {"not": s}}),
        "not not oneOf": {"not": {"not": {"oneOf": [{"minimum": i} for i in range(60)]}}},
        "2^20 oneOf tree": _tower(20, _one_of_pair),
        "2^200 oneOf tree": _tower(200, _one_of_pair),
        "overlapping oneOf of 60 objects": {
            "oneOf": [object_schema({f"k{i}": {"type": "integer"}}) for i in range(60)]
        },
        "allOf of 40 anyOf pairs": {
            "allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(40)]
        },
        "$ref to itself": {"$ref": "#"},
        "allOf cycle": {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
        },
        "not cycle": {"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}},
        "required recursion": object_schema({"a": {"$ref": "#"}}, required=["a"]),
        "$ref chain of 50,000": reference_chain(50_000),
        "$ref nowhere": {"$ref": "#/$defs/missing"},
        "$ref remote": {"$ref": "https://example.com/schema.json"},
        "$ref with bad pointer": {"$ref": "#/%zz~3"},
        "4 MB enum": {"enum": [f"{i:07d}" + "x" * 92 for i in range(40_000)]},
        "enum of nested values": {"enum": [{"a": [i, {"b": str(i)}]} for i in range(3_000)]},
        "1 MB string const": {"const": "y" * 1_000_000},
        "uniqueItems over an enum": {
            "type": "array",
            "uniqueItems": True,
            "items": {"enum": list(range(200))},
            "minItems": 200,
        },
        "uniqueItems, more than there are": {
            "type": "array",
            "uniqueItems": True,
            "items": {"enum": [1, 2]},
            "minItems": 3,
        },
        "contains 1000 of 1000": {
            "type": "array",
            "contains": {"minimum": 1},
            "minContains": 1000,
            "maxContains": 1000,
        },
        "minItems 10^9": {"type": "array", "minItems": 10**9},
        "minLength 10^12": {"type": "string", "minLength": 10**12},
        "minProperties 10^6": {"type": "object", "minProperties": 10**6},
        "maxLength 10^300": {"type": "string", "maxLength": 10**300},
        "multipleOf 1e-300": {"type": "number", "multipleOf": 1e-300},
        "multipleOf prime products": {
            "allOf": [{"type": "integer", "multipleOf": p} for p in (7919, 104729, 1299709)]
        },
        "minimum with 5000 digits": {"type": "integer", "minimum": int("9" * 4000)},
        "300 patternProperties": {"patternProperties": {f"^.*{i}.*$": {"minimum": i} for i in range(300)}},
        "additionalProperties with 2000 patterns": {
            "patternProperties": {f"^x{i}-[a-z]*$": {} for i in range(2000)},
            "additionalProperties": False,
        },
        "propertyNames of not enum of 5000": {
            "propertyNames": {"not": {"enum": [f"k{i}" for i in range(5000)]}}
        },
        "dependencies in a ring of 300": {
            "dependentRequired": {f"k{i}": [f"k{(i + 1) % 300}"] for i in range(300)}
        },
        "unevaluatedProperties over 40 ifs": {
            "allOf": [
                {"if": {"required": [f"k{i}"]}, "then": object_schema({f"v{i}": {}})} for i in range(40)
            ],
            "unevaluatedProperties": False,
        },
        "not JSON (text)": '{"type": ',
        "empty text": "",
        "NUL bytes (text)": '{"type":"string"}\x00',
        "a number": 7,
        "null": None,
        "a list": [{"type": "string"}],
        "false": False,
    }
    for name, pattern in _PATTERNS.items():
        schemas[f"pattern: {name}"] = {"type": "string", "pattern": pattern}
    for keyword in sorted(KEYWORDS | {"$schema"}):
        for index, value in enumerate(_WRONG_VALUES):
            schemas[f"wrong type: {keyword} #{index}"] = {keyword: value}
    return schemas
