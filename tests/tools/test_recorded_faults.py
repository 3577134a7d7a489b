"""What models write wrong: read where one reading remains, else an error that keeps the other calls."""

from __future__ import annotations

from typing import Any

import pytest

import tokenform as tf
from tokenform.errors import ToolError
from tokenform.frontends.tools import FORMATS, ToolCalls, ToolCallStream, parse_tool_calls
from tokenform.frontends.tools.judge import byte_vocabulary
from tokenform.frontends.tools.shown import written_call


def tool(name: str, *required: str, **properties: str) -> dict[str, Any]:
    members = {key: {"type": kind} for key, kind in properties.items()}
    schema = {"type": "object", "properties": members, "required": list(required)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


TOOLS = [
    tool("search", "query", query="string", limit="integer"),
    tool("edit", "s", s="string", n="integer"),
    tool("now"),
]


def read(text: str, format: str) -> ToolCalls:
    """The calls, the same whole and by characters."""
    calls = parse_tool_calls(text, TOOLS, format=format, reasoning="none")
    stream = ToolCallStream(TOOLS, format=format, reasoning="none")
    for character in text:
        stream.feed(character)
    stream.close()
    assert list(stream.result) == list(calls) and stream.result.content == calls.content
    return calls


def pairs(calls: Any) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in calls]


def qwen(*parameters: str, end: str = "</function>\n</tool_call>") -> str:
    return "<tool_call>\n<function=edit>\n" + "\n".join(parameters) + f"\n{end}"


INVOKE = (
    '<｜DSML｜invoke name="search">\n<｜DSML｜parameter name="query" string="true">x</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n"
)
SEARCH = ("search", {"query": "x"})
MARKED = '<|tool_call>call:search{query:<|"|>x<|"|>}<tool_call|>'


def test_a_mark_that_is_missing_is_an_error() -> None:
    text = '<|tool_call>call:search{query:Paris, France<|"|>,limit:5}<tool_call|>' + MARKED
    with pytest.raises(ToolError, match="mark") as caught:
        read(text, "gemma4")
    assert pairs(caught.value.calls) == [SEARCH]


def test_a_name_does_not_run_into_the_next_call() -> None:
    text = '<|tool_call>call:search<query:<|"|>y<|"|>><tool_call|>\n' + MARKED
    with pytest.raises(ToolError, match="name") as caught:
        read(text, "gemma4")
    assert pairs(caught.value.calls) == [SEARCH]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (qwen("<parameter=s>\nabc\n<parameter=n>\n5\n</parameter>"), {"s": "abc", "n": 5}),
        (qwen("<parameter=s>\nx </parameter> y\n</parameter>"), {"s": "x </parameter> y"}),
        (
            qwen("<parameter=s>\na\n</parameter>\nb\n</parameter>", "<parameter=n>\n5\n</parameter>"),
            {"s": "a\n</parameter>\nb", "n": 5},
        ),
        (qwen("<parameter=s>\nabc\n</parameter>", "<parameter=n>\n5.0\n</parameter>"), {"s": "abc", "n": 5}),
        (qwen("<parameter=s>\nabc\n</parameter>", end="</function>"), {"s": "abc"}),
        (qwen("<parameter=s>\nabc\n</parameter>", end="</function>\n</tool_"), {"s": "abc"}),
    ],
)
def test_qwen_coder(text: str, arguments: dict[str, Any]) -> None:
    (call,) = read(text, "qwen3_coder")
    assert call.arguments == arguments and not any(isinstance(v, float) for v in call.arguments.values())


def test_a_closer_that_nothing_follows_does_not_swallow_the_next_call() -> None:
    good = qwen("<parameter=s>\nabc\n</parameter>")
    with pytest.raises(ToolError) as caught:
        read(qwen("<parameter=s>\nx</parameter><!>") + "\n" + good, "qwen3_coder")
    assert pairs(caught.value.calls) == [("edit", {"s": "abc"})]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        (
            "glm45",
            "<tool_call>edit\n<arg_key>s</arg_key>\n<arg_value>x </arg_value> y</arg_value>\n</tool_call>",
        ),
        (
            "minimax",
            '<minimax:tool_call>\n<invoke name="edit">\n<parameter name="s">x </parameter> y</parameter>\n'
            "</invoke>\n</minimax:tool_call>",
        ),
    ],
)
def test_values_hold_what_looks_like_their_closer(format: str, text: str) -> None:
    (call,) = read(text, format)
    assert call.arguments["s"] in ("x </arg_value> y", "x </parameter> y")


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("deepseek_v4", f"{INVOKE}</｜DSML｜tool_calls>"),
        ("deepseek_v4", f"\n\n<｜DSML｜function_calls>\n{INVOKE}</｜DSML｜function_calls>"),
        ("deepseek_v32", f"{INVOKE}</｜DSML｜function_calls>"),
        ("deepseek_v32", f"\n\n<｜DSML｜function_calls>\n{INVOKE}"),
        ("hermes", '<tool_call>\n{"name": "search", "arguments": "{\\"query\\": \\"x\\"}"}\n</tool_call>'),
        ("hermes", '<tool_call>\n{"name": "search", "arguments": {"query": "x"}}\n</tool_c'),
        ("hermes", '<tool_call>\n{"name": "search", "arguments": {"query": "x"}}'),
        ("gemma4", MARKED.removesuffix("<tool_call|>")),
    ],
)
def test_nothing_is_missing(format: str, text: str) -> None:
    calls = read(text, format)
    assert pairs(calls) == [SEARCH] and not calls.content


def test_a_call_without_arguments() -> None:
    assert pairs(read('<tool_call>\n{"name": "now"}\n</tool_call>', "hermes")) == [("now", {})]
    with pytest.raises(ToolError, match="no arguments"):
        read('<tool_call>\n{"name": "search"}\n</tool_call>', "hermes")


def test_a_closer_in_a_json_string_is_text() -> None:
    text = '<tool_call>\n{"name": "search", "arguments": {"query": "</tool_call>"}}\n</tool_call>'
    assert pairs(read(text, "hermes")) == [("search", {"query": "</tool_call>"})]


@pytest.mark.parametrize("name", ["qwen3_coder", "minimax", "seed_oss"])
def test_a_closer_in_a_value_is_written(name: str) -> None:
    value = "<a>\n</parameter>\nx </parameter> y"
    grammar = tf.tools(TOOLS, format=name, tool_choice="edit", parallel=False, reasoning="none")
    text = written_call("edit", {"s": "a0z"}, FORMATS[name]).replace("a0z", value)
    assert grammar.core.compile(byte_vocabulary()).matches(text.encode()), text
    assert grammar.parse(text)[0].arguments == {"s": value}
