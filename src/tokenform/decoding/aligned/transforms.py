"""Temperature and truncation, applied to the model's law *before* any constraint sees it.

Purpose: p in every formula of this package is the law after these transforms; the target is defined by it.
Invariant: a row stays normalised; ties at a threshold are kept by smaller id, so that the law is a function
of p.
Order: temperature, top-k, min-p, top-p.  Complexity: O(V), with one partial sort where top-k or top-p is on.
Source: Holtzman et al. 2020 (top-p), Nguyen et al. 2024 (min-p).
Rejected: truncating after the mask, as most servers do: a token's chance then depends on the constraint
twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokenform.decoding.aligned.protocols import Float
from tokenform.errors import OptionError


@dataclass(frozen=True, slots=True)
class Transforms:
    """How the model's law is warped.

    Attributes:
        temperature: above 0; 1 leaves the law as it is.
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
        if self.top_k is not None and self.top_k < 1:
            raise OptionError(f"top_k is {self.top_k}; it must be at least 1")
        if not 0 < self.top_p <= 1:
            raise OptionError(f"top_p is {self.top_p}; it must be in (0, 1]")
        if not 0 <= self.min_p <= 1:
            raise OptionError(f"min_p is {self.min_p}; it must be in [0, 1]")

    @property
    def identity(self) -> bool:
        """True if nothing is changed."""
        return self == Transforms()

    def apply(self, logp: Float) -> Float:
        """The warped law: log-probabilities float64 `[n, V]` in and out; the input is not changed."""
        if self.identity:
            return logp
        warm = logp if self.temperature == 1.0 else _normalise(logp / self.temperature)
        if self.top_k is None and self.top_p == 1.0 and self.min_p == 0.0:
            return warm
        return np.stack([self._truncated(row) for row in warm])

    def _truncated(self, row: Float) -> Float:
        out = row
        if self.top_k is not None and self.top_k < len(out):
            out = _keep(out, np.argsort(-out, kind="stable")[: self.top_k])
        if self.min_p > 0:
            out = _keep(out, np.flatnonzero(out >= out.max() + np.log(self.min_p)))
        if self.top_p < 1:
            order = np.argsort(-out, kind="stable")
            mass = np.cumsum(np.exp(out[order]))
            out = _keep(out, order[: int(np.searchsorted(mass, self.top_p)) + 1])
        return out


def _keep(row: Float, ids: np.ndarray) -> Float:
    kept = np.full_like(row, -np.inf)
    kept[ids] = row[ids]
    return _normalise(kept)


def _normalise(rows: Float) -> Float:
    """Along the last axis, of an array that is the caller's own."""
    rows -= rows.max(-1, keepdims=True)
    rows -= np.log(np.exp(rows).sum(-1, keepdims=True))
    return rows
