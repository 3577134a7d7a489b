"""Anchored decoding: the distribution nearest to the model's own within a KL radius of a safe model's.

Purpose: minimise KL(p || p_model) subject to KL(p || p_safe) <= radius at every token, so
a text of n tokens diverges from the safe model by at most n x radius nats.
Invariant: the solution is the geometric mixture p_w of weight w on the model, w in [0, 1] the
largest with KL(p_w || p_safe) <= radius (the Lagrangian of the problem; the divergence grows
with w, so bisection finds it).
Complexity: 60 steps of O(V), none of which asks the device for a number.
Source: the exponential-family projection (Csiszar 1975) behind anchored decoding.
Rejected: a linear mixture (its divergence has no closed direction of descent: it is not the
nearest distribution).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tokenform.decoding.speculative.node import Node
from tokenform.errors import OptionError

from .base import log_distribution

_LEAST = -1e30  # stands for log 0, so that no weight makes it a NaN


class Anchored:
    """Args:
    radius: largest divergence KL(p || p_safe) of a token, in nats.
    """

    companions = 1

    def __init__(self, radius: float) -> None:
        if radius < 0:
            raise OptionError(f"the radius is at least 0 nats, not {radius}")
        self.radius = radius

    def __call__(self, logits: Sequence[torch.Tensor], node: Node) -> torch.Tensor:
        own, safe = (log_distribution(row).clamp(min=_LEAST) for row in logits[:2])
        low, high = own.new_zeros(()), own.new_ones(())
        for _ in range(60):
            middle = (low + high) / 2
            inside = divergence(_mix(own, safe, middle), safe) <= self.radius
            low, high = torch.where(inside, middle, low), torch.where(inside, high, middle)
        return torch.where(divergence(own, safe) <= self.radius, own, _mix(own, safe, low))


def _mix(own: torch.Tensor, safe: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(weight * own + (1 - weight) * safe, -1)


def divergence(log_p: torch.Tensor, log_q: torch.Tensor) -> torch.Tensor:
    """KL(p || q) in nats of normalised log-probabilities [V]."""
    p = log_p.exp()
    return torch.where(p > 0, p * (log_p - log_q), 0.0).sum()
