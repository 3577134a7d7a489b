"""Length and shape of drafts.

Purpose: a policy says how many nodes may be drafted, when a drafter that pays for each token
should stop, and which nodes of the proposal are worth scoring.  Those here have constant budgets.
Invariant: a policy changes what is scored, never what is committed.  A node's probability is at most its
parent's, so the n best form a tree.
Source, for `BestFirst`: Wang et al. 2024 (OPT-Tree); Xiong et al. 2024 (DySpec).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tokenform.errors import OptionError

from ..drafters.base import Budget
from ..tree import DraftTree
from .account import Account


class Policy(Protocol):
    """One rule for the size of drafts; one object serves one run."""

    def budget(self, active: int, account: Account | None = None) -> Budget:
        """What may be drafted for one sequence, when `active` sequences share the pass.

        Args:
            account: of the sequence's text; None where nobody keeps one.
        """
        ...

    def shape(
        self, trees: Sequence[DraftTree], padding: float = 1.0, accounts: Sequence[Account] = ()
    ) -> list[list[bool]]:
        """Which nodes of a step's trees to score; what stands below one that is left out is left out too.

        Args:
            accounts: of the texts, in the order of the trees; none where nobody keeps them.
            padding: what a position that only pads a line to the longest costs beside a node that is scored.
        """
        ...

    def observe(self, tokens: float, seconds: float, drafting: float = 0.0) -> None:
        """A forward pass has taken `seconds`, and its drafts `drafting` seconds.

        Args:
            tokens: what it ran, its padding at what that costs beside a token.
        """
        ...


def best_first(chance: Sequence[float]) -> list[int]:
    """Nodes by their chances; the earlier of two equals, so parents come first."""
    return sorted(range(len(chance)), key=chance.__getitem__, reverse=True)


def chances(tree: DraftTree) -> list[float]:
    """The probability that each node is committed: the product of confidences on its path."""
    out: list[float] = []
    for parent, confidence in zip(tree.parents, tree.confidences, strict=True):
        out.append(confidence * (out[parent] if parent >= 0 else 1.0))
    return out


class Fixed:
    """A constant budget.

    Args:
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


class BestFirst(Fixed):
    """The n nodes most likely to be committed.

    Args:
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
