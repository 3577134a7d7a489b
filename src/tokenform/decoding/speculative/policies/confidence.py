"""Stops where the drafter's confidence in the next token falls below a threshold.

Source: Kim et al. 2023 (BiLD), the fallback rule; also "assistant confidence threshold".
"""

from __future__ import annotations

from ..drafters.base import Budget
from ..tree import DraftTree
from .fixed import Fixed


class Confidence(Fixed):
    """Args:
    threshold: least confidence of a node.
    nodes, depth: as for `Fixed`.
    """

    def __init__(self, threshold: float = 0.4, nodes: int = 32, depth: int | None = None) -> None:
        super().__init__(nodes, depth)
        self.threshold = threshold

    def budget(self, active: int) -> Budget:
        budget = super().budget(active)
        budget.stop = lambda confidence, cumulative, seconds: confidence < self.threshold
        return budget

    def kept(self, tree: DraftTree) -> list[bool]:
        return [c >= self.threshold for c in tree.confidences]
