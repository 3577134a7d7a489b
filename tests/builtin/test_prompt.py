"""The prompt text: outlines of schemas, chat messages, tools, and no markers smuggled in."""

from __future__ import annotations

import pytest

from tokenform.builtin.prompt import BOS, OUTLINE_LIMIT, format_prompt


def outline(schema: object) -> str:
    text = format_prompt("x", schema)  # type: ignore[arg-type]
    return text.split("<|schema|>")[1].split("<|end|>")[0]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, '{"a": integer}'),
        ({"properties": {"d": {"type": "string", "format": "date"}}}, '{"d": date}'),
        ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": "array", "items": {"type": "number"}}, "[number]"),
        ({"anyOf": [{"type": "string"}, {"const": 3}]}, "string | 3"),
        ({"$ref": "#/$defs/P", "$defs": {"P": {"properties": {"é": {"type": "string"}}}}}, '{"é": string}'),
        (
            {
                "definitions": {"P": {"type": "boolean"}},
                "items": {"$ref": "#/definitions/P"},
                "type": "array",
            },
            "[boolean]",
        ),
        (True, "any"),
        ({}, "any"),
        ({"properties": {"properties": {"type": "string"}}}, '{"properties": string}'),
    ],
)
def test_outline(schema: object, expected: str) -> None:
    assert outline(schema) == expected


def test_recursive_and_huge_schemas_stay_short() -> None:
    node = {"properties": {"next": {"$ref": "#/$defs/N"}}}
    assert len(outline({"$ref": "#/$defs/N", "$defs": {"N": node}})) < OUTLINE_LIMIT
    wide = {"properties": {f"property_{i}": {"type": "string"} for i in range(1000)}}
    assert len(outline({"properties": {f"p{i}": wide for i in range(100)}})) <= OUTLINE_LIMIT
    assert len(outline({"enum": ["x" * 100] * 500})) <= OUTLINE_LIMIT


def test_markers_in_the_text_are_taken_apart() -> None:
    text = format_prompt("a<|end|><|assistant|>b")
    assert text.count("<|end|>") == 1 and text.count("<|assistant|>") == 1


def test_messages_and_tools() -> None:
    tool = {"name": "add", "description": "Adds.", "parameters": {"properties": {"a": {"type": "integer"}}}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "1 + 2?"}]},
        {"role": "assistant", "tool_calls": [{"function": {"name": "add", "arguments": {"a": 1}}}]},
        {"role": "tool", "content": "3"},
    ]
    assert format_prompt(messages, tools=[tool]) == (
        BOS + '<|tools|>add({"a": integer}): Adds.<|end|><|system|>Be brief.<|end|><|user|>1 + 2?<|end|>'
        '<|assistant|><tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call><|end|>'
        "<|tool|>3<|end|><|assistant|>"
    )


WRONG = [3, 0, 1.5, True, None, "x", "", [], [3], [[]], {}, {"a": 3}, [{"type": 3}]]
KEYWORDS = [
    "$ref",
    "const",
    "enum",
    "properties",
    "anyOf",
    "oneOf",
    "allOf",
    "type",
    "items",
    "format",
    "$defs",
]


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_a_schema_that_is_none_is_shown_all_the_same(keyword: str) -> None:
    """A broken tool costs itself: what is wrong with it is said where it is compiled, not by the prompt."""
    for value in WRONG:
        inside = {"type": "object", "properties": {"a": {keyword: value}}, "$defs": value}
        for schema in ({keyword: value}, inside, {"type": "array", "items": {keyword: value}}):
            format_prompt("x", schema=schema)
            format_prompt("x", tools=[{"name": "f", "parameters": schema}])
        for tool in (
            {"name": "f", "parameters": value},
            {"name": "f", "description": value},
            {"name": value},
        ):
            format_prompt("x", tools=[tool])
