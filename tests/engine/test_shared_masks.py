"""The table of masks that all automata share: what is asked for again stays, whatever passes through once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tokenform as tf
from tokenform._core import store_figures

BOUND = 1 << 20
TOKENS = [bytes([b]) for b in range(256)] + [f"{a}{b}".encode() for a in "abcdef" for b in "xyz"] + [b"</s>"]


@pytest.fixture(autouse=True)
def _small_table() -> Iterator[None]:
    compiled, shared = tf.engine.memory_held()["compiled"][1], tf.engine.memory_held()["shared"][1]
    tf.engine.set_limits(compiled=0, shared=0)  # empties it
    tf.engine.set_limits(shared=BOUND)
    yield
    tf.engine.set_limits(compiled=compiled, shared=shared)


def walk(automaton: tf.TokenAutomaton, text: str) -> None:
    state = automaton.start
    for byte in text.encode():
        automaton.mask(state)
        state = automaton.advance(state, byte)
    automaton.mask(state)


def test_masks_that_pass_once_take_half_of_the_table_and_drive_out_nothing_that_is_shared() -> None:
    vocab = tf.Vocabulary(TOKENS, eos=[len(TOKENS) - 1])
    common = '{"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": %d}'

    def served(most: int) -> tuple[int, int]:
        """Hits and misses of one more schema with strings like the others'."""
        before = store_figures()[2:]
        walk(tf.json_schema(common % most).compile(vocab), '["ab')
        after = store_figures()[2:]
        return after[0] - before[0], after[1] - before[1]

    made, again = served(7), served(8)
    assert made[0] == 0 < again[0] and again[1] < made[1]
    keys = tf.json_schema({"type": "object"}).compile(vocab)
    largest = 0
    for number in range(3000):
        walk(keys, f'{{"k{number}": 1, "')
        if number % 100 == 0:
            largest = max(largest, tf.engine.memory_held()["shared"][0])
    assert BOUND // 8 < largest < BOUND * 3 // 4  # else nothing was put to the test, or they took it all
    assert served(9) == again


def test_a_smaller_bound_holds_at_once() -> None:
    vocab = tf.Vocabulary(TOKENS, eos=[len(TOKENS) - 1])
    keys = tf.json_schema({"type": "object"}).compile(vocab)
    for number in range(500):
        walk(keys, f'{{"k{number}": 1, "')
    assert tf.engine.memory_held()["shared"][0] > BOUND // 16
    tf.engine.set_limits(shared=BOUND // 16)
    assert tf.engine.memory_held()["shared"] <= (BOUND // 16, BOUND // 16)
