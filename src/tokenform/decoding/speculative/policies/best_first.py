"""The n nodes most likely to be committed.

Invariant: a node's probability is at most its parent's, so the n best form a tree.
Source: Wang et al. 2024 (OPT-Tree); Xiong et al. 2024 (DySpec).
"""

from __future__ import annotations

from ..drafters.base import Budget
from ..tree import DraftTree
from .account import Account
from .base import best_first, chances
from .fixed import Fixed


class BestFirst(Fixed):
    """Args:
    nodes: nodes that are scored.
    wide: how many times as many are asked for.
    """

    def __init__(self, nodes: int = 32, wide: int = 3, depth: int | None = None) -> None:
        super().__init__(nodes, depth)
        self.wide = wide

    def budget(self, active: int, account: Account | None = None) -> Budget:
        budget = super().budget(active)
        budget.nodes *= self.wide
        return budget

    def kept(self, tree: DraftTree) -> list[bool]:
        kept = set(best_first(chances(tree))[: self.nodes])
        return [node in kept for node in range(len(tree))]
