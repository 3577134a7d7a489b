"""Tools and calls that a chat template leaves out are put into the messages; others are left alone."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from tests.generation.conftest import small_llama
from transformers import PreTrainedTokenizerFast

import tokenform as tf
from tokenform.frontends.tools.formats import FORMATS
from tokenform.frontends.tools.shown import written_call

SHOWING = (
    "{% if tools %}TOOLS {{ tools | tojson }}\n{% endif %}"
    "{% for m in messages %}{{ m.role }}: {{ m.content }}"
    "{% for c in m.tool_calls %}CALL {{ c.function.name }}{% endfor %}\n{% endfor %}"
)


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sunny"


@pytest.fixture(scope="module")
def writer(chat_tokenizer: PreTrainedTokenizerFast) -> tf.Generator:
    return tf.Generator(small_llama(len(chat_tokenizer) + 5, context=4096), chat_tokenizer)


@pytest.fixture(scope="module")
def showing(writer: tf.Generator) -> tf.Generator:
    tokenizer = copy.deepcopy(writer.tokenizer)
    tokenizer.chat_template = SHOWING
    return tf.Generator(writer.model, tokenizer)


@pytest.mark.parametrize("format", ["hermes", "llama3_json", "olmo3"])
def test_tools_are_named_in_the_system_message(writer: tf.Generator, format: str) -> None:
    grammar = tf.tools([get_weather], format=format)
    layout = written_call("TOOL_NAME", {"ARGUMENT_NAME": "VALUE"}, FORMATS[format])
    for prompt, before in (
        ("Is it raining?", "system: You can call"),
        (
            [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "?"}],
            "system: Be brief.\n",
        ),
    ):
        shown = str(writer.show(prompt, grammar))
        assert shown.startswith(before) and shown.count("system:") == 1
        assert '"get_weather"' in shown and "The weather in a city." in shown and layout in shown


def test_a_template_that_shows_tools_and_calls_is_left_alone(showing: tf.Generator) -> None:
    grammar = tf.tools([get_weather], format="hermes")
    called = {"name": "get_weather", "arguments": {"city": "Oslo"}}
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": called}]},
    ]
    shown = str(showing.show(messages, grammar))
    assert shown.startswith("TOOLS [") and "You can call" not in shown
    assert shown.rstrip().endswith("assistant: CALL get_weather")


@pytest.mark.parametrize("spell", [dict, json.dumps])
@pytest.mark.parametrize("content", ["", None, "A moment."])
def test_an_earlier_call_is_no_empty_turn(writer: tf.Generator, spell: Any, content: Any) -> None:
    called = {"name": "get_weather", "arguments": spell({"city": "Oslo"})}
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": content, "tool_calls": [{"type": "function", "function": called}]},
        {"role": "tool", "content": "sunny"},
    ]
    call = written_call("get_weather", {"city": "Oslo"}, FORMATS["hermes"])
    shown = str(writer.show(messages, tf.tools([get_weather], format="hermes")))
    assert f"assistant: {content or ''}".rstrip() in shown and f"{call}\ntool: sunny" in shown
    bare = str(writer.show(messages))  # no tools any more: the call is still there
    assert "get_weather" in bare and "Oslo" in bare and "You can call" not in bare


def test_a_message_of_a_turn_reads_back(writer: tf.Generator) -> None:
    grammar = tf.tools([get_weather], format="hermes", tool_choice="required", parallel=False)
    calls = grammar.parse(written_call("get_weather", {"city": "Oslo"}, FORMATS["hermes"]))
    messages = [{"role": "user", "content": "?"}, calls.to_message(), calls[0].answer("sunny")]
    shown = str(writer.show(messages, grammar))
    turn = shown.split("assistant: ")[1].split("\ntool: ")[0]
    (read,) = tf.parse_tool_calls(turn, [get_weather], format="hermes")
    assert read.arguments == calls[0].arguments
