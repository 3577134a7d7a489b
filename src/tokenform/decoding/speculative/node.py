"""What a sampler sees at one node of a draft tree, and what it answers.

Purpose: the seam between the backbone and every sampler.  A sampler is asked for the distribution
or for a draw at a node; whether the node was committed or drafted it can't tell.
Invariant: a node's distribution is a function of its text, its state and the tokens that remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tokenform.decoding.keyed_random import uniform
from tokenform.engine import State
from tokenform.engine.packed import mask_bits


class Automaton(Protocol):
    """The part of a token automaton that speculation needs."""

    start: int

    def mask(self, state: State) -> np.ndarray: ...
    def allows(self, state: State, token: int) -> bool: ...
    def advance(self, state: State, token: int) -> State: ...
    def is_accepting(self, state: State) -> bool: ...
    def is_finished(self, state: State) -> bool: ...
    def forced(self, state: State) -> Sequence[int]: ...
    def forced_bytes(self, state: State) -> bytes: ...
    def allowed_tokens(self, state: State) -> np.ndarray: ...


class Node:
    """A place in a text where the next token is to be drawn.

    Attributes:
        logits: floating point [V] of the model, then of each companion (a second model or prompt); empty
        where     they are elsewhere.
        prompt_length: tokens of the prompt at the head of `text`.
        automaton, state: the constraint and where it stands, or None.
        remaining: tokens that may still be written, the next one included.
        seed, sequence: the key of the randomness, with `position`.
        depth: drafted tokens between the committed text and this node.
    """

    __slots__ = (
        "_base",
        "_path",
        "automaton",
        "depth",
        "logits",
        "prompt_length",
        "remaining",
        "seed",
        "sequence",
        "state",
    )

    def __init__(
        self,
        logits: tuple[np.ndarray, ...],
        base: Sequence[int],
        path: Sequence[int] = (),
        prompt_length: int = 0,
        automaton: Any = None,
        state: State | None = None,
        remaining: int = 1 << 30,
        seed: int = 0,
        sequence: int = 0,
    ) -> None:
        self.logits, self._base, self._path = logits, base, path
        self.prompt_length, self.automaton, self.state = prompt_length, automaton, state
        self.remaining, self.seed, self.sequence, self.depth = remaining, seed, sequence, len(path)

    @property
    def position(self) -> int:
        """Absolute position of the token to be drawn, the prompt's tokens counted."""
        return len(self._base) + len(self._path)

    @property
    def text(self) -> list[int]:
        """All tokens before the node: prompt, output, drafted path."""
        return [*self._base, *self._path]

    @property
    def output(self) -> list[int]:
        """The tokens before the node without the prompt."""
        return [*self._base[self.prompt_length :], *self._path]

    def allowed(self, size: int) -> np.ndarray:
        """bool [size] of the constraint's mask here."""
        return mask_bits(self.automaton.mask(self.state), size)

    def uniform(self, stream: int = 0) -> float:
        """The number in [0, 1) that belongs to (seed, sequence, position)."""
        return uniform(self.seed, self.sequence, self.position, stream)


class Sampler(Protocol):
    """Draws the next token at a node; the same node always gives the same draw."""

    def draw(self, node: Node) -> int:
        """A token id."""
        ...

    def distribution(self, node: Node) -> np.ndarray:
        """float64 [V], sums to one: the distribution that `draw` draws from."""
        ...
