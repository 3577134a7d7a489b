"""Anchored decoding: the law nearest to the model's own within a KL radius of a safe model's.

Purpose: minimise KL(p || p_model) subject to KL(p || p_safe) <= radius at every token, so
a text of n tokens diverges from the safe model by at most n x radius nats.
Invariant: the solution is the geometric mixture p_w of weight w on the model, w in [0, 1] the
largest with KL(p_w || p_safe) <= radius (the Lagrangian of the problem; the divergence grows
with w, so bisection finds it).
Complexity: 60 steps of O(V).
Source: the exponential-family projection (Csiszar 1975) behind anchored decoding.
Rejected: a linear mixture (its divergence has no closed direction of descent: it is not the
nearest law).
"""

from __future__ import annotations

import numpy as np

from tokenform.errors import OptionError

from ..node import Node
from .base import log_softmax


class Anchored:
    """Args:
    radius: largest divergence KL(p || p_safe) of a token, in nats.
    """

    companions = 1

    def __init__(self, radius: float) -> None:
        if radius < 0:
            raise OptionError(f"the radius is at least 0 nats, not {radius}")
        self.radius = radius

    def __call__(self, logits: tuple[np.ndarray, ...], node: Node) -> np.ndarray:
        own, safe = log_softmax(logits[0]), log_softmax(logits[1])
        low, high = 0.0, 1.0
        if divergence(own, safe) <= self.radius:
            return own
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if divergence(_mix(own, safe, middle), safe) <= self.radius else (low, middle)
            )
        return _mix(own, safe, low)


def _mix(own: np.ndarray, safe: np.ndarray, weight: float) -> np.ndarray:
    if weight == 0.0:
        return safe.copy()
    return log_softmax(weight * own + (1 - weight) * safe)


def divergence(log_p: np.ndarray, log_q: np.ndarray) -> float:
    """KL(p || q) in nats of normalised log-probabilities [V]."""
    p = np.exp(log_p)
    on = p > 0
    return float((p[on] * (log_p[on] - log_q[on])).sum())
