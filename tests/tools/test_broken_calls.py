"""A broken call costs itself alone, and nothing that a caller or a model writes makes reading slow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tokenform.errors import ToolError
from tokenform.frontends.tools import ToolCallStream, find_format, parse_tool_calls

from .layouts import LAYOUTS, TOOLS
from .layouts.cases import BOOK, PLAY, Layout

# The template's two calls in a row, book_table and play.
TWO: dict[str, Layout] = {}
for _case in LAYOUTS:
    if _case.tier == "must" and _case.calls == (BOOK, PLAY) and _case.content is None:
        TWO.setdefault(_case.format, _case)
MARKED = [name for name in TWO if not find_format(name).wire.guess]


def read(name: str, text: str) -> ToolError:
    """The error of a text, the same whole and by characters."""
    with pytest.raises(ToolError) as whole:
        parse_tool_calls(text, TOOLS, format=name)
    stream = ToolCallStream(TOOLS, format=name)
    for character in text:
        stream.feed(character)
    with pytest.raises(ToolError) as parts:
        stream.close()
    assert str(parts.value) == str(whole.value) and parts.value.cut == whole.value.cut
    assert list(parts.value.calls) == list(whole.value.calls)
    return whole.value


def names(error: ToolError) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in error.calls]


@pytest.mark.parametrize("name", sorted(TWO))
def test_wrong_arguments_cost_their_call_alone(name: str) -> None:
    error = read(name, TWO[name].output.replace("4", "[4]", 1))
    assert names(error) == [PLAY] and error.calls.content is None and "guests" in str(error)


@pytest.mark.parametrize("name", MARKED)
def test_an_unknown_tool_costs_its_call_alone(name: str) -> None:
    error = read(name, TWO[name].output.replace("book_table", "book_tablet", 1))
    assert names(error) == [PLAY] and error.calls.content is None and "'book_tablet'" in str(error)


@pytest.mark.parametrize(
    "name", ["hermes", "qwen3_coder", "glm45", "glm47", "kimi_k2", "deepseek_v3", "minimax"]
)
def test_a_broken_layout_costs_its_call_alone(name: str) -> None:
    """Something strange right behind the first call's arguments."""
    text = TWO[name].output
    place = text.index("4") + 1
    error = read(name, text[:place] + "<!>" + text[place:] + " Gern.")
    assert names(error) == [PLAY]
    assert error.calls.content == "Gern."


@pytest.mark.parametrize("name", sorted(TWO))
def test_a_text_that_just_ends_is_cut(name: str) -> None:
    text = TWO[name].output
    place = text.index("Ode") + 2
    error = read(name, text[:place])
    assert error.cut and "cut" in str(error) and names(error) == [BOOK]


def test_what_is_wrong_before_the_end_is_not_cut() -> None:
    assert not read("hermes", '<tool_call>\n{"name": "play", "arguments": {"song": 3}}\n</tool_call>').cut
    assert not read("hermes", '<tool_call>\n{"name": 3, "arguments": {}}\n</tool_call>').cut


HOSTILE = {"type": "object", "properties": {"s": {"type": ["string", "null"], "pattern": "^(a+)+$"}}}
LONG = "a" * 60 + "b"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", '<tool_call>\n{{"name": "f", "arguments": {{"s": "{}"}}}}\n</tool_call>'),
        (
            "qwen3_coder",
            "<tool_call>\n<function=f>\n<parameter=s>\n{}\n</parameter>\n</function>\n</tool_call>",
        ),
        ("glm47", "<tool_call>f<arg_key>s</arg_key><arg_value>{}</arg_value></tool_call>"),
        (
            "minimax",
            '<minimax:tool_call>\n<invoke name="f">\n<parameter name="s">{}</parameter>\n</invoke>\n'
            "</minimax:tool_call>",
        ),
        ("llama3_pythonic", "[f(s='{}')]"),
    ],
)
@pytest.mark.parametrize("keyword", ["pattern", "patternProperties", "enum"])
def test_no_pattern_makes_reading_slow(name: str, text: str, keyword: str) -> None:
    """`^(a+)+$` takes 2**60 steps in a backtracking matcher."""
    schema: dict[str, Any] = {
        "pattern": HOSTILE,
        "enum": {"type": "object", "properties": {"s": {"enum": ["x"], "pattern": "^(x+)+$"}}},
        "patternProperties": {
            "type": "object",
            "properties": {"s": {}},
            "patternProperties": {"^(s+)+$": False},
        },
    }[keyword]
    with pytest.raises(ToolError):
        parse_tool_calls(text.format(LONG), [{"name": "f", "parameters": schema}], format=name)


def test_a_schema_that_the_engine_can_not_judge_by_says_so() -> None:
    tools = [
        {"name": "play", "parameters": {"type": "object", "properties": {"song": {"pattern": r"^(.)\1$"}}}}
    ]
    text = '<tool_call>\n{"name": "play", "arguments": {"song": "aa"}}\n</tool_call>'
    with pytest.raises(ToolError, match="validate=False"):
        parse_tool_calls(text, tools, format="hermes")
    assert len(parse_tool_calls(text, tools, format="hermes", validate=False)) == 1


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", sorted(TWO))
def test_long_texts_are_read(name: str) -> None:
    """A string of 300,000 backslashes, and 2,000 calls; quadratic reading would take minutes."""
    if name in ("hermes", "llama3_pythonic", "glm47"):
        quoted = json.dumps("\\" * 300_000)
        arg = "<arg_key>song</arg_key><arg_value>"
        text = {
            "hermes": f'<tool_call>\n{{"name": "play", "arguments": {{"song": {quoted}}}}}\n</tool_call>',
            "llama3_pythonic": f"[play(song={quoted})]",
            "glm47": f"<tool_call>play{arg}{quoted[1:-1]}</arg_value></tool_call>",
        }[name]
        (call,) = parse_tool_calls(text, TOOLS, format=name)
        assert set(call.arguments["song"]) == {"\\"}
    if not find_format(name).wire.guess and not find_format(name).channels:
        assert len(parse_tool_calls(TWO[name].output * 1000, TOOLS, format=name)) == 2000


