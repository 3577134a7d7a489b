"""A special token that also ends texts (`eos`) stands at the end alone: whoever writes a text stops at it."""

from __future__ import annotations

import numpy as np
import pytest

import tokenform as tf
from tokenform.errors import VocabularyError
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


@pytest.mark.parametrize(
    "grammar",
    [
        literal("a") + tf.combinators.special_token("<|end|>") + literal("b"),
        literal("a") + tf.combinators.special_token("<|end|>") + tf.regex("b+") | literal("c"),
        (literal("a") + tf.combinators.special_token("<|end|>"))
        + (tf.regex("b") | tf.combinators.special_token("<|call|>")),
        tf.gbnf('root ::= "a" <|end|> "b"'),
        tf.gbnf('root ::= ("a" <[256]>)* "b"'),
    ],
)
def test_in_the_middle_it_is_refused(grammar: tf.Grammar) -> None:
    with pytest.raises(VocabularyError, match="ends texts"):
        grammar.compile(VOCABULARY)
    other = tf.Vocabulary(TOKENS, eos=[259], special=[END, CALL, 259])
    assert grammar.compile(other).start is not None


def test_what_may_follow_it_may_be_nothing() -> None:
    automaton = (literal("a") + tf.combinators.special_token("<|end|>") + tf.regex("b*")).compile(VOCABULARY)
    assert allowed(automaton, after(automaton, b"a")) == [END]


def test_at_the_end_it_ends_the_text() -> None:
    automaton = (literal("a") + tf.combinators.special_token("<|end|>")).compile(VOCABULARY)
    state = after(automaton, b"a")
    assert END in allowed(automaton, state)
    assert automaton.is_accepting(automaton.advance(state, END))
    assert allowed(automaton, state) == [END] and automaton.distance(state) is not None


def test_other_special_tokens_stand_anywhere() -> None:
    automaton = (tf.combinators.special_token("<|call|>") + literal("b")).compile(VOCABULARY)
    assert allowed(automaton, automaton.start) == [CALL]


def test_a_text_is_whole_where_it_ends() -> None:
    pytest.importorskip("torch")
    generator = tf.Generator()
    name = generator.vocabulary.token(generator.vocabulary.eos[0]).decode()
    (result,) = generator.sample("x", literal("a") + tf.combinators.special_token(name), max_tokens=30)
    assert (result.text, result.reason) == ("a", "end")
