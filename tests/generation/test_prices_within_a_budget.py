"""A price under a budget: the masks in the middle of a number need a small part of the limit on work."""

from __future__ import annotations

import random
from typing import Any

import pytest

import tokenform as tf

transformers = pytest.importorskip("transformers")

PRICE = {"type": "number", "multipleOf": 0.01, "minimum": -99999999999.99, "maximum": 99999999999.99}


@pytest.fixture(scope="module")
def vocabulary() -> tf.Vocabulary:
    from tokenform.builtin.loading import WEIGHTS

    return tf.Vocabulary.from_tokenizer(transformers.AutoTokenizer.from_pretrained(str(WEIGHTS / "model")))


def write(matcher: tf.engine.Matcher, vocabulary: tf.Vocabulary, text: str) -> None:
    for token in vocabulary.greedy(text.encode()) or []:
        assert token in matcher.allowed_tokens()
        matcher.accept_tokens([token])


def test_a_price_is_written_within_a_budget(vocabulary: tf.Vocabulary) -> None:
    record = {
        "type": "object",
        "properties": {"amount": PRICE, "other": PRICE},
        "required": ["amount"],
        "additionalProperties": False,
    }
    automaton = tf.json_schema(record).compile(vocabulary, limits=tf.engine.Limits(work=300_000))
    matcher = tf.engine.Matcher(automaton, max_tokens=199)
    write(matcher, vocabulary, '{"amount": 2732816309')
    assert len(matcher.allowed_tokens()) > 10


@pytest.mark.parametrize(
    ("numbers", "begun", "work"),
    [
        ({"multipleOf": 0.07, "minimum": 0, "maximum": 1e30}, "85806095724107174385475297321", 600_000),
        (
            {"multipleOf": 0.07, "maximum": 1e30, "not": {"multipleOf": 123456789}},
            "85806095724107174385475297321",
            1_000_000,
        ),
        ({"multipleOf": 1234567891234567}, "48063506563804587223065626007", 3_000_000),
    ],
)
def test_the_end_of_a_long_number_is_told_without_a_search(
    vocabulary: tf.Vocabulary, numbers: dict[str, Any], begun: str, work: int
) -> None:
    grammar = tf.json_schema({"type": "array", "items": {"type": "number", **numbers}, "maxItems": 1})
    for budget in (60, 300):
        automaton = grammar.compile(vocabulary, limits=tf.engine.Limits(work=work))
        matcher = tf.engine.Matcher(automaton, max_tokens=budget)
        write(matcher, vocabulary, "[" + begun)
        # an end is known after every token: the budget is enough for all of them
        assert matcher.allowed_tokens().tolist() == automaton.allowed_tokens(matcher.state).tolist()
        # the end that is told is one, and fits
        while not matcher.is_terminated():
            distance = automaton.distance(matcher.state)
            assert distance is not None and len(matcher.tokens) + distance <= budget
            matcher.accept_tokens([int(matcher.allowed_tokens()[0])])


@pytest.mark.parametrize("spellings", ["natural", "canonical", "any"])
@pytest.mark.parametrize(
    "numbers",
    [
        {"type": "integer", "multipleOf": 1e15, "minimum": -99999999999.99, "maximum": 12345678901234567890},
        {"type": "number", "multipleOf": 1234567891234567, "not": {"multipleOf": 300000}},
        {"type": "number", "multipleOf": 0.25, "exclusiveMinimum": 1e15},
    ],
)
def test_a_budget_that_is_enough_leaves_out_no_number(
    vocabulary: tf.Vocabulary, numbers: dict[str, Any], spellings: Any
) -> None:
    automaton = tf.json_schema(numbers, numbers=spellings).compile(vocabulary)
    rng = random.Random(1)
    for _ in range(3):
        matcher = tf.engine.Matcher(automaton, max_tokens=200)
        while not matcher.is_terminated() and len(matcher.tokens) < 30:
            allowed = matcher.allowed_tokens().tolist()
            assert allowed == automaton.allowed_tokens(matcher.state).tolist()
            matcher.accept_tokens([rng.choice(allowed)])
