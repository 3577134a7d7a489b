"""Texts too long to count are texts: such a constraint is none that nothing satisfies."""

from __future__ import annotations

import numpy as np
import pytest

import tokenform as tf
from tokenform.errors import TokenformError, UnsatisfiableGrammar

BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256])
TIMES = [20, 61, 62, 63, 64, 70, 200]


def lark(times: int) -> tf.Grammar:
    rules = "".join(f"a{i}: a{i + 1} a{i + 1}\n" for i in range(times))
    return tf.lark(f'start: a0\n{rules}a{times}: "x"\n')


def gbnf(times: int, last: str = '"x"') -> tf.Grammar:
    rules = "".join(f"a{i} ::= a{i + 1} a{i + 1}\n" for i in range(times))
    return tf.gbnf(f"root ::= a0\n{rules}a{times} ::= {last}\n")


def regex(times: int) -> tf.Grammar:
    pattern = "x"
    for _ in range(times):
        pattern = f"(?:{pattern}){{1000}}"
    return tf.regex(pattern)


def arrays(times: int, least: int) -> tf.Grammar:
    schema: dict[str, object] = {"type": "null"}
    for _ in range(times):
        schema = {"type": "array", "items": schema, "minItems": least}
    return tf.json_schema(schema)


def allowed(grammar: tf.Grammar, text: bytes = b"") -> list[int]:
    automaton = grammar.compile(BYTES)
    state = automaton.start
    for byte in text:
        state = automaton.advance(state, byte)
    row = automaton.mask(state).view(np.uint8)
    return [int(i) for i in np.flatnonzero(np.unpackbits(row, bitorder="little"))]


@pytest.mark.parametrize("times", TIMES[1:])
def test_grammars(times: int) -> None:
    for grammar in (lark(times), gbnf(times), gbnf(times, "<[120]>"), gbnf(times, "!<[121]>+ <[120]>")):
        assert ord("x") in allowed(grammar)
        automaton = grammar.compile(BYTES)
        assert automaton.distance(automaton.start) is None
        assert ord("x") in allowed(grammar + tf.regex("a"), b"xx")


@pytest.mark.parametrize("times", [2, 3, 7, 20])
def test_counts_of_patterns_and_schemas(times: int) -> None:
    assert allowed(regex(times)) == allowed(regex(times) + tf.regex("y")) == [ord("x")]
    assert allowed(tf.lark(f"start: A A\nA: /{'(?:' * times}x{'){1000}' * times}/")) == [ord("x")]
    for least in (10**6, 2**31, 2**62):
        assert allowed(arrays(times, least)) == allowed(arrays(times, least) + tf.regex("y")) == [ord("[")]


def test_what_is_short_beside_it_is_found() -> None:
    automaton = (gbnf(70) | tf.regex("xy")).compile(BYTES)
    assert automaton.distance(automaton.start) == 2
    assert allowed(gbnf(70) | tf.regex("xy"), b"x") == [ord("x"), ord("y")]


@pytest.mark.parametrize("times", TIMES)
def test_what_derives_nothing_still_does(times: int) -> None:
    with pytest.raises(TokenformError):
        gbnf(times, "a0")
    rules = "".join(f"a{i}: a{i + 1} a{i + 1}\n" for i in range(times))
    with pytest.raises(UnsatisfiableGrammar):
        tf.lark(f"start: a0\n{rules}a{times}: /x(?!x)(?=x)/\n")
