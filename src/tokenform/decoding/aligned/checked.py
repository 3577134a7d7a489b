"""A type's grammar with its validators written in Python, each called as soon as its field is written.

Invariant: a text is accepted if the automaton accepts it and the whole type reads it; a prefix is refused
only if every accepted continuation of it would be (`frontends.value_shapes`).
The validators read ahead: bytes that the automaton forces are read, so that a value which can only end is
judged before a pass for its end; and where few tokens may follow, all of them are judged at once.
Complexity: a reader for each prefix that was met, copied from that of the prefix before it; a validator runs
once for each new text of its field (per cache).
Rejected: `Predicate` over whole texts (each verdict would read the text from its start).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tokenform.decoding.aligned.automaton_constraint import AutomatonConstraint
from tokenform.decoding.aligned.protocols import Bools, Ids, State
from tokenform.decoding.aligned.utf8 import split_characters
from tokenform.decoding.recent import Recent
from tokenform.engine import Grammar, Vocabulary
from tokenform.errors import InvalidType
from tokenform.frontends.json_reader import JsonReader

FEW = 64  # tokens that are judged at once
CACHED_READERS = 8192  # prefixes whose readers are kept


class CheckedState(NamedTuple):
    """The automaton's state and the text before it."""

    state: Any
    text: bytes


class Checked:
    """`Constraint` over a grammar made by `from_type`.

    Args:
        grammar: has `shapes`.
        vocabulary: the tokens.

    `refused` is the last text that was refused, and why.
    """

    exact = False
    cheap = True  # most prefixes are judged without running a validator

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None:
        self._automaton = grammar.compile(vocabulary)
        self._masks = AutomatonConstraint(self._automaton)
        self._grammar, self._shape = grammar, grammar.shapes.checks()
        self.token_bytes = self._masks.token_bytes
        self.start: State = CheckedState(self._masks.start, b"")
        self.evaluations = 0
        self.fingerprint = f"{self._masks.fingerprint} & validators of {grammar.shapes.label}"
        self.refused: tuple[str, InvalidType] | None = None
        self._readers: Recent[bytes, tuple[JsonReader, bytes] | None] = Recent(CACHED_READERS)
        self._ends: Recent[bytes, bool] = Recent(CACHED_READERS)

    def advance(self, state: Any, token: int) -> State:
        return CheckedState(self._masks.advance(state.state, token), state.text + self.token_bytes[token])

    def candidates(self, states: Sequence[Any]) -> list[Ids]:
        found = self._masks.candidates([state.state for state in states])
        return [
            ids if self._shape is None or len(ids) > FEW else ids[self._passes(state, ids.tolist())]
            for state, ids in zip(states, found, strict=True)
        ]

    def check(self, states: Sequence[Any], tokens: Sequence[int]) -> Bools:
        verdicts = [
            self._automaton.allows(state.state, token) and bool(self._passes(state, [token])[0])
            for state, token in zip(states, tokens, strict=True)
        ]
        return np.array(verdicts, dtype=np.bool_)

    def accepts(self, states: Sequence[Any]) -> Bools:
        ends = self._masks.accepts([state.state for state in states])
        return np.array([end and self._whole(state.text) for end, state in zip(ends, states)], dtype=np.bool_)

    def distance(self, state: Any, within: int | None = None) -> int:
        return self._masks.distance(state.state, within)

    def within(self, state: Any, ids: Ids, remaining: int) -> Ids:
        return self._masks.within(state.state, ids, remaining)

    def forced(self, state: Any) -> list[int] | None:
        """As `AutomatonConstraint.forced`."""
        return self._masks.forced(state.state)

    def _passes(self, state: CheckedState, tokens: list[int]) -> Bools:
        """Whether validators pass each of these tokens, which the mask allows."""
        out = np.ones(len(tokens), dtype=np.bool_)
        if self._shape is None:
            return out
        for number, token in enumerate(tokens):
            after: Any = self._masks.advance(state.state, token)
            text = state.text + self.token_bytes[token]
            found = self._reader(text)
            if found is not None and (forced := bytes(self._automaton.forced_bytes(after))):
                out[number] = self._fed(found, forced, text) is not None
            else:
                out[number] = found is not None
        return out

    def _reader(self, text: bytes) -> tuple[JsonReader, bytes] | None:
        """The reader after a text and the bytes of half a character; None where it is refused."""
        if text in self._readers:
            self._readers.move_to_end(text)
            return self._readers[text]
        # what was met last begins with nearly all of it; the empty text is always known
        length = next((n for n in range(len(text) - 1, 0, -1) if text[:n] in self._readers), 0)
        previous = self._readers[text[:length]] if length else (JsonReader(self._shape), b"")
        reader = None if previous is None else self._fed(previous, text[length:], text[:length])
        self._readers[text] = reader
        return reader

    def _fed(
        self, previous: tuple[JsonReader, bytes], more: bytes, before: bytes
    ) -> tuple[JsonReader, bytes] | None:
        reader, rest = previous[0].copy(), previous[1] + more
        whole, rest = split_characters(rest)
        if whole is None:
            return None
        try:
            reader.feed(whole)
        except InvalidType as error:
            self.evaluations += 1
            error.text = (before + more).decode("utf-8", errors="replace")
            error.partial = reader.value() or None
            self.refused = error.text, error
            return None
        return reader, rest

    def _whole(self, data: bytes) -> bool:
        if data not in self._ends:
            text = data.decode("utf-8", errors="replace")
            self.evaluations += 1
            try:
                self._grammar.parse(text)
                self._ends[data] = True
            except InvalidType as error:
                self.refused, self._ends[data] = (text, error), False
        return self._ends[data]


def has_validators(grammar: object) -> bool:
    """Whether a grammar stands for a type with rules in Python."""
    return isinstance(grammar, Grammar) and grammar.shapes is not None and bool(grammar.shapes.coded)
