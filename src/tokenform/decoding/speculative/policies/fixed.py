"""A constant budget."""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.errors import OptionError

from ..drafters.base import Budget
from ..tree import DraftTree
from .account import Account


class Fixed:
    """Args:
    nodes: most nodes of a tree.
    depth: most levels; None for any.
    """

    def __init__(self, nodes: int = 32, depth: int | None = None) -> None:
        if nodes < 0:
            raise OptionError(f"a budget is at least 0 nodes, not {nodes}")
        self.nodes, self.depth = nodes, depth

    def budget(self, active: int, account: Account | None = None) -> Budget:
        return Budget(self.nodes) if self.depth is None else Budget(self.nodes, self.depth)

    def shape(
        self, trees: Sequence[DraftTree], padding: float = 1.0, accounts: Sequence[Account] = ()
    ) -> list[list[bool]]:
        return [self.kept(tree) for tree in trees]

    def kept(self, tree: DraftTree) -> list[bool]:
        """Which nodes of one tree to score."""
        return [True] * len(tree)

    def observe(self, tokens: float, seconds: float, drafting: float = 0.0) -> None:
        return None
