"""`+ | & ~`: the languages that they are said to be, by brute force over all short texts."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compose.walks import accepts, walk

import tokenform as tf
from tokenform.errors import InvalidGrammar, UnsatisfiableGrammar

TEXTS = ["".join(t) for n in range(5) for t in itertools.product("ab1", repeat=n)]
PATTERNS = st.recursive(
    st.sampled_from(["a", "b", "1", "ab", "[ab]", "[a1]*", "b+", "(?:ab)*", "1?"]),
    lambda inner: st.one_of(
        st.builds("(?:{}|{})".format, inner, inner), st.builds("{}{}".format, inner, inner)
    ),
    max_leaves=4,
)
INTEGER = tf.json_schema({"type": "integer"})
OBJECT = tf.json_schema({"properties": {"a": {"type": "integer"}}, "required": ["a"], "type": "object"})
LETTERS = tf.lark('start: A start | A\nA: "a" | "b"')
NESTED = tf.lark('start: "a" start "b" | "a" "b"', lexer="dynamic")


def whole(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


@settings(max_examples=60, deadline=None)
@given(PATTERNS, PATTERNS)
def test_regular_languages(first: str, second: str) -> None:
    one, two = tf.regex(first), tf.regex(second)
    for text in TEXTS:
        assert accepts(one | two, text) == (whole(first, text) or whole(second, text))
        assert accepts(one + two, text) == whole(f"(?:{first})(?:{second})", text)
        assert accepts(~one, text) == (not whole(first, text))
    both = [text for text in TEXTS if whole(first, text) and whole(second, text)]
    try:
        joined = one & two
    except UnsatisfiableGrammar:
        assert not both
    else:
        assert [text for text in TEXTS if accepts(joined, text)] == both


def is_integer(text: str) -> bool:
    return re.fullmatch(r"-?(0|[1-9]\d*)(\.0)?", text) is not None and text != "-0"


def is_nested(text: str) -> bool:
    half = len(text) // 2
    return half > 0 and text == "a" * half + "b" * half


JUDGED = [
    (INTEGER, is_integer),
    (LETTERS, lambda text: whole("[ab]+", text)),
    (NESTED, is_nested),
    (tf.regex("[ab1]*"), lambda text: whole("[ab1]*", text)),
    (tf.regex("1|b*1"), lambda text: whole("1|b*1", text)),
]
NAMES = ["integer", "letters", "nested", "any", "ends"]


@pytest.mark.parametrize("first", range(5), ids=NAMES)
@pytest.mark.parametrize("second", range(5), ids=NAMES)
def test_a_concatenation_is_every_split(first: int, second: int) -> None:
    (one, is_one), (two, is_two) = JUDGED[first], JUDGED[second]
    for text in TEXTS:
        splits = any(is_one(text[:k]) and is_two(text[k:]) for k in range(len(text) + 1))
        assert accepts(one + two, text) == splits, text
        assert accepts(one | two, text) == (is_one(text) or is_two(text)), text
        assert accepts(one + "1" + two, text) == any(
            is_one(text[:k]) and text[k : k + 1] == "1" and is_two(text[k + 1 :])
            for k in range(len(text) + 1)
        ), text


Judged = tuple[tf.Grammar, frozenset[str]]
"""A grammar, and which of `TEXTS` it accepts."""


def followed(one: Judged, two: Judged) -> Judged:
    joined = {a + b for a in one[1] for b in two[1] if len(a + b) <= 4}
    return one[0] + two[0], frozenset(joined)


LEAVES = [
    (grammar, frozenset(text for text in TEXTS if is_one(text)))
    for grammar, is_one in [*JUDGED, (tf.regex("ab|1"), lambda text: text in ("ab", "1"))]
]
TREES: st.SearchStrategy[Judged] = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds(followed, inner, inner),
        st.builds(lambda one, two: (one[0] | two[0], one[1] | two[1]), inner, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(TREES)
def test_trees_of_sequences_and_choices(tree: Judged) -> None:
    grammar, texts = tree
    for text in TEXTS:
        assert accepts(grammar, text) == (text in texts), text


def test_a_choice_at_the_head_of_a_sequence_is_not_repeated() -> None:
    grammar = (tf.json_schema({"type": "boolean"}) | "maybe") + "!"
    assert [accepts(grammar, text) for text in ("true!", "maybe!", "true", "true!!", "maybe")] == [
        *[True, True],
        *[False] * 3,
    ]


MIXED = {
    "json between texts": "x=" + OBJECT + ";",
    "two numbers": INTEGER + INTEGER,
    "schemas or words": OBJECT | tf.json_schema({"type": "array", "items": {"type": "boolean"}}) | "{x",
    "free text, then json": tf.regex("[a{]*") + OBJECT,
    "any whitespace": tf.json_schema({"type": "integer"}, whitespace="any") + tf.regex("[ ]?x"),
    "a lexer, then a number": LETTERS + INTEGER + LETTERS,
    "nesting twice": NESTED + NESTED,
    "optional": tf.regex("a*") + (NESTED | "") + INTEGER,
    "any order of keys": tf.json_schema(
        {"properties": {"ab": True, "a": {"type": "integer"}}, "required": ["a"], "type": "object"},
        order="any",
    )
    + tf.regex("x|[}]"),
}


@pytest.mark.parametrize("grammar", MIXED.values(), ids=MIXED.keys())
def test_masks_equal_the_oracle(grammar: tf.Grammar) -> None:
    for seed in range(8):
        assert accepts(grammar, walk(grammar, seed).decode())


def test_values_and_errors() -> None:
    assert MIXED["json between texts"].parse('x={"a": 1};') == 'x={"a": 1};'
    assert json.loads(walk(OBJECT | OBJECT, 1)) is not None
    with pytest.raises(InvalidGrammar, match="regular"):
        _ = INTEGER & tf.json_schema({"type": "number"})
    with pytest.raises(InvalidGrammar, match="regular"):
        _ = ~LETTERS
    with pytest.raises(TypeError):
        _ = INTEGER + 1  # type: ignore[operator]
    assert accepts(tf.json_schema({"type": "integer"}) + "e" + tf.json_schema({}, numbers="any"), "1e10e0")
    assert accepts("a" | INTEGER, "a") and accepts("a" + INTEGER, "a12")


def test_a_grammar_and_a_language_meet_in_samplers_that_draw_whole_texts() -> None:
    """Sums without a label in them: the texts of both, by brute force."""
    pytest.importorskip("torch")
    from tokenform.decoding.aligned.product import compiled as aligned_compiled

    sums = tf.lark('start: term ("+" term)?\nterm: "x" | "(" start ")"')
    language = ~tf.combinators.contains("x+x")
    both, turned = sums & language, language & sums
    assert (turned.grammar, turned.languages) == (both.grammar, both.languages) == (sums, (language,))
    vocabulary = tf.Vocabulary([b"x", b"+", b"(", b")", b"<eos>"], eos=[4])
    constraint = aligned_compiled(both, vocabulary)
    found, live = set(), [(constraint.start, "")]
    for _ in range(8):
        step = []
        for state, text in live:
            if constraint.accepts([state])[0]:
                found.add(text)
            for token in constraint.candidates([state])[0].tolist():
                step.append((constraint.advance(state, token), text + "x+()"[token]))
        live = step
    plain = sums.compile(vocabulary)
    texts = {"".join(t) for n in range(8) for t in itertools.product("x+()", repeat=n)}
    assert found == {text for text in texts if plain.matches(text) and "x+x" not in text} and len(found) > 5
    with_test = both & tf.predicate(complete=lambda text: len(text) > 3)
    assert with_test.languages == both.languages and len(with_test.tests) == 1
