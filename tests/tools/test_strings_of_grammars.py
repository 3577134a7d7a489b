"""Tools with strings that a grammar binds: exact, and read back; refused where a format can't hold them."""

from __future__ import annotations

import json

import pytest

import tokenform as tf
from tokenform.errors import UnsupportedSchema
from tokenform.frontends.tools import Tool

SCHEMA = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
NESTED = tf.lark('start: pair\npair: "(" pair? ")"')
VOCABULARY = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256])


def call(text: str) -> bytes:
    arguments = json.dumps({"name": "code", "arguments": {"input": text}})
    return f"<tool_call>\n{arguments}\n</tool_call>".encode()


@pytest.mark.parametrize("text", ["()", "(())", "((()))"])
@pytest.mark.parametrize("wrong", ["", "(", "())", "(()", "()()", "a"])
def test_a_call_holds_a_text_of_the_grammar_alone(text, wrong):
    tool = Tool("code", "", SCHEMA, strings_in={"/properties/input": NESTED})
    turn = tf.tools([tool], format="hermes", tool_choice="required", parallel=False)
    automaton = turn.compile(VOCABULARY)
    assert automaton.matches(call(text)) and not automaton.matches(call(wrong))
    (made,) = turn.parse(call(text).decode())
    assert made.arguments == {"input": text}


def test_texts_are_escaped_as_json_asks():
    tool = Tool("code", "", SCHEMA, strings_in={"/properties/input": tf.regex('"\n\\\\')})
    automaton = tf.tools([tool], format="hermes", tool_choice="required").compile(VOCABULARY)
    assert automaton.matches(call('"\n\\'))


@pytest.mark.parametrize("format", ["glm45", "qwen3_coder", "llama4_pythonic"])
def test_formats_that_write_each_argument_refuse_them(format):
    tool = Tool("code", "", SCHEMA, strings_in={"/properties/input": NESTED})
    with pytest.raises(UnsupportedSchema, match="format that writes JSON"):
        tf.tools([tool], format=format)
