"""Top-k, top-p and min-p.

Invariant: the most likely token always stays; ties at a threshold are kept by the lower
id, so the law is a function of the scores.
Source: Holtzman et al. 2020 (top-p); Nguyen et al. 2024 (min-p).
"""

from __future__ import annotations

import numpy as np

from tokenform.errors import OptionError

from ..node import Node
from .base import softmax


class TopK:
    """Keeps the k best tokens."""

    def __init__(self, k: int) -> None:
        if k < 1:
            raise OptionError(f"top_k is at least 1, not {k}")
        self.k = k

    def __call__(self, scores: np.ndarray, node: Node) -> np.ndarray:
        if self.k < len(scores):
            scores[_order(scores)[self.k :]] = -np.inf
        return scores


class TopP:
    """Keeps the best tokens until their mass reaches p."""

    def __init__(self, p: float) -> None:
        if not 0 < p <= 1:
            raise OptionError(f"top_p is in (0, 1], not {p}")
        self.p = p

    def __call__(self, scores: np.ndarray, node: Node) -> np.ndarray:
        if self.p < 1:
            order = _order(scores)
            mass = np.cumsum(softmax(scores)[order])
            scores[order[int(np.searchsorted(mass, self.p)) + 1 :]] = -np.inf
        return scores


class MinP:
    """Keeps the tokens whose probability is at least `ratio` times the best one's."""

    def __init__(self, ratio: float) -> None:
        if not 0 <= ratio <= 1:
            raise OptionError(f"min_p is in [0, 1], not {ratio}")
        self.ratio = ratio

    def __call__(self, scores: np.ndarray, node: Node) -> np.ndarray:
        if self.ratio > 0:
            scores[scores < scores.max() + np.log(self.ratio)] = -np.inf
        return scores


def _order(scores: np.ndarray) -> np.ndarray:
    return np.argsort(-scores, kind="stable")
