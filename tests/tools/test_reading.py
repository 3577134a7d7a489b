"""Reading: what is kept, what is an error, and where."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from tokenform.errors import ToolError
from tokenform.frontends.tools import FORMATS, Format, ToolCallStream, parse_tool_calls, tools
from tokenform.frontends.tools.reader import Reader
from tokenform.frontends.tools.shown import written_call

from .test_engine_walks import tokens_of, vocabulary

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": "get_weather", "parameters": CITY}]
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "x"}}\n</tool_call>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<tool_call>\n{"name": "get_wether", "arguments": {}}\n</tool_call>', "no tool 'get_wether'"),
        (
            '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>',
            'expected the key "city" .*, not',
        ),
        ('<tool_call>\n{"name": "get_weather", "arguments": {"city": 3}}\n</tool_call>', "at /city"),
        ('<tool_call>\n{"name": "get_weather"}\n</tool_call>', "no arguments"),
        ('<tool_call>\n{"arguments": {}}\n</tool_call>', "no name"),
        (
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": "\\q"}}\n</tool_call>',
            "no JSON escape",
        ),
        (
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": NaN}}\n</tool_call>',
            "'NaN' is no JSON value",
        ),
        (
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": "a\nb"}}\n</tool_call>',
            "control character",
        ),
        ('<tool_call>\n{"name": "get_weather", "name": "get_weather", "arguments": {}}', "twice"),
    ],
)
def test_malformed_calls_are_errors(text: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        parse_tool_calls(text, TOOLS, format="hermes")


def test_the_error_says_where() -> None:
    with pytest.raises(ToolError, match="at character 49"):
        parse_tool_calls('<tool_call>\n{"name": "get_weather", "arguments": [1]}', TOOLS, format="hermes")


def test_validation_can_be_left_out() -> None:
    text = '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'
    assert parse_tool_calls(text, TOOLS, format="hermes", validate=False)[0].arguments == {}


@pytest.mark.parametrize("other", [{"type": "string", "format": "uuid"}, {"type": "string"}])
@pytest.mark.parametrize("name", FORMATS)
def test_a_choice_that_formats_decide(name: str, other: dict[str, Any]) -> None:
    """Calls are written with formats asserted: without them both branches of such a `oneOf` are right."""
    day = {"oneOf": [{"type": "string", "format": "date"}, other]}
    schema = {"type": "object", "properties": {"day": day}, "required": ["day"]}
    judge = Draft202012Validator(schema, format_checker=FormatChecker())
    for value in ("2024-05-06", "tomorrow"):
        text = written_call("remind", {"day": value}, FORMATS[name])
        try:
            read = list(parse_tool_calls(text, [{"name": "remind", "parameters": schema}], format=name))
        except ToolError:
            read = []
        right = judge.is_valid({"day": value})
        assert [call.arguments for call in read] == ([{"day": value}] if right else []), text


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    for value in ("[" * 100_000, '{"a":' * 100_000):
        with pytest.raises(ToolError, match="nested deeper"):
            parse_tool_calls(
                '<tool_call>{"name": "get_weather", "arguments": {"city": ' + value, TOOLS, format="hermes"
            )
    open_list = "[get_weather(city=" + "[" * 100_000
    with pytest.raises(ToolError, match="nested deeper"):
        parse_tool_calls(open_list, TOOLS, format="llama3_pythonic")


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("", None),
        ("  \n", None),
        ("  hi ", "  hi "),
        (f"hi\n{CALL}", "hi\n"),
        (f"hi {CALL}\n\nbye ", "hi bye "),
        (f"{CALL}\n{CALL}\n", None),
        ("a < b <tool", "a < b <tool"),
        ("<tool_cal", "<tool_cal"),
        ("hi<|im_end|>", "hi"),
    ],
)
def test_content_is_what_stands_outside_calls(text: str, content: str | None) -> None:
    assert parse_tool_calls(text, TOOLS, format="hermes").content == content


@pytest.mark.parametrize(
    ("text", "mode", "reasoning", "content"),
    [
        ("<think>\na\n\nb\n</think>\n\nhi", "auto", "a\n\nb", "hi"),
        ("\n<think>a</think>hi", "auto", "a", "hi"),
        ("a</think>hi", "auto", "a", "hi"),
        ("a</think>hi", "none", None, "a</think>hi"),
        ("<think></think>hi", "auto", "", "hi"),
        ("a", "open", "a", None),
        ("<think>a", "auto", "a", None),
        (f"see {CALL}</think>hi", "open", f"see {CALL}", "hi"),
        ("hi", "auto", None, "hi"),
    ],
)
def test_reasoning(text: str, mode: str, reasoning: str | None, content: str | None) -> None:
    got = parse_tool_calls(text, TOOLS, format="hermes", reasoning=mode)
    assert (got.reasoning, got.content, len(got)) == (reasoning, content, 0)


@pytest.mark.parametrize(
    "text", ['{"name": "other", "parameters": {}}', '{"a": 1}', "{", "see {x} and [y](z)", "[1, 2]"]
)
@pytest.mark.parametrize("name", ["llama3_json", "llama3_pythonic", "json"])
def test_where_calls_have_no_marker_other_json_is_text(name: str, text: str) -> None:
    got = parse_tool_calls(text, TOOLS, format=name)
    assert not got and got.content == text


def test_a_broken_call_in_the_middle_of_unmarked_text_is_text() -> None:
    text = 'I may say {"name": "get_weather", "parameters": {"town": 1}} or so'
    assert parse_tool_calls(text, TOOLS, format="llama3_json").content == text
    with pytest.raises(ToolError):
        parse_tool_calls(text[10:], TOOLS, format="llama3_json")


def test_rereading_is_bounded() -> None:
    broken = '{"name": "get_weather", "parameters": {"city": [' * 3000
    call = '{"name": "get_weather", "parameters": {"city": "x"}}'
    assert len(parse_tool_calls(f"say {broken[:480]} {call}", TOOLS, format="llama3_json")) == 1
    got = parse_tool_calls(f"say {broken} {call}", TOOLS, format="llama3_json")
    assert not got and got.content == f"say {broken} {call}"


V32 = '<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n{}</｜DSML｜invoke>\n</｜DSML｜function_calls>'
V32_ARGUMENT = '<｜DSML｜parameter name="{}"{}>{}</｜DSML｜parameter>\n'
LISTED = '[{"name": "f", "arguments": {"s": "x"}}]'


@pytest.mark.parametrize(
    ("name", "text", "arguments"),
    [
        ("deepseek_v32", V32.format(V32_ARGUMENT.format("s", ' string="false"', '"x"')), {"s": "x"}),
        ("deepseek_v32", V32.format(V32_ARGUMENT.format("s", ' string="false"', "x y")), {"s": "x y"}),
        ("deepseek_v32", V32.format(V32_ARGUMENT.format("i", ' string="true"', "3")), {"i": 3}),
        ("deepseek_v32", V32.format(V32_ARGUMENT.format("i", "", "3")), {"i": 3}),
        ("llama3_pythonic", "[f(s='x'),]", {"s": "x"}),
        ("llama3_pythonic", "[f(s='x' \"y\"\n'z')]", {"s": "xyz"}),
        ("llama3_pythonic", "[f(s='''a\n'b'\\t''')]", {"s": "a\n'b'\t"}),
        ("llama3_pythonic", "[f(s='', i=1_000)]", {"s": "", "i": 1000}),
        ("llama4_pythonic", "<|python_start|>\n[f(i=-3)]", {"i": -3}),
        ("llama3_json", '[{"name": "f", "parameters": {"s": "x"}}]', {"s": "x"}),
        ("qwen3_coder", "<function=f>\n<parameter=i>\n3\n</parameter>\n</function>\n</tool_call>", {"i": 3}),
        ("granite", LISTED, {"s": "x"}),
        ("phi4", f"functools [ {LISTED[1:-1]} ]", {"s": "x"}),
        ("json", f"```\n{LISTED}\n```", {"s": "x"}),
        ("json", f"<tool_call>{LISTED}</tool_call>", {"s": "x"}),
        ("json", f"[TOOL_CALLS]{LISTED}", {"s": "x"}),
        ("gpt_oss", '<|channel|>commentary to=functions.f<|message|> {"i": 3} \n<|call|>', {"i": 3}),
        (
            "kimi_k2",
            '<|tool_call_begin|> f:0 <|tool_call_argument_begin|> {"i": 3} <|tool_call_end|>',
            {"i": 3},
        ),
        ("glm47", "<tool_call> f \n<arg_key> i </arg_key>\n<arg_value>3</arg_value>\n</tool_call>", {"i": 3}),
        ("minimax", '<minimax:tool_call>\n  <invoke name="f">\n  </invoke>\n</minimax:tool_call>', {}),
    ],
)
def test_layouts_beside_the_templates_are_read(name: str, text: str, arguments: dict[str, Any]) -> None:
    parameters = {"type": "object", "properties": {"s": {"type": "string"}, "i": {"type": "integer"}}}
    got = parse_tool_calls(text, [{"name": "f", "parameters": parameters}], format=name)
    assert [call.arguments for call in got] == [arguments]
    assert got.content is None and got.reasoning is None


def test_ids_are_the_models_own_or_made() -> None:
    kimi = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:3<|tool_call_argument_begin|>"
        '{"city": "x"}<|tool_call_end|><|tool_calls_section_end|>'
    )
    assert parse_tool_calls(kimi, TOOLS, format="kimi_k2")[0].id == "functions.get_weather:3"
    first, second = parse_tool_calls(CALL + CALL, TOOLS, format="hermes")
    assert first.id != second.id and first == second
    mistral = '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "x"}}]'
    made = parse_tool_calls(mistral, TOOLS, format="mistral_v3")[0].id
    assert len(made) == 9 and made.isalnum()


def test_the_message_for_the_conversation() -> None:
    got = parse_tool_calls(f"<think>t</think>hi{CALL}", TOOLS, format="hermes")
    message = got.to_openai()
    assert (message["role"], message["content"], message["reasoning_content"]) == ("assistant", "hi", "t")
    (entry,) = message["tool_calls"]
    assert json.loads(entry["function"]["arguments"]) == {"city": "x"} and entry["id"] == got[0].id


def test_deltas_come_as_the_text_comes() -> None:
    stream = ToolCallStream(TOOLS, format="hermes", reasoning="none")
    assert stream.feed("Hello <to") == [{"role": "assistant", "content": "Hello "}]
    assert stream.feed('ol_call>\n{"name": "get_wea') == []
    assert stream.feed('ther", "arguments": ') == []
    first, second = stream.feed('{"city": "a')
    function = first["tool_calls"][0]["function"]
    assert function == {"name": "get_weather", "arguments": ""} and first["tool_calls"][0]["index"] == 0
    assert second == {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": "a'}}]}
    assert stream.feed("\\") == []
    assert stream.feed('"b"}') == [{"tool_calls": [{"index": 0, "function": {"arguments": '\\"b"}'}}]}]
    assert stream.feed("}\n</tool_call>") == [] and stream.close() == []
    assert stream.finish_reason == "tool_calls" and stream.result[0].arguments == {"city": 'a"b'}


def test_bytes_may_be_cut_within_a_character() -> None:
    stream = ToolCallStream(TOOLS, format="hermes", reasoning="none")
    deltas: list[Any] = [d for byte in "é🎉".encode() for d in stream.feed(bytes([byte]))]
    assert [d["content"] for d in deltas] == ["é", "🎉"]
    stream.feed("é".encode()[:1])
    with pytest.raises(ToolError, match="UTF-8"):
        stream.close()


def test_a_closed_reader_takes_no_more() -> None:
    stream = ToolCallStream(TOOLS, format="hermes")
    stream.close()
    with pytest.raises(ToolError, match="closed"):
        stream.feed("x")


@pytest.mark.parametrize("name", ["hermes", "kimi_k2"])
def test_a_call_in_a_thought_counts_only_where_the_thought_never_closes(name: str) -> None:
    kimi = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        '{"city": "</think>"}<|tool_call_end|><|tool_calls_section_end|>'
    )
    call = {"hermes": CALL, "kimi_k2": kimi}[name]
    for mode, opened in (("open", ""), ("auto", "<think>")):
        got = parse_tool_calls(f"{opened}So: {call}", TOOLS, format=name, reasoning=mode)
        assert (len(got), got.reasoning, got.content) == (1, "So: ", None)
        got = parse_tool_calls(f"{opened}So: {call} no</think>Hi", TOOLS, format=name, reasoning=mode)
        assert (len(got), got.reasoning, got.content) == (0, f"So: {call} no", "Hi")
        got = parse_tool_calls(f"{opened}a {call} b</think>{call}", TOOLS, format=name, reasoning=mode)
        assert (len(got), got.reasoning) == (1, f"a {call} b")


def test_a_thought_that_only_names_the_marker_stays_a_thought() -> None:
    got = parse_tool_calls("I might write <tool_call> here", TOOLS, format="hermes", reasoning="open")
    assert (len(got), got.reasoning) == (0, "I might write <tool_call> here")


@pytest.mark.parametrize("name", ["hunyuan_v3", "step3", "deepseek_v3", "deepseek_v31", "gemma4", "lfm2"])
def test_a_thought_that_a_call_ends_may_name_any_marker(name: str) -> None:
    form = FORMATS[name]
    call = written_call("get_weather", {"city": "Rome"}, form)
    vocab = vocabulary(name, True)
    auto = tools(TOOLS, format=name, tool_choice="required", reasoning="open").compile(vocab)
    for marker in form.inner:
        text = f"I may write {marker} here.{call}"
        state = auto.start
        for token in tokens_of(vocab, text):
            assert auto.allows(state, token)
            state = auto.advance(state, token)
        assert auto.is_accepting(state)
        got = parse_tool_calls(text, TOOLS, format=name, reasoning="open")
        assert [c.arguments for c in got] == [{"city": "Rome"}]
        assert (got.reasoning, got.content) == (f"I may write {marker} here.", None)


@pytest.mark.parametrize("form", FORMATS.values(), ids=lambda form: form.name)
def test_a_call_of_an_unknown_tool_streams_nothing(form: Format) -> None:
    """Its arguments are not told as those of the call before it."""
    known, unknown = (written_call(name, {"city": "Rome"}, form) for name in ("get_weather", "get_nothing"))
    stream = ToolCallStream(TOOLS, format=form, reasoning="none")
    deltas = [delta for piece in (known, unknown) for delta in stream.feed(piece)]
    with suppress(ToolError):
        deltas += stream.close()
    told = [call["function"]["arguments"] for delta in deltas for call in delta.get("tool_calls", ())]
    assert json.loads("".join(told)) == {"city": "Rome"}


@pytest.mark.parametrize("form", FORMATS.values(), ids=lambda form: form.name)
def test_what_was_read_is_not_kept(form: Format) -> None:
    """Behind a call, whole or broken, a reader holds no place to which it might go back."""
    rng = random.Random(form.name)
    first, second = (written_call("get_weather", {"city": city}, form) for city in ("Rome", "Oslo"))
    for _ in range(40):
        at = rng.randrange(len(first))
        broken = rng.choice(
            [first, first[:at] + first[at + 1 :], f"{first[:at]}{rng.choice('<>{}[]| ')}{first[at:]}"]
        )
        reader = Reader(form, TOOLS, reasoning=rng.choice(["none", "auto", "open"]))
        for piece in f"{broken} and {second} end":
            reader.feed(piece)
        with suppress(ToolError):
            reader.close()
        assert not reader.source.marks, broken
