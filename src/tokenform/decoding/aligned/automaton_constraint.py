"""A grammar's token automaton as a constraint: exact masks, exact distances.

Invariant: `candidates` is the automaton's mask without the EOS ids, `accepts` is its accepting bit; states
are the automaton's own numbers, so prefixes that are equivalent share everything that is learned about their
masks.
Complexity: a mask is a lookup for a state seen before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tokenform.decoding.aligned.protocols import Bools, Ids, State
from tokenform.engine.packed import mask_bits

SMALL_MASK = 64  # up to this size tokens are tried one by one, beyond it in one call
FINGERPRINT_STATES = 32  # states whose masks go into the fingerprint


class AutomatonConstraint:
    """`Constraint` over a compiled grammar (`grammar.compile(vocabulary)`).

    Args:
        automaton: has `start`, `advance`, `allowed_tokens`, `allows`, `is_accepting`, `distance`,
            `vocabulary`.
    """

    exact = True

    def __init__(self, automaton: Any) -> None:
        self.automaton = automaton
        self.start: State = automaton.start
        self.token_bytes: Sequence[bytes] = automaton.vocabulary.tokens
        self.evaluations = 0
        self._eos = np.array(sorted(automaton.vocabulary.eos), dtype=np.int64)
        self._fingerprint: str | None = None

    def advance(self, state: State, token: int) -> State:
        return cast(State, self.automaton.advance(state, token))

    def candidates(self, states: Sequence[State]) -> list[Ids]:
        self.evaluations += len(states)
        return [self._content(state) for state in states]

    def check(self, states: Sequence[State], tokens: Sequence[int]) -> Bools:
        self.evaluations += len(states)
        allows = self.automaton.allows
        return np.array(
            [allows(state, token) for state, token in zip(states, tokens, strict=True)], dtype=np.bool_
        )

    def forced(self, state: State) -> list[int] | None:
        """Allowed tokens that write what every accepted text goes on with; others may write it too.

        None where the automaton does not tell.
        """
        if not hasattr(self.automaton, "forced"):
            return None
        if self.automaton.is_finished(state):
            return []
        return [int(token) for token in self.automaton.forced(state)]

    def accepts(self, states: Sequence[State]) -> Bools:
        return np.array([self.automaton.is_accepting(state) for state in states], dtype=np.bool_)

    def distance(self, state: State, within: int | None = None) -> int:
        found = self.automaton.distance(state, within)
        if found is None:
            return 0 if within is None else within + 1
        return int(found)

    def within(self, state: State, ids: Ids, remaining: int) -> Ids:
        if len(ids) > SMALL_MASK and hasattr(self.automaton, "mask_within"):
            fits: Bools = mask_bits(self.automaton.mask_within(state, remaining), int(ids.max()) + 1)[ids]
        else:
            fits = np.array(
                [self.distance(self.advance(state, token), remaining) < remaining for token in ids.tolist()],
                dtype=np.bool_,
            )
        return ids if fits.all() else ids[fits]

    @property
    def fingerprint(self) -> str:
        """A digest of the vocabulary's bytes and of the masks of the first states, breadth first."""
        if self._fingerprint is None:
            digest = hashlib.sha256()
            for token in self.token_bytes:
                digest.update(len(token).to_bytes(4, "little") + bytes(token))
            queue: list[State] = [self.start]
            seen = {self.start}
            for state in queue:  # the queue grows while it is walked
                ids = self._content(state)
                digest.update(ids.tobytes() + bytes([self.automaton.is_accepting(state)]))
                for token in ids[:FINGERPRINT_STATES].tolist():
                    if len(queue) < FINGERPRINT_STATES and (after := self.advance(state, token)) not in seen:
                        seen.add(after)
                        queue.append(after)
            self._fingerprint = digest.hexdigest()
        return self._fingerprint

    def _content(self, state: State) -> Ids:
        ids = np.asarray(self.automaton.allowed_tokens(state), dtype=np.int64)
        places = np.searchsorted(ids, self._eos)
        present = [int(i) for i, end in zip(places, self._eos, strict=True) if i < len(ids) and ids[i] == end]
        return np.delete(ids, present) if present else ids
