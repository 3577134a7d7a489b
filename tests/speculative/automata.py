"""A test double of the token automaton: a finite set of texts over a byte vocabulary."""

from __future__ import annotations

import functools

import numpy as np

import tokenform as tf

from .models import VOCABULARY

LETTERS = b'{}":,abcdefghijklmnopqrstuvwxyz0123456789 '
EOS = 0


def vocabulary() -> list[bytes]:
    """Token 0 ends a text; then single letters, then pieces of several."""
    tokens = [b"", *(bytes([c]) for c in LETTERS)]
    pieces = [b'{"', b'":', b'","', b'"}', b"na", b"me", b"name", b"age", b"ag", b"12", b'e"', b': "']
    return (tokens + pieces)[:VOCABULARY] + [
        b"~%d" % i for i in range(VOCABULARY - len(tokens) - len(pieces))
    ]


@functools.cache
def known() -> tf.Vocabulary:
    """The same for the library."""
    return tf.Vocabulary(vocabulary(), eos=[EOS])


class Patterned:
    """Texts that match a list of parts: bytes are literal, a frozenset is one of its bytes, 1..n times.

    A state is (part, offset or count) interned as an int, as in the engine.
    """

    def __init__(self, parts: list[bytes | tuple[frozenset[int], int]]) -> None:
        self.parts = parts
        self.tokens = vocabulary()
        self._states: list[object] = []
        self._ids: dict[object, int] = {}
        self.start = self._id((0, 0))
        self.finished = self._id("finished")
        self.vocabulary = known()

    def _id(self, state: object) -> int:
        if state not in self._ids:
            self._ids[state] = len(self._states)
            self._states.append(state)
        return self._ids[state]

    def _bytes(self, place: tuple[int, int]) -> dict[int, tuple[int, int]]:
        part, at = place
        if part == len(self.parts):
            return {}
        what = self.parts[part]
        if isinstance(what, bytes):
            return {what[at]: (part, at + 1) if at + 1 < len(what) else (part + 1, 0)}
        allowed, most = what
        out = {}
        if at:
            out.update(self._bytes((part + 1, 0)))
        if at < most:
            out.update(dict.fromkeys(allowed, (part, at + 1)))
        return out

    def _walk(self, place: tuple[int, int], text: bytes) -> tuple[int, int] | None:
        for byte in text:
            following = self._bytes(place).get(byte)
            if following is None:
                return None
            place = following
        return place

    def step_bytes(self, state: int, text: bytes) -> int | None:
        place = self._walk(self._states[state], text)
        return None if place is None else self._id(place)

    def is_finished(self, state: int) -> bool:
        return self._states[state] == "finished"

    def is_accepting(self, state: int) -> bool:
        if self.is_finished(state):
            return False
        part, at = self._states[state]
        last = self.parts[-1]
        return part == len(self.parts) or (
            part == len(self.parts) - 1 and not isinstance(last, bytes) and at > 0
        )

    @functools.cache  # noqa: B019
    def allows(self, state: int, token: int) -> bool:
        if self.is_finished(state):
            return False
        if token == EOS:
            return self.is_accepting(state)
        return bool(self.tokens[token]) and self._walk(self._states[state], self.tokens[token]) is not None

    @functools.cache  # noqa: B019
    def advance(self, state: int, token: int) -> int:
        assert self.allows(state, token)
        if token == EOS:
            return self.finished
        return self._id(self._walk(self._states[state], self.tokens[token]))

    @functools.cache  # noqa: B019
    def allowed_tokens(self, state: int) -> np.ndarray:
        return np.array([t for t in range(len(self.tokens)) if self.allows(state, t)], np.int32)

    @functools.cache  # noqa: B019
    def mask(self, state: int) -> np.ndarray:
        bits = np.zeros(-(-len(self.tokens) // 32) * 32, bool)
        bits[self.allowed_tokens(state)] = True
        return np.packbits(bits, bitorder="little").view(np.uint32)

    def fill_masks(self, states, out, threads=1):
        for row, state in zip(out, states, strict=True):
            row[:] = self.mask(state).view(np.int32)

    @functools.cache  # noqa: B019
    def distance(self, state: int, within: int | None = None) -> int:
        frontier, seen, steps = {state}, {state}, 0
        while not any(self.is_accepting(s) or self.is_finished(s) for s in frontier):
            steps += 1
            frontier = {self.advance(s, int(t)) for s in frontier for t in self.allowed_tokens(s)} - seen
            seen |= frontier
        return steps

    @functools.cache  # noqa: B019
    def mask_within(self, state: int, budget: int) -> np.ndarray:
        bits = np.zeros(-(-len(self.tokens) // 32) * 32, bool)
        for t in self.allowed_tokens(state):
            bits[t] = t == EOS or self.distance(self.advance(state, int(t))) < budget
        return np.packbits(bits, bitorder="little").view(np.uint32)

    def forced_bytes(self, state: int) -> bytes:
        out, place = b"", self._states[state]
        while place != "finished" and not self.is_accepting(self._id(place)):
            following = self._bytes(place)
            if len(following) != 1:
                break
            ((byte, place),) = following.items()
            out += bytes([byte])
        return out

    def forced(self, state: int) -> list[int]:
        rest, out = self.forced_bytes(state), []
        ids = {b: i for i, b in enumerate(self.tokens) if b}
        while rest:
            n = max(n for n in range(1, len(rest) + 1) if rest[:n] in ids)
            out.append(ids[rest[:n]])
            rest = rest[n:]
        return out


def letters(text: bytes) -> frozenset[int]:
    return frozenset(text)


def record() -> Patterned:
    """{"name":"<1..6 letters>","age":<1..3 digits>}"""
    return Patterned([b'{"name":"', (letters(b"abcxyz"), 6), b'","age":', (letters(b"0123456789"), 3), b"}"])


def word() -> Patterned:
    """1..12 of a few letters, so that the text may end at many places."""
    return Patterned([(letters(b"abn "), 12)])
