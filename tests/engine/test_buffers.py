"""Memory that masks are written into, and arguments at their edges: refused or served, never a crash."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tokenform as tf
from tokenform.errors import OptionError

TOKENS = [bytes([b]) for b in range(256)] + [b"true", b'"a": ', b"</s>"]
VOCABULARY = tf.Vocabulary(TOKENS, eos=[258], special=[258])
WORDS = (len(TOKENS) + 31) // 32


@pytest.fixture
def automaton() -> tf.TokenAutomaton:
    return tf.json_schema({"type": "object"}).compile(VOCABULARY)


def frozen() -> np.ndarray:
    out = np.zeros((1, WORDS), np.uint32)
    out.setflags(write=False)
    return out


def crooked() -> np.ndarray:
    """An array that begins in the middle of a word."""
    return np.zeros(4 * WORDS + 1, np.uint8)[1:].view(np.uint32).reshape(1, WORDS)


@pytest.mark.parametrize(
    "out",
    [
        frozen(),
        np.frombuffer(bytes(4 * WORDS), np.uint32).reshape(1, WORDS),
        crooked(),
        np.zeros((1, 2 * WORDS), np.uint32)[:, ::2],
        np.zeros((1, WORDS - 1), np.uint32),
        np.zeros((0, WORDS), np.uint32),
        np.zeros(WORDS, np.uint32),
        np.zeros((1, WORDS), np.uint64),
        np.zeros((1, WORDS), np.float32),
        [0] * WORDS,
    ],
    ids=["frozen", "bytes", "crooked", "strided", "narrow", "none", "flat", "wide", "float", "list"],
)
def test_memory_that_is_no_row_is_refused(out: object, automaton: tf.TokenAutomaton) -> None:
    before = np.array(out).copy()
    for states in ([automaton.start], (automaton.start,)):
        with pytest.raises(OptionError, match="writable"):
            automaton.fill_masks(states, out)
    assert np.array_equal(np.array(out), before)


def test_what_is_wrong_with_an_array_is_said(automaton: tf.TokenAutomaton) -> None:
    for out, wrong in [
        (frozen(), "can't be written to"),
        (np.zeros((1, WORDS), np.float32), "dtype float32"),
        (np.zeros((1, 2 * WORDS), np.uint32)[:, ::2], "not contiguous"),
        (np.zeros(3, np.uint32), "shape (3,)"),
        ([0] * WORDS, "this is a list"),
    ]:
        for fill in (automaton.fill_masks, tf.engine.fill_masks):
            with pytest.raises(OptionError, match=re.escape(wrong)):
                fill([automaton.start], out)


@pytest.mark.parametrize("number", [-1, 2**32, 2**70, np.int64(-5)])
def test_numbers_out_of_range_are_typed_errors(number: int, automaton: tf.TokenAutomaton) -> None:
    state = automaton.start
    out = np.zeros((1, WORDS), np.uint32)
    for argument, call in (
        ("token", lambda: automaton.advance(state, number)),
        ("token", lambda: automaton.allows(state, number)),
        ("budget", lambda: automaton.mask_within(state, number)),
        ("budget", lambda: automaton.fits(state, number)),
        ("within", lambda: automaton.distance(state, number)),
        ("tokens", lambda: tf.engine.advance([state], [number])),
        ("budgets", lambda: tf.engine.fill_masks([state], out, budgets=[number])),
        ("depth", lambda: tf.engine.Limits(depth=number)),
        ("max_tokens", lambda: tf.engine.Matcher(automaton, max_tokens=number)),
        ("id", lambda: automaton.vocabulary.token(number)),
        ("eos", lambda: tf.Vocabulary([b"a", b""], eos=[number])),
    ):
        shown = re.escape(f"{argument}: {number} is out of range; give a whole number of at least 0")
        with pytest.raises(OptionError, match=shown):
            call()


def test_counts_and_rows_below_zero_are_typed_errors(automaton: tf.TokenAutomaton) -> None:
    matcher, out = tf.engine.Matcher(automaton), np.zeros((1, WORDS), np.uint32)
    for argument, call in (
        ("count", lambda: matcher.rollback(-1)),
        ("row", lambda: matcher.fill_mask(out, -1)),
        ("row", lambda: matcher.fill_draft_masks([], out, -1)),
        ("rows", lambda: tf.engine.fill_draft_masks([matcher], None, out, rows=[-1])),
        ("threads", lambda: tf.engine.fill_draft_masks([matcher], None, out, threads=-1)),
        ("threads", lambda: tf.engine.fill_masks([automaton.start], out, threads=-1)),
        ("threads", lambda: tf.engine.advance([automaton.start], [0], threads=-1)),
        ("threads", lambda: automaton.fill_masks([automaton.start], out, threads=-1)),
        ("memory", lambda: tf.engine.set_limits(memory=-1)),
        ("shared", lambda: tf.engine.set_limits(shared=-1)),
        ("work", lambda: tf.engine.Limits(work=-1)),
    ):
        with pytest.raises(OptionError, match=f"^{argument}: -1 is out of range; give a whole number"):
            call()


def test_texts_are_checked_as_text_or_bytes(automaton: tf.TokenAutomaton) -> None:
    for text in ('{"ä": 1}', '{"a": }'):
        assert automaton.check(text) == automaton.check(text.encode())
        assert automaton.matches(text) == automaton.matches(text.encode())


def test_any_number_of_threads(automaton: tf.TokenAutomaton) -> None:
    states = [automaton.start] * 5
    want = np.stack([automaton.mask(s) for s in states])
    for threads in (0, 1, 2, 10**6):
        out = np.zeros_like(want)
        automaton.fill_masks(states, out, threads=threads)
        assert np.array_equal(out, want)


def test_a_text_that_has_ended_allows_nothing_within_any_budget(automaton: tf.TokenAutomaton) -> None:
    state = automaton.start
    for token in (ord("{"), ord("}"), 258):
        state = automaton.advance(state, token)
    assert automaton.is_finished(state)
    for budget in (0, 5, 2**32 - 1):
        assert not automaton.mask_within(state, budget).any()


@pytest.mark.parametrize("length", [600, 70_000, 1_000_000])
def test_tokens_of_any_length(length: int) -> None:
    """Long tokens are allowed where their bytes are."""
    long = [b"a" * length, b'"' + b"b" * length + b'"', b"a" * length + b"\x01", b'a","' + b"c" * length]
    tokens = TOKENS + long
    vocabulary = tf.Vocabulary(tokens, eos=[258], special=[258])
    automaton = tf.json_schema(
        {"type": "array", "items": {"type": "string", "maxLength": length}}, whitespace="spaced"
    ).compile(vocabulary)
    state = automaton.advance(automaton.start, ord("["))
    assert list(automaton.oracle(state)) == list(automaton.allowed_tokens(state))
    assert 260 in automaton.allowed_tokens(state)
    state = automaton.advance(state, ord('"'))
    assert list(automaton.oracle(state)) == list(automaton.allowed_tokens(state))
    assert 259 in automaton.allowed_tokens(state) and 262 not in automaton.allowed_tokens(state)
    state = automaton.advance(state, 259)
    assert set(automaton.allowed_tokens(state)) & {ord("a"), 259, 260} == set()
    assert automaton.is_accepting(automaton.step_bytes(state, b'"]'))
    assert automaton.distance(automaton.start) == 2
    assert vocabulary.greedy(b"aa" + b"a" * length) == [259, ord("a"), ord("a")]


def test_a_text_that_one_long_token_alone_spells() -> None:
    vocabulary = tf.Vocabulary([b"x" * 1000, b"x" * 999, b"</s>"], eos=[2])
    automaton = tf.regex("x{1000}|x{1998}").compile(vocabulary)
    assert list(automaton.allowed_tokens(automaton.start)) == [0, 1]
    assert automaton.distance(automaton.start) == 1
