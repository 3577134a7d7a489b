"""Frontends: what each accepts, what its value is, and how bad input is refused."""

from __future__ import annotations

import gc
import re
import weakref

import pytest

import tokenform as tf
from tokenform import errors
from tokenform.frontends import Condition, one_constraint, to_grammar


@pytest.fixture(scope="module")
def vocabulary():
    return tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], [256], [256])


@pytest.fixture
def accepts(vocabulary):
    return lambda grammar, text: grammar.compile(vocabulary).matches(text.encode())


def test_regex_describes_the_whole_text(accepts):
    assert accepts(tf.regex("a+b"), "aab")
    assert not accepts(tf.regex("a+b"), "aabx")
    assert not accepts(tf.regex("a+b"), "xaab")
    assert tf.regex("a").parse("a") == "a"


def test_flags_of_a_compiled_pattern_count(accepts):
    assert accepts(tf.regex(re.compile("ab.", re.IGNORECASE | re.DOTALL)), "aB\n")
    assert not accepts(tf.regex(re.compile("ab.")), "aB\n")


def test_any_text_is_any_utf8(accepts, vocabulary):
    assert accepts(tf.combinators.any_text(), "") and accepts(tf.combinators.any_text(), "a\né東\U0001f600")
    assert not tf.combinators.any_text().compile(vocabulary).matches(b"\xff")


def test_choice_takes_texts_literally(accepts):
    grammar = tf.choice(["a.b", "(", 'é"'])
    assert all(accepts(grammar, text) for text in ("a.b", "(", 'é"'))
    assert not accepts(grammar, "axb") and not accepts(grammar, "")


def test_schema_from_mapping_text_and_boolean(accepts):
    schema = {
        "type": "object",
        "properties": {"b": {"type": "integer"}, "a": {"type": "boolean"}},
        "required": ["a", "b"],
    }
    text = '{"b": 1, "a": true}'
    for form in (
        schema,
        '{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"boolean"}},"required":["a","b"]}',
    ):
        assert accepts(tf.json_schema(form), text)
        assert not accepts(tf.json_schema(form), '{"a": true, "b": 1}')  # not the declared order
    assert accepts(tf.json_schema(schema, order="any"), '{"a": true, "b": 1}')
    assert accepts(tf.json_schema(True), "[1, null]")
    assert accepts(tf.json_schema(schema, whitespace="compact"), '{"b":1,"a":true}')
    assert tf.json_schema(schema).parse(text) == {"b": 1, "a": True}
    assert tf.json_schema(schema).schema == schema


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: tf.json_schema("{"), errors.InvalidSchema),
        (lambda: tf.json_schema(7), errors.InvalidSchema),
        (lambda: tf.json_schema({"const": object()}), errors.InvalidSchema),
        (lambda: tf.json_schema({"const": float("nan")}), errors.InvalidSchema),
        (lambda: tf.json_schema({"type": "strin"}), errors.InvalidSchema),
        (lambda: tf.json_schema(False), errors.UnsatisfiableSchema),
        (lambda: tf.json_schema({}, order="sorted"), errors.OptionError),
        (lambda: tf.regex("a("), errors.InvalidRegex),
        (lambda: tf.regex(r"(a)\1"), errors.UnsupportedRegex),
        (lambda: tf.regex(b"a"), errors.InvalidRegex),
        (lambda: tf.regex(re.compile(b"a")), errors.InvalidRegex),
        (lambda: tf.regex(re.compile("a", re.ASCII)), errors.UnsupportedRegex),
        (lambda: tf.regex("a", dialect="perl"), errors.OptionError),
        (lambda: tf.regex("a(?!)"), errors.UnsatisfiableGrammar),
        (lambda: tf.choice([]), errors.UnsatisfiableGrammar),
        (lambda: tf.choice(["a", 1]), errors.OptionError),
        (lambda: to_grammar(3.5), errors.OptionError),
        (lambda: one_constraint(schema={}, choices=["a"]), errors.OptionError),
    ],
)
def test_bad_input_is_one_sentence(make, error):
    with pytest.raises(error) as caught:
        make()
    assert "\n" not in str(caught.value) and len(str(caught.value)) > 10


def test_one_automaton_for_a_vocabulary(vocabulary):
    grammar = tf.regex("a")
    assert grammar.compile(vocabulary) is grammar.compile(vocabulary)


def test_a_grammar_does_not_keep_itself_alive(vocabulary):
    grammar = tf.regex("ab")
    grammar.compile(vocabulary)
    ghost = weakref.ref(grammar)
    del grammar
    gc.collect()
    assert ghost() is None


def test_what_a_combined_grammar_is_called():
    a, b = tf.regex("a"), tf.json_schema({"type": "integer"})
    assert (a | b).source == '(a) | ({"type": "integer"})'
    assert (~a).source == "~(a)" and (a + "b").source == "(a) + ('b')"
    both = a & b  # of which only samplers of whole texts know what to make
    assert isinstance(both, Condition) and both.grammar is b and both.languages == (a,)
    with pytest.raises(errors.InvalidGrammar, match="'&'"):
        _ = b & tf.json_schema({"type": "string"})
    with pytest.raises(errors.InvalidGrammar, match="'~'"):
        _ = ~b
    with pytest.raises(TypeError):
        _ = a | 3
