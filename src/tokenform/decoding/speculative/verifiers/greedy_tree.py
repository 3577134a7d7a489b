"""Greedy tree: follow the best token of each node while it is drafted.

For greedy targets only, where it is sample-and-match without a draw.
Source: Miao et al. 2024 (SpecInfer), VerifyGreedy.
"""

from __future__ import annotations

import numpy as np

from tokenform.errors import OptionError

from ..tree import ROOT, DraftTree
from .base import Choice, TargetAtNodes


class GreedyTree:
    """Raises OptionError if the target's distribution is no point mass."""

    drawn = False

    def verify(self, tree: DraftTree, target: TargetAtNodes, choice: Choice) -> list[int]:
        tokens: list[int] = []
        node: int | None = ROOT
        while node is not None:
            distribution = target.distribution(node)
            token = int(np.argmax(distribution))
            if distribution[token] < 1 - 1e-9:
                raise OptionError("GreedyTree verifies greedy targets alone; use SampleAndMatch to sample")
            tokens.append(token)
            node = tree.child(node, token)
        return tokens