# Sections whose calls have no marks of their own.
BARE = ["apertus", "command_r", "hunyuan", "lfm2", "minimax_m1", "nemotron", "olmo3"]


def without_opener(name: str) -> str:
    """The two calls without what opens their section."""
    text, opened = TWO[name].output, find_format(name).wire.section[0]  # type: ignore[index]
    assert opened in text
    return text[text.index(opened) + len(opened) :]


@pytest.mark.parametrize("said", ["", "I look it up. "])
@pytest.mark.parametrize("name", BARE)
def test_calls_are_told_by_what_closes_their_section(name: str, said: str) -> None:
    """In pieces too: nothing of them is given as text before."""
    text = said + without_opener(name) + " Gern."
    found = parse_tool_calls(text, TOOLS, format=name)
    assert [(call.name, call.arguments) for call in found] == [BOOK, PLAY]
    assert (found.content or "").split() == [*said.split(), "Gern."]
    stream = ToolCallStream(TOOLS, format=name)
    deltas = [delta for character in text for delta in stream.feed(character)] + stream.close()
    assert "".join(delta.get("content") or "" for delta in deltas) == found.content
    assert list(stream.result) == list(found)


@pytest.mark.parametrize("name", ["lfm2", "olmo3"])
def test_text_may_speak_of_calls(name: str) -> None:
    for text in (
        "play(song='Ode') plays a song.",
        "Call play(song='Ode'), then\nbook_table(place='x', guests=1).",
        "replay(song='Ode')] and self.play(song='Ode')]",
    ):
        found = parse_tool_calls(text, TOOLS, format=name, reasoning="none")
        assert not found and found.content == text


def test_a_call_without_its_beginning_costs_itself_alone() -> None:
    text = TWO["apertus"].output.replace('{"book_table', "{book_tablet", 1)
    assert text != TWO["apertus"].output and names(read("apertus", text)) == [PLAY]


SEARCH = {
    "name": "play",
    "parameters": {"type": "object", "properties": {"song": {"type": "string"}}, "required": ["song"]},
}
MEANT = [("play", {"song": "Ode"})]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", '<tool_call>\n{"name": "play", "arguments": ({"song": "Ode"})}\n</tool_call>'),
        ("hermes", '<tool_call>\n{"name": "play", "arguments": ```json\n{"song": "Ode"}\n```}\n</tool_call>'),
        ("hermes", '<tool_call>\n{"Name": "play", "Arguments": {"song": "Ode"}}\n</tool_call>'),
        ("json", '[{"name": "play", "arguments": "{\\"song\\": \\"Ode\\"}"}]'),
        ("mistral_v11", '[TOOL_CALLS]play[ARGS]({"song": "Ode"})'),
        ("gemma4", '<|tool_call>call:play(song:<|"|>Ode<|"|>)<tool_call|>'),
        ("gemma4", '<|tool_call>play{song:<|"|>Ode<|"|>}<tool_call|>'),
        ("internlm", '<|action_start|>{"name": "play", "parameters": {"song": "Ode"}}<|action_end|>'),
        ("internlm", '<|plugin|>\n{"name": "play", "parameters": {"song": "Ode"}}<|action_end|>'),
        (
            "minimax",
            '<minimax:tool_call>\nplay">\n<parameter name="song">Ode</parameter>\n</invoke>\n'
            "</minimax:tool_call>",
        ),
        (
            "command_a",
            '<cofl:tool_calls>play"><cofl:value name="song" type="raw">Ode</cofl:value></cofl:tool_call>'
            "</cofl:tool_calls>",
        ),
        (
            "kimi_k2",
            "<|tool_calls_section_begin|>functions.play:0<|tool_call_argument_begin|>"
            '{"song": "Ode"}<|tool_call_end|><|tool_calls_section_end|>',
        ),
        (
            "seed_oss",
            "<function=play>\n<parameter=song>\nOde\n</parameter>\n</function>\n</seed:tool_call>",
        ),
    ],
)
def test_one_reading_is_taken(name: str, text: str) -> None:
    for said in ("", "I play it. ") if not find_format(name).at_start else ("",):
        found = parse_tool_calls(said + text, [SEARCH], format=name, reasoning="none")
        assert [(call.name, call.arguments) for call in found] == MEANT
        assert (found.content or "") == said
        stream = ToolCallStream([SEARCH], format=name, reasoning="none")
        for character in said + text:
            stream.feed(character)
        stream.close()
        assert list(stream.result) == list(found) and stream.result.content == found.content


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "hermes",
            '<tool_call>\n{"name": "play", "Name": "stop", "arguments": {"song": "Ode"}}\n</tool_call>',
        ),
        ("hermes", '<tool_call>\n{"name": "play", "arguments": ({"song": "Ode"}}\n</tool_call>'),
        ("minimax", '<minimax:tool_call>\nplayer">\n</invoke>\n</minimax:tool_call>'),
        ("seed_oss", "<function=player>\n</function>\n</seed:tool_call>"),
    ],
)
def test_what_has_no_one_reading_is_an_error(name: str, text: str) -> None:
    with pytest.raises(ToolError) as error:
        parse_tool_calls(text, [SEARCH], format=name, reasoning="none")
    assert not error.value.calls
