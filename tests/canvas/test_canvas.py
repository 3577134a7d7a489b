"""`tf.Canvas` against all fillings of small canvases, tried one by one."""

from __future__ import annotations

import collections
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.canvas.enumeration import Case

import tokenform as tf


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_small_canvases_equal_enumeration(seed: int) -> None:
    rng = random.Random(seed)
    Case(rng).canvases(rng, 6)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(20))
def test_ten_thousand_canvases_equal_enumeration(part: int) -> None:
    rng = random.Random(f"ten thousand: {part}")
    for _ in range(50):
        Case(rng).canvases(rng, 10)


def byte_vocabulary(*more: bytes) -> tf.Vocabulary:
    tokens = [bytes([b]) for b in range(256)] + list(more)
    return tf.Vocabulary([*tokens, b"</s>"], eos=[len(tokens)], special=[len(tokens)])


def test_draws_follow_the_law() -> None:
    vocabulary = tf.Vocabulary([b"a", b"b", b"ab", b"</s>", b"<pad>"], eos=[3, 4], special=[3, 4])
    canvas = tf.Canvas(tf.regex("(ab|ba)*").compile(vocabulary), [None, None, 0, None])
    logits = np.random.default_rng(1).normal(size=(4, 5)).astype(np.float32)
    draws = canvas.samples(logits, 20_000, temperature=0.7, seed=3)
    counts = collections.Counter(tuple(draw.tokens.tolist()) for draw in draws)
    share = {tuple(draw.tokens.tolist()): math.exp(draw.logprob) for draw in draws}
    assert math.isclose(sum(share.values()), 1, abs_tol=1e-9)  # all fillings were met
    chi_square = sum((counts[f] - 20_000 * p) ** 2 / (20_000 * p) for f, p in share.items())
    freedom = len(share) - 1
    assert chi_square < freedom + 5 * math.sqrt(2 * freedom)


def test_what_each_position_allows_may_not_stand_together() -> None:
    vocabulary = byte_vocabulary()
    canvas = tf.Canvas(tf.choice(["ab", "ba"]).compile(vocabulary), 2)
    assert canvas.allowed(0).tolist() == canvas.allowed(1).tolist() == [ord("a"), ord("b")]
    both = canvas.fork()
    both.update({0: ord("a"), 1: ord("a")})
    assert canvas.feasible() and not both.feasible()
    both.erase(1)
    assert both.allowed(1).tolist() == [ord("b")]


def test_a_document_with_holes() -> None:
    vocabulary = byte_vocabulary(b'{"', b'":', b"name", b"true")
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "ok": {"type": "boolean"}},
        "required": ["name", "ok"],
        "additionalProperties": False,
    }
    automaton = tf.json_schema(schema).compile(vocabulary)
    text = b'{"name": "Ada", "ok": true}'
    known = list(text) + [vocabulary.eos[0]] * 3
    for first, last in [(1, 6), (9, 13), (22, 26), (0, 30)]:
        holes = [None if first <= at < last else token for at, token in enumerate(known)]
        canvas = tf.Canvas(automaton, holes)
        assert canvas.feasible()
        assert all(known[at] in canvas.allowed(at) for at in canvas.open)
        draw = canvas.sample(np.zeros((30, 261), np.float32), seed=first)
        state = automaton.start
        for token in draw.tokens.tolist():
            if not automaton.is_finished(state):
                state = automaton.advance(state, token)
        assert automaton.is_accepting(state)


def test_wrong_arguments() -> None:
    canvas = tf.Canvas(tf.regex("a+").compile(byte_vocabulary()), 3)
    for call in (
        lambda: canvas.fill(3, 97),
        lambda: canvas.fill(0, 9999),
        lambda: canvas.fill(-1, 97),
        lambda: canvas.best(np.zeros((2, 257), np.float32)),
        lambda: canvas.best(np.full((3, 257), np.nan, np.float32)),
        lambda: canvas.sample(np.zeros((3, 257), np.float32), temperature=-1),
    ):
        with pytest.raises(tf.errors.OptionError):
            call()
    canvas.fill(1, ord("b"))
    with pytest.raises(tf.errors.TokenRejected):
        canvas.best(np.zeros((3, 257), np.float32))


def test_an_empty_canvas() -> None:
    vocabulary = byte_vocabulary()
    assert tf.Canvas(tf.regex("a*").compile(vocabulary), 0).feasible()
    assert not tf.Canvas(tf.regex("a+").compile(vocabulary), 0).feasible()


def test_a_limit_ends_a_call_alone() -> None:
    """Every key is a state of its own: too many where it is open, one where it is known."""
    vocabulary = byte_vocabulary(b'": ')
    limits = tf.engine.Limits(work=200_000)
    automaton = tf.json_schema({"type": "object"}, whitespace="compact").compile(vocabulary, limits=limits)
    text = [*b'{"key":1}', vocabulary.eos[0]]
    canvas = tf.Canvas(automaton, len(text))
    for _ in range(2):
        with pytest.raises(tf.errors.LimitExceeded):
            canvas.feasible()
    canvas.update({at: token for at, token in enumerate(text) if at != 7})
    assert canvas.feasible() and ord("1") in canvas.allowed(7)
    canvas.fill(7, ord("1"))
    assert canvas.best(np.zeros((len(text), vocabulary.size), np.float32)).tokens.tolist() == text


def test_memory_is_looked_at_while_a_layer_is_made() -> None:
    """Stacks of brackets: a layer has several times the states of the one before it."""
    limits = tf.engine.Limits(work=2_000_000_000)
    canvas = tf.Canvas(tf.json_schema({}, numbers="any").compile(byte_vocabulary(), limits=limits), 40)
    with pytest.raises(tf.errors.LimitExceeded, match="MiB"):
        canvas.feasible()
    assert canvas._core.size()[2] < 232 << 20


def test_a_grammar_that_is_not_compiled_is_named_with_the_way_out() -> None:
    with pytest.raises(tf.errors.OptionError, match="compile the grammar first"):
        tf.Canvas(tf.regex("a"), 3)  # type: ignore[arg-type]
