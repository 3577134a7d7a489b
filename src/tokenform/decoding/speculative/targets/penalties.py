"""Penalties on tokens that the text has already.

Invariant: they depend on the node's own path, so a drafted repetition counts.
Source: Keskar et al. 2019 (repetition, section 4.1); frequency and presence as in common
serving interfaces: score - frequency x count - presence x [count > 0].
"""

from __future__ import annotations

from collections import Counter

import torch

from tokenform.decoding.speculative.node import Node
from tokenform.errors import OptionError


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

    def __call__(self, scores: torch.Tensor, node: Node) -> torch.Tensor:
        """float64 [V] -> float64 [V]; the argument may be overwritten."""
        if self.repetition != 1.0:
            seen = torch.tensor(sorted(set(node.text if self.prompt else node.output)), dtype=torch.long)
            seen = seen.to(scores.device)
            old = scores[seen]
            scores[seen] = torch.where(old > 0, old / self.repetition, old * self.repetition)
        if self.frequency or self.presence:
            counts = Counter(node.output)
            tokens = torch.tensor(list(counts), dtype=torch.long).to(scores.device)
            often = torch.tensor(list(counts.values()), dtype=torch.float64).to(scores.device)
            scores[tokens] -= self.frequency * often + self.presence
        return scores
