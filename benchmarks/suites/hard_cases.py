"""The hard cases: schemas and grammars that are known to be slow somewhere, with texts to walk.

Purpose: the list behind `benchmarks/hardcases.py`, the table of engines side by side.
Invariant: every case carries texts that satisfy it, and most one that breaks the very part that is hard: an
engine that leaves the part out is told apart from one that is quick.
Source: the shapes that public issue trackers report as slow (bounded repeats, large enums, many optional
properties, deep nesting, long `$ref` chains, grammars spelled by the character).
Rejected: random schemas (they are MaskBench's part; these are built to hit one weakness each).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class HardCase:
    """A constraint that is known to be slow somewhere, with texts to walk.

    Attributes:
        texts: they satisfy it.
        dialects: a context-free grammar by dialect ("lark", "ebnf"), instead of a schema.
        refused: texts that do not.
    """

    name: str
    schema: Any
    texts: list[str]
    dialects: dict[str, str] | None = None
    refused: tuple[str, ...] = ()


def object_schema(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


def _array_case(depth: int) -> HardCase:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}}
    return HardCase(f"arrays nested {depth} deep", schema, ["[" * depth + "]" * depth], refused=("[1]",))


def reference_chain(length: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(length)}
    definitions[f"d{length}"] = {"type": "string"}
    return {"$ref": "#/$defs/d0", "$defs": definitions}


def _one_of(branches: int) -> HardCase:
    options = [
        object_schema(
            {"kind": {"const": f"kind{i}"}, f"value{i}": {"type": "integer"}}, required=["kind", f"value{i}"]
        )
        for i in range(branches)
    ]
    texts = [json.dumps({"kind": f"kind{i}", f"value{i}": i}) for i in (0, branches // 2, branches - 1)]
    wrong = json.dumps({"kind": "kind0", "value1": 1})
    return HardCase(f"oneOf of {branches} with a discriminator", {"oneOf": options}, texts, refused=(wrong,))


def _languages(name: str, text: str, refused: str, **dialects: str) -> list[HardCase]:
    """The grammar once in each language: an engine reads the text that its rival reads, or has none."""
    return [
        HardCase(f"{name}, {key}", None, [text], {key: grammar}, (refused,))
        for key, grammar in dialects.items()
    ]


def _character_string(letters: str, text: str) -> list[HardCase]:
    choice = " | ".join(f'"{letter}"' for letter in letters)
    lark = f'start: "\\"" char* "\\""\nchar: {choice}\n'
    ebnf = f'root ::= "\\"" char* "\\""\nchar ::= {choice}\n'
    name = f"string spelled character by character, {len(letters)} letters"
    return _languages(name, json.dumps(text), '"{"', lark=lark, ebnf=ebnf)


def _right_recursion(length: int) -> list[HardCase]:
    lark = 'start: item\nitem: "ab," item | "end"\n'
    ebnf = 'root ::= item\nitem ::= "ab," item | "end"\n'
    name = f"right recursion, {3 * length:,} characters"
    return _languages(name, "ab," * length + "end", "ab,ab", lark=lark, ebnf=ebnf)


def _words_in_a_loop(count: int) -> list[HardCase]:
    choice = " | ".join(f'"word{i};"' for i in range(count))
    text = "".join(f"word{i};" for i in range(0, count, count // 50))
    name = f"loop over {count:,} words"
    return _languages(name, text, "word1;wor", lark=f"start: ({choice})*", ebnf=f"root ::= ({choice})*")


def _nested_objects(depth: int) -> HardCase:
    text = '{"child":' * depth + '{"value":1}' + "}" * depth
    node = object_schema({"value": {"type": "integer"}, "child": {"$ref": "#/$defs/node"}})
    schema = {"$ref": "#/$defs/node", "$defs": {"node": node}}
    return HardCase(f"objects nested {depth} deep", schema, [text], refused=('{"child":1}',))


def _large_schema(tables: int) -> HardCase:
    """About 1 MB: many definitions of 20 described properties, of which a text visits a few."""
    described = {"type": "string", "description": "A column of the table, kept as it was written. " * 4}
    definitions = {
        f"table{i}": object_schema({f"column_{i}_{j}": described for j in range(20)}) for i in range(tables)
    }
    properties = {f"table{i}": {"$ref": f"#/$defs/table{i}"} for i in range(tables)}
    text = json.dumps({f"table{i}": {f"column_{i}_3": "value"} for i in range(0, tables, tables // 5)})
    schema = {**object_schema(properties), "additionalProperties": False, "$defs": definitions}
    size = len(json.dumps(schema)) >> 10
    return HardCase(
        f"schema of {size} KiB, {tables} definitions",
        schema,
        [text],
        refused=('{"table0":{"column_0_3":1}}',),
    )


def _strings() -> list[HardCase]:
    """Patterns and formats: repeats in repeats, many words, languages that meet."""
    words = "|".join(f"item{i}x{i % 7}" for i in range(5_000))
    nested = "^(([a-f]{1,20}-){1,20};){1,20}$"
    conditions = "^(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z]).{8,64}$"
    stamps = [f"20{i:02d}-0{i % 9 + 1}-1{i % 9}T1{i % 9}:30:00Z" for i in range(20)]
    return [
        HardCase(
            "repeats in repeats in repeats",
            {"type": "string", "pattern": nested},
            [json.dumps("abc-def-face-;" * 12)],
            refused=(json.dumps("abc-def"),),
        ),
        HardCase(
            "pattern of 5,000 words",
            {"type": "string", "pattern": f"^({words})$"},
            [json.dumps(f"item{i}x{i % 7}") for i in (0, 2_500, 4_999)],
            refused=(json.dumps("item1x2"),),
        ),
        HardCase(
            "three lookaheads, length 8..64",
            {"type": "string", "pattern": conditions},
            [json.dumps("correct Horse battery 9 staple")],
            refused=(json.dumps("correct Horse battery staple"),),
        ),
        HardCase(
            "array of date-times",
            {"type": "array", "items": {"type": "string", "format": "date-time"}},
            [json.dumps(stamps)],
            refused=(json.dumps(["2026-13-01T10:00:00Z"]),),
        ),
        HardCase(
            "items with 40 different lengths",
            {
                "type": "array",
                "prefixItems": [{"type": "string", "maxLength": 5 + 3 * i} for i in range(40)],
            },
            [json.dumps(["lorem" for _ in range(40)])],
            refused=(json.dumps(["lorem ipsum"]),),
        ),
    ]


def _counts() -> list[HardCase]:
    """Counted and compared items and keys."""
    keys = [f"key_{i}" for i in range(60)]
    return [
        HardCase(
            "500 distinct integers",
            {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
            [json.dumps(list(range(0, 1500, 3)))],
            refused=(json.dumps([1, 2, 1]),),
        ),
        HardCase(
            "multipleOf 0.25 in -1000..1000",
            {
                "type": "array",
                "items": {"type": "number", "multipleOf": 0.25, "minimum": -1000, "maximum": 1000},
            },
            [json.dumps([i * 0.25 - 50 for i in range(100)])],
            refused=(json.dumps([0.5, 0.3]),),
        ),
        HardCase(
            "map of 300 keys by pattern",
            {
                "type": "object",
                "patternProperties": {"^[a-z]{1,12}_[0-9]{1,4}$": {"type": "integer"}},
                "additionalProperties": False,
            },
            [json.dumps({f"key_{i}": i for i in range(300)})],
            refused=(json.dumps({"KEY_1": 1}),),
        ),
        HardCase(
            "minProperties 40 of 60 optional",
            {**object_schema({k: {"type": "boolean"} for k in keys}), "minProperties": 40},
            [json.dumps(dict.fromkeys(keys[:45], True))],
            refused=(json.dumps(dict.fromkeys(keys[:39], True)),),
        ),
    ]


def hard_cases() -> list[HardCase]:
    """The hard cases, quick ones first."""
    long_text = json.dumps("It was the best of times, it was the worst of times. " * 3)
    words = [f"word-{i:06d}" for i in range(100_000)]
    cases = [
        HardCase(
            "string, 10..200 characters",
            {"type": "string", "minLength": 10, "maxLength": 200},
            [long_text],
            refused=(json.dumps("short"),),
        ),
        HardCase(
            "maxLength: 100000",
            {"type": "string", "maxLength": 100_000},
            [json.dumps("lorem ipsum dolor " * 400)],
        ),
        HardCase(
            "minLength: 2000",
            {"type": "string", "minLength": 2000},
            [json.dumps("lorem ipsum dolor " * 120)],
            refused=(json.dumps("lorem ipsum"),),
        ),
        HardCase(
            "pattern with {1,500}",
            {"type": "string", "pattern": "^[a-z ]{1,500}$"},
            [json.dumps("some words " * 40)],
            refused=(json.dumps("Some"),),
        ),
        HardCase(
            "pattern ([a-z]+-){3,80}[0-9]+",
            {"type": "string", "pattern": "^([a-z]+-){3,80}[0-9]+$"},
            [json.dumps("alpha-beta-gamma-" * 20 + "77")],
            refused=(json.dumps("alpha-beta-77"),),
        ),
        HardCase(
            "unanchored pattern, maxLength 4000",
            {"type": "string", "pattern": "(foo|bar)[0-9]{3}", "maxLength": 4000},
            [json.dumps("and so it went on " * 60 + "foo123" + " to the end" * 20)],
            refused=(json.dumps("and so it went on"),),
        ),
        HardCase(
            "array of 1..1000 integers",
            {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 1000},
            [json.dumps(list(range(1000)))],
            refused=("[]",),
        ),
        HardCase(
            "integer 0..999999999999",
            {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 999_999_999_999}},
            [json.dumps([3**k for k in range(25)])],
            refused=("[-1]",),
        ),
    ]
    cases += _strings() + _counts()
    for count in (1_000, 10_000, 100_000):
        cases.append(
            HardCase(
                f"enum of {count:,}",
                {"enum": words[:count]},
                [json.dumps(words[i]) for i in (0, count // 2, count - 1)],
                refused=(json.dumps("word-x"),),
            )
        )
    for count in (200, 2_000):
        schema = object_schema({f"property_{i}": {"type": "integer"} for i in range(count)})
        chosen = {f"property_{i}": i for i in range(0, count, max(1, count // 40))}
        wrong = (json.dumps({"property_0": "zero"}),)
        name = f"{count:,} optional properties"
        cases.append(HardCase(f"{name}, open", schema, [json.dumps(chosen)], refused=wrong))
        cases.append(
            HardCase(
                f"{name}, closed",
                {**schema, "additionalProperties": False},
                [json.dumps(chosen)],
                refused=(json.dumps({"other": 1}),),
            )
        )
    everything = [f"field_{i}" for i in range(200)]
    cases.append(
        HardCase(
            "200 required properties",
            object_schema({k: {"type": "boolean"} for k in everything}, required=everything),
            [json.dumps(dict.fromkeys(everything, True))],
            refused=("{}",),
        )
    )
    cases += [_one_of(50), _one_of(400)]
    lower = "abcdefghijklmnopqrstuvwxyz"
    cases.extend(_character_string(lower + " ", "the quick brown fox jumps over the lazy dog " * 8))
    cases.extend(
        _character_string(
            lower + lower.upper() + " .,;:!?", "The quick brown fox. Jumps over, the lazy dog! " * 8
        )
    )
    cases.extend(_right_recursion(800))
    cases.extend(_words_in_a_loop(2_000))
    cases += [_array_case(200), _array_case(400), _array_case(2_000)]
    cases += [_nested_objects(100), _large_schema(300)]
    for length in (50, 5_000, 50_000):
        cases.append(
            HardCase(f"$ref chain of {length:,}", reference_chain(length), ['"here"'], refused=("7",))
        )
    wide = {
        "type": "array",
        "items": {
            "anyOf": [
                {"type": "object", "required": [f"k{i}"], "properties": {f"k{i}": {}}} for i in range(30)
            ]
        },
    }
    cases.append(
        HardCase(
            "anyOf of 30 overlapping objects",
            wide,
            [json.dumps([{f"k{i}": [i, str(i)]} for i in range(30)])],
            refused=(json.dumps([{"z": 1}]),),
        )
    )
    return cases
