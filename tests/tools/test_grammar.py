"""What the trees allow: tool choices, parallel calls, strictness, reasoning, arguments in every spelling."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tokenform.errors import OptionError, ToolError
from tokenform.frontends.tools import FORMATS, find_format, parse_tool_calls, tool_shape
from tokenform.frontends.tools.shown import written_call

from .tree_matcher import accepts

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TWO = [{"name": "a", "parameters": CITY}, {"name": "b", "parameters": {"type": "object", "properties": {}}}]
A = '<tool_call>\n{"name": "a", "arguments": {"city": "x"}}\n</tool_call>'
B = '<tool_call>\n{"name": "b", "arguments": {}}\n</tool_call>'


def one(properties: dict[str, Any], required: list[str] | None = None, **more: Any) -> list[dict[str, Any]]:
    names = list(properties) if required is None else required
    return [
        {"name": "f", "parameters": {"type": "object", "properties": properties, "required": names, **more}}
    ]


@pytest.mark.parametrize(
    ("choice", "allowed", "refused"),
    [
        (
            "auto",
            ["", "hello", A, f"hi {A}\n{B} done", A + A, "<think>" + B + " hm</think>" + A],
            ["<tool_call>", A[:-1]],
        ),
        (
            "required",
            [A, f"{A}\n{B}", A + B + "\n", f"\n{A}", f"<think>x</think>\n\n\n{A}"],
            ["", "hello", f"hi {A}", f"{A} and {B}", f"{A} bye"],
        ),
        ("none", ["", "hello", "<think>x</think>y"], [A, "<tool_call>"]),
        ("b", [B, f"<think>x</think>\n{B}"], ["", A, f"{B}\n{B}", f"x{B}"]),
    ],
)
def test_tool_choice(choice: str, allowed: list[str], refused: list[str]) -> None:
    shape = tool_shape(TWO, format="hermes", tool_choice=choice)
    assert [t for t in allowed if not accepts(shape, t)] == []
    assert [t for t in refused if accepts(shape, t)] == []


def test_parallel_bounds_the_number_of_calls() -> None:
    three = "[b(), b(), b()]"
    for parallel, most in ((False, 1), (2, 2), (True, 3)):
        shape = tool_shape(TWO, format="llama4_pythonic", parallel=parallel, tool_choice="required")
        for count in range(4):
            text = "[" + ", ".join(["b()"] * count) + "]"
            assert accepts(shape, text) == (1 <= count <= most)
    assert accepts(tool_shape(TWO, format="llama4_pythonic"), three)
    text = tool_shape(TWO, format="hermes", parallel=1)
    assert accepts(text, f"x{A}y") and not accepts(text, f"x{A}y{A}")


def test_strict_forbids_undeclared_arguments() -> None:
    text = '{"name": "a", "arguments": {"city": "x", "zip": 1}}'
    assert not accepts(tool_shape(TWO, format="json"), text)
    assert accepts(tool_shape(TWO, format="json", strict=False), text)
    extra = [{"name": "a", "parameters": {**CITY, "additionalProperties": {"type": "integer"}}}]
    assert accepts(tool_shape(extra, format="json"), text)


def test_strict_holds_through_references() -> None:
    schema = {"$ref": "#/$defs/C", "$defs": {"C": CITY}}
    shape = tool_shape([{"name": "a", "parameters": schema}], format="json", tool_choice="required")
    assert accepts(shape, '{"name": "a", "arguments": {"city": "x"}}')
    assert not accepts(shape, '{"name": "a", "arguments": {"city": "x", "zip": 1}}')


def test_reasoning_modes() -> None:
    opened = tool_shape(TWO, format="hermes", tool_choice="required", reasoning="open")
    assert accepts(opened, f"thinking of {A}</think>\n\n{A}") and not accepts(opened, A)
    none = tool_shape(TWO, format="hermes", tool_choice="required", reasoning="none")
    assert accepts(none, A) and not accepts(none, f"<think>x</think>{A}")


def test_a_trigger_inside_a_word_is_text() -> None:
    call = 'functools[{"name": "b", "arguments": {}}]'
    shape = tool_shape(TWO, format="phi4")
    assert (
        accepts(shape, f"so: {call}")
        and accepts(shape, "myfunctools[x")
        and not accepts(shape, "functools[x")
    )
    assert len(parse_tool_calls(f"so: {call}", TWO, format="phi4")) == 1
    assert parse_tool_calls(f"my{call}", TWO, format="phi4").content == f"my{call}"


def test_markers_are_special_tokens() -> None:
    expected = {
        "deepseek_v3": "<｜tool▁sep｜>",
        "kimi_k2": "<|tool_call_begin|>",
        "mistral_v11": "[ARGS]",
        "gpt_oss": "<|message|>",
        "command_r": "<|START_ACTION|>",
        "granite": "<|tool_call|>",
        "deepseek_v32": "｜DSML｜",
        "hermes": "<tool_call>",
    }
    for name, marker in expected.items():
        assert marker in tool_shape(TWO, format=name).specials()


TAGGED = {
    "qwen3_coder": "<tool_call>\n<function=f>\n<parameter=v>\n%s\n</parameter>\n</function>\n</tool_call>",
    "glm45": "<tool_call>f\n<arg_key>v</arg_key>\n<arg_value>%s</arg_value>\n</tool_call>",
    "glm47": "<tool_call>f<arg_key>v</arg_key><arg_value>%s</arg_value></tool_call>",
    "minimax": '<minimax:tool_call>\n<invoke name="f">\n<parameter name="v">%s</parameter>\n</invoke>\n'
    "</minimax:tool_call>",
}
VALUES: list[tuple[Any, str, Any]] = [
    ({"type": "string"}, "x", "x"),
    ({"type": "string"}, "", ""),
    ({"type": "string"}, "\n", "\n"),
    ({"type": "string"}, "a\n\n", "a\n\n"),
    ({"type": "string"}, "5", "5"),
    ({"type": "string"}, '"q" & <b> \\n {"a": 1}', '"q" & <b> \\n {"a": 1}'),
    ({"type": "string"}, "日本 🎉", "日本 🎉"),
    ({"type": "string", "enum": ["a b", "ü\n"]}, "ü\n", "ü\n"),
    ({"type": "integer"}, "-7", -7),
    ({"type": "number"}, "1.5e3", 1500.0),
    ({"type": "boolean"}, "true", True),
    ({"type": "null"}, "null", None),
    ({"type": "array", "items": {"type": "string"}}, '["a", "</x>"]', ["a", "</x>"]),
    ({"type": "object"}, '{"a": {"b": []}}', {"a": {"b": []}}),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "null", None),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "nul", "nul"),
    ({"type": ["string", "integer"]}, "12", 12),
    ({}, '{"a": 1}', {"a": 1}),
    ({}, "plain", "plain"),
    ({"$ref": "#/$defs/N"}, "3", 3),
]


@pytest.mark.parametrize("name", TAGGED)
@pytest.mark.parametrize(("schema", "written", "value"), VALUES)
def test_tagged_values(name: str, schema: Any, written: str, value: Any) -> None:
    definitions = one({"v": schema}, **{"$defs": {"N": {"type": "integer"}}})
    text = TAGGED[name] % written
    assert accepts(tool_shape(definitions, format=name, tool_choice="required"), text)
    (call,) = parse_tool_calls(text, definitions, format=name)
    assert call.arguments == {"v": value} and type(call.arguments["v"]) is type(value)


@pytest.mark.parametrize("name", TAGGED)
@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "integer"}, "x"),
        ({"type": "integer", "maximum": 5}, "6"),
        ({"type": "string", "maxLength": 2}, "abc"),
        ({"type": "string", "pattern": "^a"}, "b"),
        ({"enum": ["a", 3]}, "b"),
        ({"type": "boolean"}, "yes"),
        ({"type": "array"}, "[1,"),
    ],
)
def test_tagged_values_that_are_wrong(name: str, schema: Any, written: str) -> None:
    text = TAGGED[name] % written
    assert not accepts(tool_shape(one({"v": schema}), format=name, tool_choice="required"), text)
    with pytest.raises(ToolError):
        parse_tool_calls(text, one({"v": schema}), format=name)


@pytest.mark.parametrize("name", TAGGED)
def test_markers_in_json_strings_are_read_but_not_written(name: str) -> None:
    definitions = one({"v": {"type": "array"}})
    text = TAGGED[name] % '["</parameter>\\n</arg_value></tool_call>", "<arg_key>"]'
    assert not accepts(tool_shape(definitions, format=name, tool_choice="required"), text)
    value = parse_tool_calls(text, definitions, format=name)[0].arguments["v"]
    assert value == ["</parameter>\n</arg_value></tool_call>", "<arg_key>"]


def test_python_booleans_where_the_template_writes_them() -> None:
    definitions = one({"v": {"type": "boolean"}})
    shape = tool_shape(definitions, format="qwen3_coder", tool_choice="required")
    assert accepts(shape, TAGGED["qwen3_coder"] % "True")
    assert parse_tool_calls(TAGGED["qwen3_coder"] % "True", definitions, format="qwen3_coder")[
        0
    ].arguments == {"v": True}
    assert not accepts(
        tool_shape(definitions, format="glm45", tool_choice="required"), TAGGED["glm45"] % "True"
    )


PYTHON: list[tuple[Any, str, Any]] = [
    ({"type": "string"}, r"'it\'s \\ \n \"x\"'", 'it\'s \\ \n "x"'),
    ({"type": "string"}, '"it\'s"', "it's"),
    ({"type": "string", "enum": ["it's", "b\\"]}, r"'it\'s'", "it's"),
    ({"type": "string", "maxLength": 3}, "'日本🎉'", "日本🎉"),
    ({"type": "number"}, "-2.5e-3", -0.0025),
    ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", [1, 2]),
    ({"type": "object"}, "{'a': [None, True], 'b': {}}", {"a": [None, True], "b": {}}),
    ({"type": ["integer", "null"]}, "None", None),
    ({"const": {"k": [1, "x"]}}, "{'k': [1, 'x']}", {"k": [1, "x"]}),
    (
        {"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/T"}]},
        "{'next': {'next': {}}}",
        {"next": {"next": {}}},
    ),
    (True, "{'x': 1.0}", {"x": 1.0}),
]
TREE = {"T": {"type": "object", "properties": {"next": {"$ref": "#/$defs/T"}}}}


@pytest.mark.parametrize(("schema", "written", "value"), PYTHON)
def test_python_literals(schema: Any, written: str, value: Any) -> None:
    definitions = one({"v": schema}, **{"$defs": TREE})
    text = f"[f(v={written})]"
    assert accepts(tool_shape(definitions, format="llama3_pythonic", tool_choice="required"), text)
    assert parse_tool_calls(text, definitions, format="llama3_pythonic")[0].arguments == {"v": value}


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "string"}, "x"),
        ({"type": "string"}, "'x"),
        ({"type": "string", "pattern": "^a"}, "'b'"),
        ({"type": "integer"}, "1.5"),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 1}, "[]"),
        ({"type": "object", "properties": {"k": {"type": "null"}}, "required": ["k"]}, "{}"),
        ({"enum": ["a"]}, "'b'"),
        ({"type": "number"}, "1e"),
    ],
)
def test_python_literals_that_are_wrong(schema: Any, written: str) -> None:
    text = f"[f(v={written})]"
    assert not accepts(tool_shape(one({"v": schema}), format="llama3_pythonic", tool_choice="required"), text)
    calls = None
    try:
        calls = parse_tool_calls(text, one({"v": schema}), format="llama3_pythonic")
    except ToolError:
        return
    assert not calls and calls.content == text


def test_optional_arguments_in_every_combination() -> None:
    definitions = one({k: {"type": "integer"} for k in "abc"}, ["b"])
    shape = tool_shape(definitions, format="llama3_pythonic", tool_choice="required")
    texts = ["b=1", "a=1, b=1", "b=1, c=1", "a=1, b=1, c=1"]
    assert all(accepts(shape, f"[f({t})]") for t in texts)
    assert not any(
        accepts(shape, f"[f({t})]") for t in ["", "a=1", "c=1", "a=1, c=1", "b=1, ", ", b=1", "b=1, a=1"]
    )
    free = tool_shape(
        one({k: {"type": "integer"} for k in "abc"}, []), format="llama3_pythonic", tool_choice="required"
    )
    assert all(accepts(free, f"[f({t})]") for t in ["", "c=1", "a=1, c=1"])


@pytest.mark.parametrize("name", ["qwen3_coder", "llama3_pythonic", "deepseek_v32"])
def test_keywords_over_the_arguments_as_a_whole_are_kept(name: str) -> None:
    """Which members are there; the empty call is what `minProperties` refuses."""
    free, bound = (one({"a": {}, "b": {}}, [], **more) for more in ({}, {"minProperties": 1}))
    empty = written_call("f", {}, find_format(name))
    chosen: dict[str, Any] = {"format": name, "tool_choice": "required"}
    assert accepts(tool_shape(free, **chosen), empty)
    assert not accepts(tool_shape(bound, **chosen), empty)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"format": "hermse"}, ToolError, "no tool format 'hermse'; choose one of .*hermes"),
        ({"format": "hermes", "tool_choice": "c"}, ToolError, "'c' is neither .* there are 'a', 'b'"),
        ({"format": "hermes", "parallel": 0}, OptionError, "parallel"),
        ({"format": "hermes", "reasoning": "yes"}, OptionError, "reasoning"),
    ],
)
def test_wrong_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tool_shape(TWO, **options)


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("kimi_k2", "a:b"),
        ("qwen3_coder", "a>b"),
        ("llama3_pythonic", "a(b"),
        ("deepseek_v3", "a\nb"),
        ("gpt_oss", "a b"),
    ],
)
def test_names_that_a_format_cannot_write(name: str, tool: str) -> None:
    with pytest.raises(ToolError, match="can't be written"):
        tool_shape([{"name": tool}], format=name)


def test_names_that_json_must_escape() -> None:
    definitions = [{"name": 'say "hi"\\'}]
    text = "<tool_call>\n" + json.dumps({"name": 'say "hi"\\', "arguments": {}}) + "\n</tool_call>"
    assert accepts(tool_shape(definitions, format="hermes"), text)
    assert parse_tool_calls(text, definitions, format="hermes")[0].name == 'say "hi"\\'


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_described(name: str) -> None:
    form = FORMATS[name]
    assert form.name == name and form.models
    assert form.template or name == "json"
