"""Walks over an automaton that hold each mask against the oracle and end in an accepted text."""

from __future__ import annotations

import random

import tokenform as tf

PIECES = [
    b'"',
    b'":',
    b'": ',
    b'", "',
    b'"}',
    b'"},{"',
    b'["',
    b"]]",
    b"true",
    b"\\n",
    b'\\"',
    b"\\u00",
    b"ab",
    b"aa",
]
PIECES += [
    b"12",
    b"00",
    b".0",
    b"e+",
    b"  ",
    b"}x",
    b'"};',
    b"x=",
    b'x={"',
    b'a": ',
    b"({",
    b"})",
    "é".encode(),
    b"<t",
]
PIECES += [b"t>{", b"b;", "😀".encode()[:2], "😀".encode()[2:], b"a", b""]
SPECIAL = [b"<tool>", b"</tool>", b"<s>"]
TOKENS = [*(bytes([b]) for b in range(256)), *PIECES, *SPECIAL, b"</s>"]
VOCABULARY = tf.Vocabulary(
    TOKENS, eos=[len(TOKENS) - 1], special=list(range(len(TOKENS) - 4, len(TOKENS) - 1))
)


def ids(row: object) -> list[int]:
    """The token ids of a mask row."""
    return [i for i in range(len(TOKENS)) if row[i >> 5] >> (i & 31) & 1]  # type: ignore[index]


def walk(grammar: tf.Grammar, seed: int, steps: int = 25) -> bytes:
    """A random text of the grammar; every mask on the way is what the oracle says."""
    auto = grammar.compile(VOCABULARY)
    rng = random.Random(seed)
    state, text = auto.start, b""
    for _ in range(steps):
        allowed = auto.allowed_tokens(state).tolist()
        assert allowed == auto.oracle(state), text
        assert allowed, f"dead end after {text!r}"
        token = rng.choice(allowed)
        state = auto.advance(state, token)
        if auto.is_finished(state):
            return text
        text += TOKENS[token]
    while not auto.is_accepting(state):
        left = auto.distance(state)
        assert left is not None, text
        near = ids(auto.mask_within(state, left))
        state = auto.advance(state, near[0])
        text += TOKENS[near[0]]
        assert (auto.distance(state) or 0) < left, text
    return text


def accepts(grammar: tf.Grammar, text: str) -> bool:
    """Whether the grammar accepts the text, spelled without special tokens."""
    return grammar.compile(VOCABULARY).check(text.encode()) is None
