"""Assertions that cross repetitions: the pattern is the states of an automaton.  Judge: Python's `re`."""

from __future__ import annotations

import itertools
import re

import pytest

import tokenform as tf

BYTES = tf.Vocabulary([*(bytes([byte]) for byte in range(256)), b""], eos=[256])
PATTERNS = [
    r"^((?=[a-c]*z)[a-c]|z){1,40}$",
    r"^(?:(?<=a.{5})b|[ac])+$",
    r"^(?:(?<!a.{4})b|[ac])+$",
    r"^(?:(?!abc|bca|cab)[a-c])*(?<!b)$",
    r"^(?:(?=.{0,3}c)[ab]|[cé])+$",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_they_hold_at_every_round(pattern: str) -> None:
    automaton = tf.regex(pattern).compile(BYTES)
    judge = re.compile(pattern)
    letters = "".join(letter for letter in "abczé" if letter in pattern or letter in "abc")
    accepted = 0
    for length in range(8 if len(letters) == 3 else 6):
        for text in map("".join, itertools.product(letters, repeat=length)):
            expected = judge.search(text) is not None
            assert automaton.matches(text.encode()) == expected, text
            accepted += expected
    assert accepted > 20


def test_masks_are_what_re_lets_through() -> None:
    """Of this pattern the beginnings of matches are matches, so that `re` tells which letter may follow."""
    pattern = r"^(?:(?<=a.{2})b|[ac])+$"
    automaton = tf.regex(pattern).compile(BYTES)
    judge = re.compile(pattern)
    states = {"": automaton.start}
    for _ in range(6):
        longer = {}
        for text, state in states.items():
            for letter in "abc":
                allowed = automaton.allows(state, ord(letter))
                assert allowed == (judge.search(text + letter) is not None), text + letter
                if allowed:
                    longer[text + letter] = automaton.advance(state, ord(letter))
        states = longer
    assert len(states) > 64
