"""Temperature and truncation, applied to the model's distribution *before* any constraint sees it.

Purpose: p in every formula of this package is the distribution after these transforms; the target is defined
by it.
Invariant: a row stays normalised; what truncation keeps is decided in `decoding/truncation.py`, as for
`Local`.
Order: temperature, top-k, top-p, min-p.  Complexity: O(V) a row.
Rejected: truncating after the mask, as most servers do: a token's chance then depends on the constraint
twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokenform.decoding.aligned.protocols import Float
from tokenform.decoding.truncation import Truncation
from tokenform.errors import OptionError


@dataclass(frozen=True, slots=True)
class Transforms:
    """How the model's distribution is warped.

    Attributes:
        temperature: above 0; 1 leaves the distribution as it is.
        top_k: keep the k likeliest tokens; None keeps all.
        top_p: keep the likeliest tokens until their mass reaches top_p; 1 keeps all.
        min_p: drop tokens below min_p times the largest probability; 0 keeps all.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise OptionError(
                f"temperature is {self.temperature}; it must be above 0 (use Local for greedy decoding)"
            )
        assert self.truncation  # refuses what is not possible

    @property
    def truncation(self) -> Truncation:
        """What is left of the distribution."""
        return Truncation(self.top_k, self.top_p, self.min_p)

    @property
    def identity(self) -> bool:
        """True if nothing is changed."""
        return self == Transforms()

    def apply(self, logp: Float) -> Float:
        """The warped distribution: log-probabilities float64 `[n, V]` in and out; the input is not
        changed."""
        if self.identity:
            return logp
        warm = logp if self.temperature == 1.0 else _normalise(logp / self.temperature)
        kept = self.truncation
        if kept.off:
            return warm
        least = np.array([kept.row_threshold(row) for row in warm])
        return _normalise(np.where(warm < least[:, None], -np.inf, warm))


def _normalise(rows: Float) -> Float:
    """Along the last axis, of an array that is the caller's own."""
    rows -= rows.max(-1, keepdims=True)
    rows -= np.log(np.exp(rows).sum(-1, keepdims=True))
    return rows
