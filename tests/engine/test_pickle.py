"""Grammars, vocabularies and automata travel: by their sources."""

from __future__ import annotations

import copy
import pickle

import pydantic
import pytest
import typing_extensions

import tokenform as tf
from tokenform.errors import InvalidType, ToolError
from tokenform.frontends.tools.definitions import read_tools

TOKENS = [bytes([b]) for b in range(256)] + [b"true", b'": ', b"<|x|>", b"</s>"]
VOCABULARY = tf.Vocabulary(TOKENS, eos=[259], special=[258])

GRAMMARS = {
    "schema": tf.json_schema(
        {"properties": {"a": {"$ref": "urn:x"}}, "required": ["a"]},
        whitespace="compact",
        order="any",
        registry={"urn:x": {"type": "integer"}},
    ),
    "regex": tf.regex("a+b?"),
    "ecma": tf.regex("a+b?") | tf.json_schema({"type": "string", "pattern": "^x"}),
    "choice": tf.choice(["one", "two"]),
    "gbnf": tf.gbnf('root ::= "a" root | "b"'),
    "lark": tf.lark('start: "a" start | /b+/'),
    "sequence": "<" + tf.json_schema({"type": "boolean"}) + ">",
    "not": ~tf.regex("a*"),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_grammar_travels(name: str) -> None:
    grammar = GRAMMARS[name]
    again = pickle.loads(pickle.dumps(grammar))
    assert again.source == grammar.source and again.form == grammar.form
    one, other = grammar.core.compile(VOCABULARY), again.core.compile(VOCABULARY)
    for text in (b"aab", b'"xy"', b"one", b'{"a":1}', b'{"a": 1}', b"<true>", b"b", b"", b"c"):
        assert one.matches(text) == other.matches(text)
    assert one.allowed_tokens(one.start).tolist() == other.allowed_tokens(other.start).tolist()
    assert copy.deepcopy(grammar) is grammar and copy.copy(grammar) is grammar


def test_a_vocabulary_travels() -> None:
    again = pickle.loads(pickle.dumps(VOCABULARY))
    assert (again.tokens, again.eos, again.special) == (TOKENS, [259], [258])
    assert type(again) is tf.Vocabulary and copy.deepcopy(VOCABULARY) is VOCABULARY


def test_an_automaton_travels_with_its_limits() -> None:
    automaton = GRAMMARS["gbnf"].compile(VOCABULARY, limits=tf.engine.Limits(memory=1))
    again = pickle.loads(pickle.dumps(automaton))
    assert again.allowed_tokens(again.start).tolist() == automaton.allowed_tokens(automaton.start).tolist()
    again.clear()
    assert again.stats()["generations"] > 1
    assert pickle.loads(pickle.dumps(tf.engine.Limits(work=5, depth=3))) == tf.engine.Limits(work=5, depth=3)


def test_the_values_of_a_grammar_travel() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    grammar = tf.tools([tool], format="hermes", tool_choice="required")
    again = pickle.loads(pickle.dumps(grammar))
    text = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    assert again.parse(text)[0].name == "f"


def weather(city: str, days: int = 3) -> str:
    """The weather.

    Args:
        city: where.
    """
    return f"{city} {days}"


class Person(pydantic.BaseModel):
    name: str


class Place(typing_extensions.TypedDict):
    name: str


ARGUMENTS = {"weather": '{"city": "Rome"}', "Person": '{"name": "Ada"}', "Place": '{"name": "Rome"}'}


@pytest.mark.parametrize("tp", [weather, Person, Place])
def test_grammars_of_functions_and_types_travel(tp) -> None:
    arguments = ARGUMENTS[tp.__name__]
    grammar = tf.from_type(tp, order="any")
    again = pickle.loads(pickle.dumps(grammar))
    assert again.parse(arguments) == grammar.parse(arguments) and again.shapes is not None
    calling = tf.tools([tp], format="hermes", tool_choice="required")
    again = pickle.loads(pickle.dumps(calling))
    text = f'<tool_call>\n{{"name": "{tp.__name__}", "arguments": {arguments}}}\n</tool_call>'
    (call,), (other,) = again.parse(text), calling.parse(text)
    assert (call.name, call.arguments) == (other.name, other.arguments)
    assert again.tools == calling.tools


def test_tools_of_functions_travel_with_what_they_call() -> None:
    (tool,) = pickle.loads(pickle.dumps(read_tools([weather])))
    assert tool.call({"city": "Rome"}) == "Rome 3"
    with pytest.raises(ToolError, match="refused by its type"):
        tool.instance({"city": "Rome", "days": "x"})


def test_what_no_other_process_can_import_says_so() -> None:
    def local(a: int) -> None: ...

    class Inner(pydantic.BaseModel):
        a: int

    for made in (tf.from_type(local), tf.from_type(Inner), tf.tools([local, Inner], format="hermes")):
        with pytest.raises(InvalidType, match="is defined inside a function"):
            pickle.dumps(made)


def test_states_stay_where_they_are() -> None:
    with pytest.raises(TypeError, match="State"):
        pickle.dumps(GRAMMARS["regex"].compile(VOCABULARY).start)
