"""The target: what the model's logits are turned into before a token is drawn.

Purpose: every verifier and sampler asks a `Target` for the law p at a node; a transform
changes scores (log-probabilities up to a constant) and never looks outside of the node.
Invariant: p sums to one; tokens of score -inf have no mass; ties go to the lower id.
Complexity: O(V) a transform and node; only nodes that the walk visits are computed.
Rejected: transforms of whole batches (most nodes of a tree are never visited).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tokenform.errors import OptionError, SamplingError

from ..node import Node


class Transform(Protocol):
    """Changes the scores of a node."""

    def __call__(self, scores: np.ndarray, node: Node) -> np.ndarray:
        """float64 [V] -> float64 [V]; the argument may be overwritten."""
        ...


class Mixture(Protocol):
    """Makes one row of scores of the model's and its companions' logits."""

    companions: int

    def __call__(self, logits: tuple[np.ndarray, ...], node: Node) -> np.ndarray:
        """(1 + companions) x float64 [V] -> float64 [V], not one of the arguments."""
        ...


class Target:
    """A mixture, then transforms in the order given; greedy if it is to take the best token.

    Args:
        transforms: applied in order, for example `Penalties`, `Mask`, `Temperature`, `TopP`.
        mixture: of several models or prompts; None takes the model's own logits.
        greedy: the law is a point mass on the best token (temperature 0).
    """

    def __init__(
        self, transforms: Sequence[Transform] = (), mixture: Mixture | None = None, greedy: bool = False
    ) -> None:
        self.transforms, self.mixture, self.greedy = list(transforms), mixture, greedy

    @property
    def companions(self) -> int:
        """How many rows of logits beside the model's own it needs."""
        return self.mixture.companions if self.mixture is not None else 0

    def scores(self, node: Node) -> np.ndarray:
        """float64 [V], log-probabilities up to a constant.

        Raises:
            OptionError: companions are missing.
        """
        if len(node.logits) <= self.companions:
            raise OptionError(
                f"the target mixes {self.companions + 1} models or prompts, {len(node.logits)} are there"
            )
        scores = node.logits[0].copy() if self.mixture is None else self.mixture(node.logits, node)
        for transform in self.transforms:
            scores = transform(scores, node)
        return scores

    def law(self, node: Node) -> np.ndarray:
        """float64 [V], sums to one.

        Raises:
            SamplingError: no token has any mass.
        """
        scores = self.scores(node)
        if self.greedy:
            law = np.zeros(len(scores))
            law[int(np.argmax(scores))] = 1.0
            return law
        return softmax(scores)


def softmax(scores: np.ndarray) -> np.ndarray:
    """float64 [V] of scores up to a constant.

    Raises:
        SamplingError: every score is -inf, or one is NaN.
    """
    top = scores.max()
    if not np.isfinite(top):
        raise SamplingError("no token is left to draw: every score is -inf or one is NaN")
    law = np.exp(scores - top)
    total: np.ndarray = law / law.sum()
    return total


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """float64 [V], normalised log-probabilities."""
    top = scores.max()
    shifted: np.ndarray = scores - top
    shifted -= np.log(np.exp(shifted).sum())
    return shifted
