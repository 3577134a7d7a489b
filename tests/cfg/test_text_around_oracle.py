"""Terminals that look past their ends, against the lexer's rule written with Python's `re` alone.

A lexeme goes on while some terminal can read on, and is then that of the highest priority which matches.
What can be read on is found by trying what may follow.
"""

from __future__ import annotations

import itertools
import re
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import LimitExceeded, UnsatisfiableGrammar, UnsupportedRegex

LETTERS = "ab é"
TOKENS = [*(bytes([byte]) for byte in range(256)), b"ab", "bé".encode(), b"a b", b"\xa9a", b"aa", b" a"]
VOCABULARY = tf.Vocabulary([*TOKENS, b"</s>"], eos=[len(TOKENS)], special=[len(TOKENS)])
TEXTS = ["".join(letters) for n in range(1, 5) for letters in itertools.product(LETTERS, repeat=n)]
MORE = ["".join(letters) for n in range(4) for letters in itertools.product(LETTERS, repeat=n)]
LONGEST = 3

atoms = st.sampled_from(
    ["a", "b", "é", "[ab]", "[^a]", "[^ ]", r"\w", ".", "ab", "(?:a|bé)", "a?b", "b{1,2}"]
)
behind = st.sampled_from([r"\b", r"\B", "(?!a)", "(?=b)", "(?! )", r"(?!\w)", "(?=[^b])", "(?!é)"])
before = st.sampled_from([r"\b", "(?<!a)", "(?<=b)", r"(?<! )", "^"])


@st.composite
def patterns(draw: st.DrawFn, looks_back: bool) -> str:
    """A pattern of at most `LONGEST` characters, maybe in two alternatives."""

    def word() -> str:
        parts = draw(st.lists(atoms, min_size=1, max_size=2))
        if sum(len(part) > 3 and part not in ("[ab]", "[^a]", "[^ ]") for part in parts) > 1:
            parts = parts[:1]
        tail = draw(behind) if draw(st.booleans()) else ""
        head = draw(before) if looks_back and draw(st.booleans()) else ""
        return head + "".join(parts) + tail

    return f"(?:{word()}|{word()})" if draw(st.booleans()) else word()


class Oracle:
    """The lexer's rule; `patterns` by descending priority, the last one ignored where it is `ignored`."""

    def __init__(self, patterns: list[str]) -> None:
        self.patterns = patterns
        # each oracle remembers for itself
        self.at_end = cache(self._at_end)
        self.goes_on = cache(self._goes_on)
        self.begins = cache(self._begins)

    def _at_end(self, pattern: str, left: int) -> re.Pattern[str]:
        return re.compile(rf"(?:{pattern})(?=[\s\S]{{{left}}}\Z)")

    def matches(self, text: str, start: int, end: int) -> bool:
        return any(self.at_end(p, len(text) - end).match(text, start) for p in self.patterns)

    def _goes_on(self, before: str, read: str) -> bool:
        """Whether something may follow with which a terminal matches `read`, and maybe more of it."""
        if len(read) > 2 * LONGEST:
            return False
        start = len(before)
        return any(
            (end == len(text) or text[end] in self.begins()) and self.matches(text, start, end)
            for text in (before + read + more for more in MORE)
            for end in range(start + len(read), len(text) + 1)
        )

    def _begins(self) -> str:
        """The characters that terminals begin with: no text goes on with others."""

        def is_begun(letter: str) -> bool:
            texts = (before + letter + more for before in ["", *LETTERS] for more in MORE)
            return any(
                self.matches(text, start, end)
                for text in texts
                for start in (0, 1)
                for end in range(start + 1, len(text) + 1)
                if text[start : start + 1] == letter
            )

        return "".join(filter(is_begun, LETTERS))

    def accepts(self, text: str) -> bool:
        start = 0
        while start < len(text):
            end, before = start, text[:start][-1:]
            while end < len(text) and self.goes_on(before, text[start : end + 1]):
                end += 1
            if end == start or not self.matches(text, start, end):
                return False
            start = end
        return True


def check(patterns: list[str], ignored: bool) -> None:
    names = [f"T{i}" for i in range(len(patterns))]
    read = names[:-1] if ignored and len(names) > 1 else names
    grammar = f"start: ({'|'.join(read)})+\n"
    grammar += "".join(f"{name}.{9 - i}: /{p}/\n" for i, (name, p) in enumerate(zip(names, patterns)))
    if read != names:
        grammar += f"%ignore {names[-1]}\n"
    try:
        automaton = tf.lark(grammar).compile(VOCABULARY)
    except (UnsatisfiableGrammar, UnsupportedRegex, LimitExceeded):
        return
    oracle = Oracle(patterns)
    for text in TEXTS:
        state, there = automaton.start, True
        for byte in text.encode():
            there = there and automaton.allows(state, byte)
            state = automaton.advance(state, byte) if there else state
        found = there and automaton.is_accepting(state)
        # texts of ignored lexemes alone are none
        if read == names:
            assert found == oracle.accepts(text), (grammar, text)
        elif found or there:
            assert not found or oracle.accepts(text), (grammar, text)
    masks_lead_on(automaton, grammar)


def masks_lead_on(automaton: tf.TokenAutomaton, grammar: str) -> None:
    rng, state = np.random.default_rng(0), automaton.start
    for _ in range(6):
        allowed = set(automaton.allowed_tokens(state).tolist())
        assert allowed, grammar
        for token, text in enumerate(TOKENS):
            there, state_there = True, state
            for byte in text:
                there = there and automaton.allows(state_there, byte)
                state_there = automaton.advance(state_there, byte) if there else state_there
            assert (token in allowed) == there, (grammar, text)
        ways = sorted(allowed - {len(TOKENS)})
        if not ways:
            break
        state = automaton.advance(state, int(rng.choice(ways)))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(patterns(looks_back=False), min_size=1, max_size=3), st.booleans())
def test_what_follows_is_read_as_by_the_rule(patterns: list[str], ignored: bool) -> None:
    check(patterns, ignored)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(patterns(looks_back=True), min_size=1, max_size=3), st.booleans())
def test_what_stands_before_is_read_as_by_the_rule(patterns: list[str], ignored: bool) -> None:
    check(patterns, ignored)


@pytest.mark.parametrize("looking", ["(?<!q)z", "z(?!q)"])
def test_a_mark_is_a_character_of_other_terminals(looking: str) -> None:
    grammar = f"start: (T|L)+\nT: /a[^a]a/\nL: /{looking}/\n"
    automaton = tf.lark(grammar).compile(VOCABULARY)
    assert [automaton.matches(text) for text in (b"aba", b"aa a", b"a a")] == [True, False, True]
