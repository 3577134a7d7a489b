"""Top-k, top-p and min-p, in this order, each on the distribution that the one before it left.

Purpose: the one rule of truncation.  Each of the three keeps the likeliest tokens, so all of them together
are one
threshold: the least score that stays.
Invariant: the likeliest token stays; tokens of equal score stay or go together, so the distribution is a
function of the scores, whatever the ids.
  top-k  a token stays if fewer than k tokens are likelier,
  top-p  if the tokens likelier than it have less than top_p of the mass that top-k left,
  min-p  if it has at least min_p times the probability of the likeliest.
Complexity: `threshold` sorts where top-p is on; `row_threshold` looks for it in a histogram and by
halving there, O(V) on the average.
Source: Fan et al. 2018 (top-k), Holtzman et al. 2020 (top-p), Nguyen et al. 2024 (min-p).
Rejected: ties kept by the smaller id (in bfloat16 they are common, and ids say nothing).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tokenform.errors import OptionError

_NEVER = float("-inf")
_MANY = 4096  # scores from which on the one that is looked for is first looked for among parts of them
_PARTS, _REACH = 4096, 40.0  # so many below the largest, as wide as this together; the last has the rest


def check_numbers(**numbers: Any) -> None:
    """Refuses, by name, what is no number (a text of one, None)."""
    for name, value in numbers.items():
        if not hasattr(value, "__float__"):
            raise OptionError(f"{name}={value!r} is not possible; give a number, not {type(value).__name__}.")


@dataclass(frozen=True)
class Truncation:
    """Attributes:
    top_k: keep the k likeliest tokens; None keeps all.
    top_p: keep the likeliest tokens until their mass reaches top_p; 1 keeps all.
    min_p: drop tokens below min_p times the largest probability; 0 keeps all.
    """

    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        if self.top_k is not None and not hasattr(self.top_k, "__index__"):
            raise OptionError(f"top_k={self.top_k!r} is not possible; give a whole number, or None.")
        check_numbers(top_p=self.top_p, min_p=self.min_p)
        if self.top_k is not None and self.top_k < 1:
            raise OptionError(f"top_k={self.top_k} is not possible; give at least 1, or None for all tokens.")
        if not 0 < self.top_p <= 1:
            raise OptionError(f"top_p={self.top_p} is not possible; give a number above 0 and at most 1.")
        if not 0 <= self.min_p <= 1:
            raise OptionError(f"min_p={self.min_p} is not possible; give a number from 0 to 1.")

    @property
    def off(self) -> bool:
        """Whether every token stays."""
        return self.top_k is None and self.top_p == 1 and self.min_p == 0

    def threshold(self, scores: torch.Tensor) -> torch.Tensor:
        """The least score that stays in each row.

        Args:
            scores: floating point [..., V], log-probabilities up to a constant; -inf is no token.
        Returns:
            [..., 1] of the same dtype; nothing is brought to the host.
        """
        top = scores.amax(-1, keepdim=True)
        least = torch.full_like(top, _NEVER)
        if self.top_k is not None and self.top_k < scores.shape[-1]:
            least = scores.topk(self.top_k, -1).values[..., -1:]
        if self.top_p < 1:
            ranked = scores.sort(-1, descending=True).values
            mass = ranked.sub(top).exp_().masked_fill_(ranked < least, 0.0)
            before = mass.cumsum(-1) - mass
            going = before >= self.top_p * mass.sum(-1, keepdim=True)
            least = torch.maximum(least, ranked.masked_fill_(going, math.inf).amin(-1, keepdim=True))
        if self.min_p > 0:
            least = torch.maximum(least, top + math.log(self.min_p))
        return least

    def row_threshold(self, scores: np.ndarray) -> float:
        """`threshold` of one row, float64 [V], on the host; without sorting it."""
        top, least = float(scores.max()), _NEVER
        if self.top_k is not None and self.top_k < len(scores):
            least = float(np.partition(scores, len(scores) - self.top_k)[len(scores) - self.top_k])
        if self.top_p < 1:
            kept = scores[scores >= least] if least > _NEVER else scores
            least = max(least, _nucleus(kept, np.exp(kept - top), self.top_p))
        return max(least, top + math.log(self.min_p)) if self.min_p > 0 else least


def _nucleus(scores: np.ndarray, mass: np.ndarray, share: float) -> float:
    """The least score such that the likelier ones have less than this share of the mass."""
    wanted, above = share * float(mass.sum()), 0.0
    if len(scores) > _MANY:
        high = float(scores.max())
        part = ((np.maximum(scores, high - _REACH) - high) * (-_PARTS / _REACH)).astype(np.intp)
        held = np.cumsum(np.bincount(part, mass, _PARTS + 1))  # from the likeliest down
        place = min(int(np.searchsorted(held, wanted)), _PARTS)
        above = float(held[place - 1]) if place else 0.0
        inside = part == place
        scores, mass = scores[inside], mass[inside]
    while True:
        pivot = scores[len(scores) // 2]
        higher = scores > pivot
        over = above + float(mass[higher].sum())
        if over >= wanted:
            scores, mass = scores[higher], mass[higher]
            continue
        lower = scores < pivot
        above = over + float(mass[~higher & ~lower].sum())
        if above >= wanted or not lower.any():
            return float(pivot)
        scores, mass = scores[lower], mass[lower]
