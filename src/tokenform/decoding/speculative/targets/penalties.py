"""Penalties on tokens that the text has already.

Invariant: they depend on the node's own path, so a drafted repetition counts.
Source: Keskar et al. 2019 (repetition, section 4.1); frequency and presence as in common
serving interfaces: score - frequency x count - presence x [count > 0].
"""

from __future__ import annotations

import numpy as np

from tokenform.errors import OptionError

from ..node import Node


class Penalties:
    """Args:
    repetition: positive scores are divided, negative ones multiplied by it; 1 is off.
    frequency, presence: subtracted per occurrence and once.
    prompt: whether the prompt's tokens count for `repetition` (the others never count them).
    """

    def __init__(
        self, repetition: float = 1.0, frequency: float = 0.0, presence: float = 0.0, prompt: bool = True
    ) -> None:
        if not repetition > 0:
            raise OptionError(f"the repetition penalty is above 0, not {repetition}")
        self.repetition, self.frequency, self.presence, self.prompt = repetition, frequency, presence, prompt

    def __call__(self, scores: np.ndarray, node: Node) -> np.ndarray:
        if self.repetition != 1.0:
            seen = np.unique(np.asarray(node.text if self.prompt else node.output, np.int64))
            old = scores[seen]
            scores[seen] = np.where(old > 0, old / self.repetition, old * self.repetition)
        if self.frequency or self.presence:
            tokens, counts = np.unique(np.asarray(node.output, np.int64), return_counts=True)
            scores[tokens] -= self.frequency * counts + self.presence
        return scores
