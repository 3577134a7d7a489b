"""What grammars are charged, in counted work: usual ones are far from the limit, others are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import tokenform as tf
from tokenform.errors import LimitExceeded

GRAMMARS = Path(__file__).parents[2] / "grammars"
BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256])


@pytest.mark.parametrize("name", ["c", "sql", "python", "javascript", "json"])
def test_grammars_of_languages_are_far_from_the_limit(name: str) -> None:
    grammar = tf.lark((GRAMMARS / f"{name}.lark").read_text())
    assert grammar.core.work < tf.engine.Limits().work / 400
    # each call has a fiftieth of the usual
    automaton = grammar.compile(BYTES, limits=tf.engine.Limits(work=tf.engine.Limits().work // 50))
    state = automaton.start
    text = (GRAMMARS / f"{name}.examples.txt").read_text()[:300]
    for token in text.encode():
        assert automaton.allows(state, token) == bool(automaton.mask(state)[token // 32] >> token % 32 & 1)
        if not automaton.allows(state, token):
            break
        state = automaton.advance(state, token)
        automaton.mask_within(state, 300)
    assert automaton.distance(state) is not None


def test_a_deep_text_costs_little_more_at_each_level() -> None:
    grammar = tf.gbnf('root ::= "(" root ")" | "[" root "]" root | "x" ("+" root)?')
    automaton = grammar.compile(BYTES, limits=tf.engine.Limits(work=100_000))
    state = automaton.start
    for _ in range(300):
        state = automaton.advance(state, ord("("))
        automaton.mask_within(state, 1000)
    assert automaton.distance(state) == 301


def test_every_way_to_read_a_text_is_charged() -> None:
    text = "start: (a | b)* start? | start start b\n" + 'a: "x" | a a\nb: "x"~1..3 | a b\n'
    grammar = tf.lark(text, lexer="dynamic")
    with pytest.raises(LimitExceeded, match=r"Limits\.work"):
        grammar.compile(BYTES, limits=tf.engine.Limits(work=200_000)).check(b"x" * 60)
    assert grammar.compile(BYTES, limits=tf.engine.Limits(work=4_000_000)).matches(b"x" * 60)
