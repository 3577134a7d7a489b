"""The target by brute force: every accepted token sequence with its measure, and distances to it.

Invariant: exact up to float64 rounding.  Complexity: one distribution for each live prefix; refuses beyond a
limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.protocols import Tokens
from tokenform.decoding.aligned.trie import Trie
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


def trie_distribution(problem: Problem, trie: Trie | None) -> dict[Tokens, float]:
    """The distribution of ASAp's next draw, for exact constraints: ∝ f·θ where the trie knows the prefix,
    else masked f.

    Without a trie this is the distribution of local masking (of paths that run into no dead end).
    """
    distribution: dict[Tokens, float] = {}
    stack = [(problem.root(), 0.0)]
    while stack:
        prefix, above = stack.pop()
        node = None if trie is None else trie.find(prefix.tokens)
        if node is None:
            step = problem.distributions([prefix])[0]
            ids, weights = step.ids, step.logf
        else:
            ids, weights = node.ids, node.log_weights()
        if len(ids) == 0 or weights.max() == -math.inf:
            continue
        chances = weights - np.logaddexp.reduce(weights)
        for token, chance in zip(ids.tolist(), chances.tolist(), strict=True):
            if chance == -math.inf:
                continue
            if token == problem.eos:
                distribution[prefix.tokens] = math.exp(above + chance)
            else:
                stack.append((problem.extend(prefix, token), above + chance))
    total = sum(distribution.values())  # below 1 by dead ends, after which the samplers start again
    return {x: p / total for x, p in distribution.items()}


def sampling_noise(distribution: Mapping[Tokens, float], count: int, repeats: int = 50) -> float:
    """Mean total variation between a distribution and `count` exact draws of it."""
    chances = np.array(list(distribution.values()))
    generator = np.random.default_rng(0)
    drawn = generator.multinomial(count, chances / chances.sum(), size=repeats) / count
    return float(0.5 * np.abs(drawn - chances).sum(1).mean())
