"""Messages: what is missing is named, kinds of characters have words, nothing internal is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

import tokenform as tf
from tokenform import errors
from tokenform.cli import app
from tokenform.frontends import to_grammar

BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256])
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "born": {"type": "integer"}, "city": {"type": "string"}},
    "required": ["name", "born", "city"],
}
JSON_IN_LARK = tf.lark('start: "n = " value\nvalue: %json {"type": "integer", "minimum": 0, "maximum": 99}')
PAIR = tf.regex("[a-z]+") & ~tf.choice(["foo"])


def told(grammar: tf.Grammar, text: str) -> tuple[int, list[str]]:
    verdict = grammar.compile(BYTES).check(text.encode())
    assert verdict is not None, text
    return verdict[0], verdict[1]


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("additional", ["schema", "forbid"])
def test_a_missing_key_is_named(order: Any, additional: Any) -> None:
    grammar = tf.json_schema(PERSON, order=order, additional=additional)
    offset, words = told(grammar, '{"name": "A", "born": 1}')
    assert offset == 23 and words[0] == '"," and the key "city"'
    assert told(grammar, '{"name": "A", "born": 1')[1][0] == '"," and the key "city"'
    assert told(grammar, "{}")[1][0] == 'the key "name"'
    if (order, additional) != ("any", "schema"):  # there it may be another key
        assert told(grammar, '{"name": "A", "born": 1, "cx')[1] == ['the key "city"']


def test_of_several_branches_the_keys_of_each_are_named() -> None:
    either = {"anyOf": [PERSON, {"type": "object", "required": ["z"]}]}
    assert '"z"' in told(tf.json_schema(either, order="any"), '{"name": "a"}')[1][0]


@pytest.mark.parametrize(
    ("grammar", "text", "words"),
    [
        (tf.json_schema({"type": "number", "minimum": 3, "maximum": 20}), "x", ["a number from 3 to 20"]),
        (tf.json_schema({"type": "integer", "minimum": 3}), "x", ["an integer from 3 on"]),
        (tf.json_schema({"enum": ["red", "green", 1]}), "2", ['"green"', '"red"', "1"]),
        (tf.json_schema({"type": "string", "pattern": "^[0-9]{3}-[a-z]+$"}), '"12x', ["a digit"]),
        (
            tf.json_schema({"type": "array", "items": {"type": "integer"}, "minItems": 2}),
            "[]",
            ["an integer"],
        ),
        (tf.json_schema(PERSON, whitespace="spaced"), '{"name":"A"', ['" "']),
        (tf.regex("[0-9]{3}-[a-z]+"), "12x", ["a digit"]),
        (tf.regex("[0-9]{3}-[a-z]+"), "123x", ['"-"']),
        (tf.choice(["yes", "no"]), "x", ['"no"', '"yes"']),
        (tf.choice(["yes", "no"]), "yesx", ["the end of the text"]),
        (tf.lark('start: "a" NUM "," B\nNUM: /[0-9]+/\nB: "x" | "y"'), "ax", ["a digit (NUM)"]),
        (tf.gbnf('root ::= [0-9]+ "x" [a-z]'), "1y", ["a digit", '"x"']),
        (tf.until("</a>", then=tf.regex("[0-9]+")), "abc</a>x", ["a digit"]),
        (tf.combinators.literal("ab") + JSON_IN_LARK, "ax", ['"b"']),
        (PAIR | "1", "2", ["a lower-case letter", '"1"']),
        (
            tf.json_schema(PERSON, strings_in={"/properties/name": tf.regex("[0-9]+")}),
            '{"name": "x',
            ["a digit"],
        ),
    ],
)
def test_what_was_expected_has_words(grammar: tf.Grammar, text: str, words: list[str]) -> None:
    found = told(grammar, text)[1]
    assert found == words or [word.replace(" (NUM)", "") for word in words] == found


def test_nothing_internal_is_shown() -> None:
    composed = tf.until("</a>", then=JSON_IN_LARK | PAIR) + (
        tf.json_schema(PERSON) | tf.combinators.contains(["x", "y"])
    )
    automaton = composed.compile(BYTES)
    state = automaton.start
    for byte in b'ab</a>n = 7{"name": "':
        for shown in (automaton.describe(state), *automaton.expected(state)[0]):
            for internal in ('{"', "until", "lexical state", "context ", "rule ", "JSON_SCHEMA", "\\ud8"):
                assert internal not in shown, shown
        state = automaton.advance(state, byte)


def test_the_command_names_the_missing_key_and_the_place(tmp_path: Any) -> None:
    (tmp_path / "s.json").write_text(json.dumps(PERSON))
    for order in ("declared", "any"):
        result = CliRunner().invoke(
            app, ["check", "-s", str(tmp_path / "s.json"), "--order", order], input='{"name": "A", "born": 1}'
        )
        assert result.exit_code == 1
        assert 'expected "," and the key "city"' in result.stdout and "schema at the root" in result.stdout
    explained = CliRunner().invoke(app, ["explain", "12", "-r", "[0-9]{3}"])
    assert "expects a digit" in explained.stdout and "'0'" not in explained.stdout


NUMBERS = tf.json_schema(
    {
        "properties": {
            "age": {"type": "integer", "maximum": 120},
            "rate": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
            "name": {"type": "string"},
        },
        "type": "object",
        "required": ["age", "name"],
    },
    order="any",
)


@pytest.mark.parametrize(
    ("text", "pointer", "words"),
    [
        ('{"age": 121}', "/properties/age", "the digit 0 (of an integer up to 120)"),
        ('{"age": 1.5}', "/properties/age", "a digit"),
        ('{"rate": 1.x', "/properties/rate", "a digit"),
        ('{"rate": 1.5.', "/properties/rate", "a digit|an exponent"),
        ('{"rate": 1.5}', "", '"," and the key "age" or "name"'),
        ('{"tags": [1, 1]', "/properties/tags", "a digit|no item before it has (uniqueItems)"),
        ('{"name": "a\n', "/properties/name", "control characters as escapes only"),
        (r'{"name": "\x', "/properties/name", "an escape: one of"),
        (r'{"name": "\u00g', "/properties/name", "a hexadecimal digit"),
    ],
)
def test_what_is_wrong_with_a_number_or_an_escape_is_told_with_its_place(
    text: str, pointer: str, words: str
) -> None:
    verdict = NUMBERS.compile(BYTES).check(text.encode())
    assert verdict is not None
    assert verdict[2] == pointer, verdict
    for word in words.split("|"):
        assert any(word in said for said in verdict[1]), verdict


SETS = tf.json_schema(
    {
        "properties": {
            "some": {"type": "array", "uniqueItems": True},
            "sets": {"items": {"type": "array", "uniqueItems": True}, "type": "array"},
            "pair": {"type": "array", "minItems": 2, "maxItems": 2, "not": {"uniqueItems": True}},
        },
        "type": "object",
    },
    order="any",
)


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('{"some": ["a", "a"', "/properties/some"),
        ('{"some": ["<", "b", "\\u003c"', "/properties/some"),
        ('{"some": [1.5, 1.50,', "/properties/some"),
        ('{"some": [{}, {}', "/properties/some"),
        ('{"some": [[], []', "/properties/some"),
        ('{"some": [{"a": 1, "b": [2]}, {"b": [2], "a": 1}', "/properties/some"),
        ('{"some": [{"a": [",", 2]}, {"a": [",", 2]}', "/properties/some"),
        ('{"sets": [[1], [1, 1]', "/properties/sets/items"),
        ('{"sets": [[{"a": "x"}, 7, {"a": "x"}', "/properties/sets/items"),
    ],
)
def test_an_item_that_stands_there_already_is_refused_by_name(text: str, pointer: str) -> None:
    automaton = SETS.compile(BYTES)
    assert automaton.check(text[:-1].encode())[0] == len(text) - 1
    verdict = automaton.check(text.encode())
    assert verdict is not None and verdict[0] == len(text) - 1
    assert verdict[1][-1] == "a value that no item before it has (uniqueItems)"
    assert verdict[2] == pointer


@pytest.mark.parametrize(
    "text",
    [
        '{"some": [1, 1x',
        '{"some": [{"a": 1}, {"a": 1]',
        '{"some": [2, 1}',
        '{"pair": [1, 2]',
        '{"sets": [[1}',
    ],
)
def test_what_is_refused_for_another_reason_is_told_as_before(text: str) -> None:
    verdict = SETS.compile(BYTES).check(text.encode())
    assert verdict is not None and not any("uniqueItems" in word for word in verdict[1])


def test_keys_that_are_not_shown_are_counted() -> None:
    keys = {f"k{n}": {"type": "integer"} for n in range(12)}
    grammar = tf.json_schema(
        {"type": "object", "properties": keys, "additionalProperties": False}, order="any"
    )
    assert told(grammar, "{x")[1][-1] == '"}"' and "5 other keys" in told(grammar, "{x")[1]


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('{"a": x', "/properties/a"),
        ('{"b": x', "/properties/b"),
        ('{"b": 1.5', "/properties/b"),
        ('{"c": {"a": x', "/properties/c/properties/a"),
        ('{"b": 1, "d": [1, x', "/properties/d/items"),
    ],
)
def test_schemas_that_say_the_same_keep_their_places(text: str, pointer: str) -> None:
    integer = {"type": "integer"}
    inner = {"type": "object", "properties": {"a": integer}}
    properties = {"a": integer, "b": integer, "c": inner, "d": {"type": "array", "items": integer}}
    # whatever comes first, in the text or in the schema
    for order in (properties, dict(reversed(properties.items()))):
        schema = {"type": "object", "properties": order}
        automaton = tf.json_schema(schema, order="any").compile(BYTES)
        automaton.matches(b'{"d": [1], "c": {"a": 1}, "b": 1, "a": 1}')
        verdict = automaton.check(text.encode())
        assert verdict is not None and verdict[2] == pointer


@pytest.mark.parametrize(
    ("pattern", "column"), [("[a-z", 1), ("x[^a", 2), ("a{3,2}", 2), ("b(a", 2), ("a**", 3), (r"(a)\1", 4)]
)
def test_a_wrong_pattern_says_its_column(pattern: str, column: int) -> None:
    with pytest.raises((errors.InvalidRegex, errors.UnsupportedRegex)) as caught:
        tf.regex(pattern)
    assert caught.value.column == column
    assert str(caught.value).endswith(f"(at column {column})") and "pattern" in str(caught.value)


REPEATED = [
    ({"items": {"enum": ["a", "b"]}}, '["a", "a', 'expected "b" or a value that no item before it has'),
    ({"items": {"enum": [1, 2]}}, "[1, 1", "expected 2 or a value that no item before it has"),
    ({"items": {"type": "string"}}, '["a", "a"', "expected any character or a value that no item"),
    ({"items": {"type": "integer"}}, "[1, 1]", "expected a digit or a value that no item before it has"),
    ({"items": {"type": "array"}}, "[[1], [1]", "or a value that no item before it has"),
]


@pytest.mark.parametrize(("items", "text", "said"), REPEATED)
def test_a_matcher_names_the_keyword_that_forbids_a_repeated_item(items: Any, text: str, said: str) -> None:
    array = {"type": "array", "uniqueItems": True, **items}
    automaton = tf.json_schema({"properties": {"x": array}, "type": "object"}).compile(BYTES)
    whole = ('{"x": ' + text).encode()
    matcher = tf.engine.Matcher(automaton)
    with pytest.raises(errors.TokenRejected) as refused:
        matcher.accept_tokens(list(whole))
    assert said in str(refused.value) and "(uniqueItems)" in str(refused.value)
    assert refused.value.pointer == "/properties/x"
    matcher.accept_tokens(list(whole[:-1]))
    with pytest.raises(errors.TokenRejected) as refused:
        automaton.advance(matcher.state, whole[-1])
    assert said in str(refused.value) and refused.value.pointer == "/properties/x"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True}, '["a", "c'),
        (
            {"type": "array", "prefixItems": [{"const": "abc"}, {"const": "abd"}], "uniqueItems": True},
            '["abc", "abc',
        ),
    ],
)
def test_what_the_items_schema_refuses_is_not_blamed_on_repetition(schema: Any, text: str) -> None:
    with pytest.raises(errors.TokenRejected) as refused:
        tf.engine.Matcher(tf.json_schema(schema).compile(BYTES)).accept_tokens(list(text.encode()))
    assert "uniqueItems" not in str(refused.value)


def test_of_a_token_that_is_refused_within_it_is_said_where() -> None:
    vocabulary = tf.Vocabulary([*BYTES.tokens[:-1], b'"ab"', b""], eos=[257], special=[257])
    automaton = tf.json_schema({"type": "string", "maxLength": 1}).compile(vocabulary)
    with pytest.raises(
        errors.TokenRejected, match=r'not allowed here; after "\\"a" expected the closing quote'
    ):
        automaton.advance(automaton.start, 256)


@pytest.mark.parametrize("text", ["start: x", 'root ::= "a"', "[a-z]+", ""])
def test_text_that_is_no_schema_says_how_to_give_a_pattern_or_a_grammar(text: str) -> None:
    with pytest.raises(errors.InvalidSchema, match=r"tf\.regex.*tf\.lark"):
        to_grammar(text)
    with pytest.raises(errors.InvalidSchema) as caught:
        to_grammar('{"type": "object"')
    assert "tf.lark" not in str(caught.value)


@pytest.mark.parametrize("given", [None, [b"a", b""], "gpt2", object()])
def test_what_is_no_vocabulary_says_how_to_get_one(given: Any) -> None:
    with pytest.raises(errors.OptionError, match=r"Vocabulary\.from_tokenizer"):
        tf.regex("a").compile(given)
