"""Stops where the probability that the whole path is accepted falls below a threshold.

Source: Huang et al. 2024 (SpecDec++): stop when the chance of at least one rejection exceeds
a threshold, here 1 - `threshold`.
"""

from __future__ import annotations

from .confidence import Confidence


class Cumulative(Confidence):
    """Args:
    threshold: least probability of a node's path.
    nodes, depth: as for `Fixed`.
    """

    def __init__(self, threshold: float = 0.3, nodes: int = 32, depth: int | None = None) -> None:
        super().__init__(threshold, nodes, depth)

    @staticmethod
    def judged(own: float, path: float) -> float:
        return path
