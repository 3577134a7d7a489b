"""The protocols of an aligned sampler's model, constraint and potential.

Purpose: the samplers of this package use these protocols alone, so that a table, a Hugging Face model with a
cache or the speculative backbone can implement `LanguageModel`, and an automaton or a Python predicate
`Constraint`.

Invariants: every call is a pure function of its arguments (caches and counters aside), and a batched call
equals the single calls.  States are hashable values; `advance` returns a new one.

Rejected: one "potential" type that scores tokens for everything (model, mask and critic alike).  Masks and
distributions then lose their speed: a mask is a short list of ids, a model needs whole batches.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Ids = NDArray[np.int64]
Bools = NDArray[np.bool_]
Tokens = tuple[int, ...]
State = Hashable


@runtime_checkable
class LanguageModel(Protocol):
    """The next-token distribution of a model.

    Attributes:
        vocab_size: V, the length of a row of log-probabilities.
        eos: the ids that end a text, at least one.
        forwards: forward passes (batched calls of the network) made so far.
        rows: next-token distributions computed so far.
    """

    @property
    def eos(self) -> tuple[int, ...]: ...

    @property
    def forwards(self) -> int: ...

    @property
    def rows(self) -> int: ...

    @property
    def vocab_size(self) -> int: ...

    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        """Log-probabilities after each prefix (prompt included): float64 `[n, V]`, rows sum to one.

        The array is the caller's: it may be written to and kept.
        """
        ...


@runtime_checkable
class Constraint(Protocol):
    """A set L of texts, seen through prefixes of tokens.

    Attributes:
        exact: True if `candidates` and `accepts` are cheap and exact (an automaton).  False if a candidate
            still has to pass `check` (a predicate).
        start: the state of the empty text.
        token_bytes: the bytes of every token id.
        evaluations: how often the constraint was evaluated so far (masks of new states, or predicate calls).
        fingerprint: a text that names the constraint's content; tries refuse to serve another one.
    """

    exact: bool
    start: State
    token_bytes: Sequence[bytes]

    @property
    def evaluations(self) -> int: ...

    @property
    def fingerprint(self) -> str: ...

    def advance(self, state: State, token: int) -> State:
        """The state after one more token, which must be allowed and not an EOS id."""
        ...

    def candidates(self, states: Sequence[State]) -> list[Ids]:
        """For each state the sorted ids (EOS excluded) outside of which no token is allowed."""
        ...

    def check(self, states: Sequence[State], tokens: Sequence[int]) -> Bools:
        """Whether each token (EOS excluded) may follow its state; exact for every constraint."""
        ...

    def accepts(self, states: Sequence[State]) -> Bools:
        """Whether the text may end in each state."""
        ...

    def distance(self, state: State, within: int | None = None) -> int:
        """A lower bound on the tokens still needed for an accepted text, EOS excluded; 0 where unknown.

        Where it is more than `within`, any number above that will do.
        """
        ...

    def within(self, state: State, ids: Ids, remaining: int) -> Ids:
        """The candidates (EOS excluded) from which an accepted text may be reached in `remaining` tokens,
        their own included; all of them where that is unknown.
        """
        ...


@runtime_checkable
class Potential(Protocol):
    """A non-negative factor of the target, in logs.  `prefix` steers, only `complete` counts.

    Attributes:
        log_bound: an upper bound of `complete`, or None; rejection sampling needs one.
        fingerprint: a text that names the potential's content.
    """

    log_bound: float | None
    fingerprint: str

    def prefix(self, texts: Sequence[bytes]) -> Float:
        """Provisional log-scores of unfinished texts, float64 `[n]`; -inf only if no continuation counts."""
        ...

    def complete(self, texts: Sequence[bytes]) -> Float:
        """Log-scores of finished texts, float64 `[n]`."""
        ...
