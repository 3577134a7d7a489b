"""Stops where the drafter's confidence in the next token falls below a threshold.

Source: Kim et al. 2023 (BiLD), the fallback rule; also "assistant confidence threshold".
"""

from __future__ import annotations

from ..drafters.base import Budget
from ..tree import DraftTree
from .account import Account
from .base import chances
from .fixed import Fixed


class Confidence(Fixed):
    """Args:
    threshold: least confidence of a node.
    nodes, depth: as for `Fixed`.
    """

    def __init__(self, threshold: float = 0.4, nodes: int = 32, depth: int | None = None) -> None:
        super().__init__(nodes, depth)
        self.threshold = threshold

    def budget(self, active: int, account: Account | None = None) -> Budget:
        budget = super().budget(active)
        budget.stop = lambda own, path, seconds: self.judged(own, path) < self.threshold
        return budget

    def kept(self, tree: DraftTree) -> list[bool]:
        every = zip(tree.confidences, chances(tree), strict=True)
        return [self.judged(own, path) >= self.threshold for own, path in every]

    @staticmethod
    def judged(own: float, path: float) -> float:
        """What the threshold is for, of a node's own probability and its path's."""
        return own
