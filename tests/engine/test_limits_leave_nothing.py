"""A limit ends one call; nothing that it cut short is remembered.

Judge: a fresh automaton of the same constraint with limits that are never met. Texts take turns on one
automaton whose limits are met all the time, with and without budgets; whatever it answers must be what the
judge answers.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.engine import Limits, Matcher
from tokenform.errors import LimitExceeded, TokenformError
from tokenform_bench.random_schemas import SchemaMaker

PIECES = [
    b'{"',
    b'":',
    b'": ',
    b'","',
    b', "',
    b"}}",
    b"]]",
    b'"}',
    b"true",
    b"false",
    b"null",
    b"12",
    b"[[",
    b'["',
    b"aab",
]
TOKENS = [bytes([byte]) for byte in range(256)] + PIECES
VOCABULARY = tf.Vocabulary([*TOKENS, b""], eos=[len(TOKENS)])
BYTES = tf.Vocabulary([*TOKENS[:256], b""], eos=[256])


def key_patterns(tag: str) -> dict[str, Any]:
    return {"type": "object", "patternProperties": {f"^{tag}{i}x": {"type": "integer"} for i in range(40)}}


@pytest.mark.parametrize("budget", [None, 200])
def test_too_many_key_patterns_are_no_missing_keys(budget: int | None) -> None:
    """80 key patterns meet in one object: over a limit, which a budget once turned into "no key"."""
    schema = {"properties": {"x": {"allOf": [key_patterns("a"), key_patterns("b")]}}}
    automaton = tf.json_schema(schema).compile(BYTES)
    with pytest.raises(LimitExceeded, match="key patterns"):
        Matcher(automaton, max_tokens=budget).accept_tokens(list(b'{"x":{"q":1}}'))
    with pytest.raises(LimitExceeded, match="key patterns"):
        automaton.matches(b'{"x":{"q":1}}')
    assert automaton.matches(b'{"y":{"q":1}}')


class Turns:
    """Several texts of one constraint, on an automaton with small limits and on the judge's."""

    def __init__(self, grammar: tf.Grammar, rng: random.Random) -> None:
        self.rng = rng
        work = rng.choice([300, 1_000, 3_000, 10_000, 30_000, 100_000])
        limits = Limits(work=work, memory=rng.choice([1 << 14, 1 << 18, 128 << 20]))
        self.grammar = grammar
        self.judge = grammar.compile(VOCABULARY)
        self.small = grammar.compile(VOCABULARY, limits=limits)
        self.texts = [(self.judge.start, self.small.start)] * 4
        self.cut = self.answered = 0

    def turn(self) -> None:
        number = self.rng.randrange(len(self.texts))
        right, own = self.texts[number]
        allowed = self.judge.allowed_tokens(right)
        budget = self.rng.choice([None, 3, 12, 40])
        try:
            mask = self.small.mask(own) if budget is None else self.small.mask_within(own, budget)
        except LimitExceeded:
            self.cut += 1
        else:
            self.answered += 1
            expected = self.fresh(right, budget)
            assert bytes(memoryview(mask)) == expected
        ordinary = [token for token in allowed if token < len(TOKENS)]
        if not ordinary:
            self.texts[number] = self.judge.start, self.small.start
            return
        token = self.rng.choice(ordinary)
        try:
            self.texts[number] = self.judge.advance(right, token), self.small.advance(own, token)
        except LimitExceeded:
            self.cut += 1

    def fresh(self, state: Any, budget: int | None) -> bytes:
        """What an automaton says that has met no limit."""
        mask = self.judge.mask(state) if budget is None else self.judge.mask_within(state, budget)
        return bytes(memoryview(mask))


def play(seed: int, turns: int) -> Turns | None:
    rng = random.Random(seed)
    schema = SchemaMaker(rng, rng.choice([7, 2020])).schema()
    order, strings = rng.choice(["any", "declared"]), rng.choice(["any", "canonical"])
    try:
        played = Turns(tf.json_schema(schema, order=order, strings=strings), rng)
    except TokenformError:
        return None
    for _ in range(turns):
        try:
            played.turn()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {json.dumps(schema)}") from error
    return played


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_after_a_limit_other_texts_masks_are_those_of_a_fresh_automaton(seed: int) -> None:
    play(seed, 40)


@pytest.mark.slow
def test_the_same_for_long() -> None:
    cut = answered = 0
    for seed in range(4_000):
        if (played := play(seed, 150)) is not None:
            cut, answered = cut + played.cut, answered + played.answered
    assert cut > 1_000 and answered > 10_000
