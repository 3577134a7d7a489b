"""Random texts of a grammar over bytes, which end."""

from __future__ import annotations

import random

import tokenform as tf

BYTES = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256])
_WEIGHTS = {
    **dict.fromkeys(b" \n)", 8),
    **dict.fromkeys(b"'\"`[0123456789", 0.4),
    **dict.fromkeys(b"*/%|+-", 0.5),
}
_CLOSED = frozenset(b"'\"`]")


def written(automaton: tf.TokenAutomaton, rng: random.Random, steps: int) -> str:
    """At most so many random bytes, and then the nearest end; clauses come oftener than long values."""
    state, text = automaton.start, b""
    while True:
        allowed = automaton.allowed_tokens(state).tolist()
        assert allowed, f"no way on behind {text!r}"
        inside = len(allowed) > 90  # of a string or name
        if len(text) >= steps:
            left = automaton.distance(state)
            assert left is not None
            words = automaton.mask_within(state, left)
            allowed = [byte for byte in allowed if words[byte >> 5] >> (byte & 31) & 1]
        elif inside and rng.random() < 0.3:
            allowed = [byte for byte in allowed if byte in _CLOSED] or allowed
        (token,) = rng.choices(allowed, [_WEIGHTS.get(byte, 1) for byte in allowed])
        if token == 256:
            return text.decode()
        state = automaton.advance(state, token)
        text += bytes([token])
        if automaton.is_finished(state):
            return text.decode()
