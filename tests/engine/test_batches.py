"""One call a step: rows of different automata, filled and advanced together."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tokenform as tf
from tokenform.errors import LimitExceeded, OptionError, TokenRejected

WORDS = [b"true", b'": ', b'", "', b"name", b'{"', b'"}', b"[[", b"]]", b", ", b"12", b"0.5"]
TOKENS = [bytes([b]) for b in range(256)] + WORDS + [b"</s>"]
EOS = len(TOKENS) - 1
VOCABULARY = tf.Vocabulary(TOKENS, eos=[EOS], special=[EOS])
GRAMMARS = [
    tf.json_schema({"type": "object", "additionalProperties": {"type": "integer"}}),
    tf.json_schema({"type": "array", "items": {"type": "string", "maxLength": 9}, "uniqueItems": True}),
    tf.regex(r"([a-z]{2,9}( |-))*[0-9]{1,40}"),
    tf.gbnf('root ::= t ("+" t)*\nt ::= [0-9]+ | "(" root ")"'),
]


def batch(size: int) -> list[tf.TokenAutomaton]:
    return [GRAMMARS[i % len(GRAMMARS)].compile(VOCABULARY) for i in range(size)]


@pytest.mark.parametrize("threads", [1, 2, 7, 10**6])
def test_a_batch_says_what_single_calls_say(threads: int) -> None:
    automata = batch(13)
    rng, states = random.Random(threads), [automaton.start for automaton in automata]
    out = np.zeros((len(states), automata[0].mask_words), np.uint32)
    accepting, finished = np.zeros((2, len(states)), bool)
    distances = np.zeros(len(states), np.int32)
    forced = [b"left from before"]
    for _ in range(25):
        budgets = [rng.choice([None, 3, 20, 500]) for _ in states]
        failed = tf.engine.fill_masks(
            states,
            out,
            budgets=budgets,
            accepting=accepting,
            finished=finished,
            distances=distances,
            forced=forced,
            threads=threads,
        )
        assert failed == {} and len(forced) == len(states)
        tokens = []
        for row, (automaton, state) in enumerate(zip(automata, states, strict=True)):
            budget = budgets[row]
            want = automaton.mask(state) if budget is None else automaton.mask_within(state, budget)
            assert np.array_equal(out[row], want)
            assert accepting[row] == automaton.is_accepting(state)
            assert finished[row] == automaton.is_finished(state)
            assert distances[row] == automaton.distance(state)
            assert forced[row] == automaton.forced_bytes(state)
            allowed = automaton.allowed_tokens(state)
            tokens.append(int(rng.choice(allowed)) if allowed.size else 0)
        going = [row for row in range(len(states)) if not finished[row]]
        after = tf.engine.advance([states[r] for r in going], [tokens[r] for r in going], threads=threads)
        for row, state in zip(going, after, strict=True):
            assert state == automata[row].advance(states[row], tokens[row])
            states[row] = state


def test_a_row_that_fails_leaves_the_others() -> None:
    hurried = tf.json_schema({"type": "string", "pattern": "^(?=.*a.{9}b)(?=.*c.{8}d).*$"}).compile(
        VOCABULARY, limits=tf.engine.Limits(work=30_000)
    )
    plain = GRAMMARS[2].compile(VOCABULARY)
    states = [plain.start, hurried.start, plain.start]
    out = np.full((3, plain.mask_words), 7, np.uint32)
    failed = tf.engine.fill_masks(states, out, distances=np.zeros(3, np.int32), errors="return")
    assert list(failed) == [1] and isinstance(failed[1], LimitExceeded)
    assert np.array_equal(out[0], plain.mask(plain.start)) and np.array_equal(out[0], out[2])
    assert not out[1].any()
    with pytest.raises(LimitExceeded):
        tf.engine.fill_masks(states, out, distances=np.zeros(3, np.int32))
    assert np.array_equal(out[2], plain.mask(plain.start))
    good, bad = tf.engine.advance([plain.start] * 2, [ord("a"), ord("?")], errors="return")
    assert isinstance(good, tf.engine.State) and isinstance(bad, TokenRejected)
    with pytest.raises(TokenRejected):
        tf.engine.advance([plain.start] * 2, [ord("a"), ord("?")])


def test_what_does_not_fit_is_refused() -> None:
    automata = batch(2)
    states: list[Any] = [automaton.start for automaton in automata]
    out = np.zeros((2, automata[0].mask_words), np.uint32)
    frozen = np.zeros(2, bool)
    frozen.setflags(write=False)
    for wrong in (
        lambda: tf.engine.fill_masks(states, out[:1]),
        lambda: tf.engine.fill_masks(states, out, budgets=[1]),
        lambda: tf.engine.fill_masks(states, out, accepting=np.zeros(1, bool)),
        lambda: tf.engine.fill_masks(states, out, finished=frozen),
        lambda: tf.engine.fill_masks(states, out, errors="ignore"),
        lambda: tf.engine.advance(states, [1]),
        lambda: tf.engine.fill_masks(
            [*states, tf.regex("a").compile(other()).start], np.zeros((3, out.shape[1]), np.uint32)
        ),
    ):
        with pytest.raises(OptionError):
            wrong()
    with pytest.raises(TypeError):
        tf.engine.fill_masks([1, 2], out)
    assert tf.engine.fill_masks([], out) == {} and tf.engine.advance([], []) == []


def other() -> tf.Vocabulary:
    return tf.Vocabulary([*TOKENS, *[b"x"] * 99], eos=[EOS])
