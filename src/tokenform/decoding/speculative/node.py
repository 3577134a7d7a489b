"""A place in a text at which a token is drawn.

Purpose: the seam between the backbone and the drawers, which can't tell a committed node from a drafted one.
Invariant: a node's distribution is a function of its logits, its text, its state and the tokens that remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenform.engine import State
from tokenform.engine.packed import mask_bits


@dataclass(slots=True, eq=False)
class Node:
    """A place in a text where the next token is to be drawn.

    Attributes:
        base, path: the committed text, and drafted tokens after it.
        prompt_length: tokens of the prompt at the head of `text`.
        automaton, state: the constraint and where it stands, or None.
        remaining: tokens that may still be written, the next one included.
        seed, sequence: the key of the randomness, with `position`.
        forced: the next token of a text that the constraint forces; None where it is drawn.
        without: tokens that are excluded although the constraint allows them.

    """

    base: Sequence[int]
    path: Sequence[int] = ()
    prompt_length: int = 0
    automaton: Any = None
    state: State | None = None
    remaining: int = 1 << 30
    seed: int = 0
    sequence: int = 0
    forced: int | None = None
    without: tuple[int, ...] = ()

    @property
    def position(self) -> int:
        """Absolute position of the token to be drawn, the prompt's tokens counted."""
        return len(self.base) + len(self.path)

    @property
    def text(self) -> list[int]:
        """All tokens before the node: prompt, output, drafted path."""
        return [*self.base, *self.path]

    @property
    def output(self) -> list[int]:
        """The tokens before the node without the prompt."""
        return [*self.base[self.prompt_length :], *self.path]

    def allowed(self, size: int) -> np.ndarray:
        """bool [size] of the constraint's mask here."""
        return mask_bits(self.automaton.mask(self.state), size)
