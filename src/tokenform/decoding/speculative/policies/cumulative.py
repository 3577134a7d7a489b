"""Stops where the probability that the whole path is accepted falls below a threshold.

Source: Huang et al. 2024 (SpecDec++): stop when the chance of at least one rejection exceeds
a threshold, here 1 - `threshold`.
"""

from __future__ import annotations

from ..drafters.base import Budget
from ..tree import DraftTree
from .base import chances
from .fixed import Fixed


class Cumulative(Fixed):
    """Args:
    threshold: least probability of a node's path.
    nodes, depth: as for `Fixed`.
    """

    def __init__(self, threshold: float = 0.3, nodes: int = 32, depth: int | None = None) -> None:
        super().__init__(nodes, depth)
        self.threshold = threshold

    def budget(self, active: int) -> Budget:
        budget = super().budget(active)
        budget.stop = lambda confidence, cumulative, seconds: cumulative < self.threshold
        return budget

    def kept(self, tree: DraftTree) -> list[bool]:
        return [c >= self.threshold for c in chances(tree)]
