"""The target by brute force: every accepted token sequence with its measure.  For tests and for `evaluate
fidelity`.

Invariant: exact up to float64 rounding.  Complexity: one distribution for each live prefix; refuses beyond a
limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.protocols import Tokens
from tokenform.errors import LimitExceeded


@dataclass(frozen=True)
class ExactDistribution:
    """Every accepted sequence (EOS excluded) with log f(x)·Φ(x), and log Z."""

    log_measure: dict[Tokens, float]
    log_z: float

    @property
    def probabilities(self) -> dict[Tokens, float]:
        """The target π."""
        return {tokens: math.exp(value - self.log_z) for tokens, value in self.log_measure.items()}


def enumerate_target(problem: Problem, *, limit: int = 100_000, batch: int = 256) -> ExactDistribution:
    """Walks all accepted sequences breadth first.  Raises LimitExceeded beyond `limit` prefixes or
    sequences.
    """
    found: dict[Tokens, float] = {}
    level = [(problem.root(), 0.0)]
    visited = 0
    while level:
        following = []
        for first in range(0, len(level), batch):
            part = level[first : first + batch]
            for (prefix, above), distribution in zip(
                part, problem.distributions([prefix for prefix, _ in part]), strict=True
            ):
                for token, logf in zip(distribution.ids.tolist(), distribution.logf.tolist(), strict=True):
                    if token == problem.eos:
                        found[prefix.tokens] = above + logf
                    else:
                        following.append((problem.extend(prefix, token), above + logf))
            if visited + len(level) + len(following) > limit:
                raise LimitExceeded(
                    f"the constraint has more than {limit} prefixes under this budget; it can't be enumerated"
                )
        visited += len(level)
        level = following
    scores = problem.log_potential(list(found))
    measure = {
        tokens: value + float(score) for (tokens, value), score in zip(found.items(), scores, strict=True)
    }
    values = np.array(list(measure.values()))
    return ExactDistribution(measure, float(np.logaddexp.reduce(values)) if len(values) else -math.inf)


def total_variation(p: dict[Tokens, float], q: dict[Tokens, float]) -> float:
    """½ Σ |p - q| of two distributions."""
    return 0.5 * sum(abs(p.get(x, 0.0) - q.get(x, 0.0)) for x in {*p, *q})


def kl_divergence(p: dict[Tokens, float], q: dict[Tokens, float]) -> float:
    """KL(p‖q) in nats; inf where q is 0 and p is not."""
    total = 0.0
    for x, mass in p.items():
        if mass > 0:
            other = q.get(x, 0.0)
            if other == 0.0:
                return math.inf
            total += mass * math.log(mass / other)
    return total
