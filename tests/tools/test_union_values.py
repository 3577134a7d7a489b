"""Formats whose notation leaves open what a value is, and schemas whose branches differ inside lists and
objects: a call that the grammar writes is read as a value that the schema takes."""

from __future__ import annotations

from random import Random
from typing import Any

import jsonschema
import pytest

from tokenform.frontends.byte_vocabulary import byte_vocabulary
from tokenform.frontends.tools import FORMATS, ToolCallStream, parse_tool_calls, tool_shape, tools
from tokenform.frontends.tools.shown import written_call

from .tree_writer import Writer

NAMES = ("minimax_m3", "command_a", "gemma4", "functiongemma", "qwen3_coder", "glm45")
STRING, WHOLE, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


def listed(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": 3, **more}


def members(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


PAIR, SWAPPED = (
    {"type": "array", "prefixItems": p, "items": False} for p in ([WHOLE, STRING], [STRING, WHOLE])
)
TREE = {"anyOf": [WHOLE, STRING, listed(STRING), listed({"$ref": "#/$defs/T"}), members(a=STRING)]}
UNIONS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "lists": ({"anyOf": [listed(WHOLE), listed(STRING)]}, [[1, 2], ["x", "1"], ["1", ""]]),
    "lists inside": ({"anyOf": [{"oneOf": [listed(WHOLE), listed(STRING, minItems=1)]}, NULL]}, [["x", "1"]]),
    "branches of lists": ({"type": "array", "anyOf": [{"items": WHOLE}, {"items": STRING}]}, [["1", "x"]]),
    "pairs": ({"anyOf": [PAIR, SWAPPED]}, [[1, "2x"], ["x", 1]]),
    "lists of objects": (
        {"anyOf": [listed(members(a=WHOLE)), listed(members(a=STRING))]},
        [[{"a": 1}], [{"a": "x"}, {"a": "1"}]],
    ),
    "objects": (
        {"anyOf": [members(v=WHOLE, k={"const": "n"}), members(v=STRING, k={"const": "s"})]},
        [{"v": "1", "k": "s"}, {"v": 1, "k": "n"}],
    ),
    "objects with lists": (
        listed(
            {
                "oneOf": [
                    members(k={"const": "n"}, v=listed(WHOLE)),
                    members(k={"const": "s"}, v=listed(STRING)),
                ]
            }
        ),
        [[{"k": "s", "v": ["1", "2"]}, {"k": "n", "v": [1, 2]}]],
    ),
    "a condition": (
        {
            **members(k={"enum": ["n", "s"]}, v={"type": ["integer", "string"]}),
            "if": {"properties": {"k": {"const": "n"}}},
            "then": {"properties": {"v": WHOLE}},
            "else": {"properties": {"v": STRING}},
        },
        [{"k": "s", "v": "1"}, {"k": "n", "v": 1}],
    ),
    "named": ({"enum": [[1, "2"], ["1", 2], {"a": [1]}, {"a": ["1"]}]}, [[1, "2"], ["1", 2]]),
    "a tree": ({"$ref": "#/$defs/T"}, [["1", "x"], [["1", "x"], {"a": "1"}], {"a": "1"}]),
}


def definition(schema: dict[str, Any], outermost: bool = False) -> dict[str, Any]:
    parameters = schema if outermost else members(p=schema)
    return {"name": "f", "parameters": {**parameters, "$defs": {"T": TREE}}}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("union", UNIONS)
def test_values_of_one_reading(name: str, union: str) -> None:
    schema, values = UNIONS[union]
    for value in values:
        for outermost in (False, True):
            if outermost and not isinstance(value, dict):
                continue
            tool, meant = definition(schema, outermost), value if outermost else {"p": value}
            text = written_call("f", meant, FORMATS[name])
            grammar = tools([tool], format=name, json_options={"order": "any"}).core
            assert grammar.compile(byte_vocabulary()).matches(text.encode())
            (got,) = parse_tool_calls(text, [tool], format=name)
            judge = jsonschema.Draft202012Validator(tool["parameters"])
            assert judge.is_valid(got.arguments), got.arguments
            stream = ToolCallStream([tool], format=name)
            for letter in text:
                stream.feed(letter)
            stream.close()
            assert [call.arguments for call in stream.result] == [got.arguments]


@pytest.mark.parametrize("name", ("minimax_m3", "gemma4", "functiongemma"))
@pytest.mark.parametrize("union", UNIONS)
def test_what_the_grammar_writes_of_unions_is_read(name: str, union: str) -> None:
    tool = definition(UNIONS[union][0])
    shape = tool_shape([tool], format=name, tool_choice="f", parallel=False, reasoning="none")
    judge = jsonschema.Draft202012Validator(tool["parameters"])
    for seed in range(10):
        text = Writer(shape, Random(seed)).text()
        (got,) = parse_tool_calls(text, [tool], format=name, reasoning="none")
        assert judge.is_valid(got.arguments), text


def test_the_values_themselves() -> None:
    """Where only one reading satisfies the schema, or marks tell."""
    cases = [
        ("minimax_m3", "lists", ["x", "1"]),
        ("minimax_m3", "objects", {"v": "1", "k": "s"}),
        ("minimax_m3", "objects", {"v": 1, "k": "n"}),
        ("minimax_m3", "objects with lists", [{"k": "s", "v": ["1", "2"]}, {"k": "n", "v": [1, 2]}]),
        ("minimax_m3", "a condition", {"k": "s", "v": "1"}),
        ("gemma4", "lists", ["1", "2"]),
        ("gemma4", "lists", [1, 2]),
        ("gemma4", "lists of objects", [{"a": "1"}]),
        ("functiongemma", "objects", {"v": "1", "k": "s"}),
        ("functiongemma", "lists", ["x", "1"]),
        ("command_a", "lists", ["1", "2"]),
        ("qwen3_coder", "lists", ["1", "2"]),
    ]
    for name, union, value in cases:
        tool = definition(UNIONS[union][0])
        text = written_call("f", {"p": value}, FORMATS[name])
        (got,) = parse_tool_calls(text, [tool], format=name)
        assert got.arguments == {"p": value}, (name, value)
    # what tells comes last
    for name in ("qwen3_coder", "minimax_m3", "functiongemma"):
        tool = definition(UNIONS["objects"][0], True)
        text = written_call("f", {"v": "1", "k": "s"}, FORMATS[name])
        (got,) = parse_tool_calls(text, [tool], format=name)
        assert got.arguments == {"v": "1", "k": "s"}, name


def test_a_layout_in_which_no_argument_was_read_is_not_the_one() -> None:
    """Command A's elements are none here: its older layout is meant."""
    tool = definition(UNIONS["objects"][0], True)
    values = "".join(
        f'<cofl:tool_param name="{k}" string="true">{v}</cofl:tool_param>' for k, v in ("ks", "v1")
    )
    call = f'<cofl:tool_call id="0" name="f">{values}</cofl:tool_call>'
    text = f"<cofl:tool_calls>{call}</cofl:tool_calls>"
    (got,) = parse_tool_calls(text, [tool], format="command_a")
    assert got.arguments == {"k": "s", "v": "1"}
