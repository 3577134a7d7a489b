"""A special token that also ends texts (`eos`) stands at the end alone: whoever writes a text stops at it."""

from __future__ import annotations

import numpy as np
import pytest

import tokenform as tf
from tokenform.frontends.combinators import literal

TOKENS = [*(bytes([byte]) for byte in range(256)), b"<|end|>", b"<|call|>", b"<|", b""]
END, CALL = 256, 257
VOCABULARY = tf.Vocabulary(TOKENS, eos=[END, 259], special=[END, CALL, 259])


def allowed(automaton: tf.Automaton, state: tf.engine.State) -> list[int]:
    row = automaton.mask(state).view(np.uint8)
    found = [int(i) for i in np.flatnonzero(np.unpackbits(row, bitorder="little"))]
    assert found == list(automaton.oracle(state))
    return found


def after(automaton: tf.Automaton, text: bytes) -> tf.engine.State:
    state = automaton.start
    for byte in text:
        state = automaton.advance(state, byte)
    return state


def test_in_the_middle_its_text_is_written_out() -> None:
    automaton = (literal("a") + tf.combinators.special_token("<|end|>") + literal("b")).compile(VOCABULARY)
    state = after(automaton, b"a")
    assert allowed(automaton, state) == [ord("<"), TOKENS.index(b"<|")]
    assert not automaton.allows(state, END)
    assert automaton.is_accepting(after(automaton, b"a<|end|>b"))
    assert automaton.distance(state) is not None


def test_at_the_end_it_ends_the_text() -> None:
    automaton = (literal("a") + tf.combinators.special_token("<|end|>")).compile(VOCABULARY)
    state = after(automaton, b"a")
    assert END in allowed(automaton, state)
    assert automaton.is_accepting(automaton.advance(state, END))
    assert automaton.is_accepting(after(automaton, b"a<|end|>"))


@pytest.mark.parametrize("text", ["<|call|>", "<|end|>"])
def test_other_special_tokens_stand_anywhere(text: str) -> None:
    automaton = (tf.combinators.special_token(text) + literal("b")).compile(VOCABULARY)
    assert (CALL in allowed(automaton, automaton.start)) == (text == "<|call|>")


def test_a_text_is_whole_where_it_ends() -> None:
    pytest.importorskip("torch")
    generator = tf.Generator()
    name = generator.vocabulary.token(generator.vocabulary.eos[0]).decode()
    (result,) = generator.sample(
        "x", literal("a") + tf.combinators.special_token(name) + literal("b"), max_tokens=30
    )
    assert (result.text, result.reason) == (f"a{name}b", "end")
