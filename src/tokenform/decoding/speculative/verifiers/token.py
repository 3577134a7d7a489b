"""Token verification of a drawn chain.

x is accepted with min(1, p(x) / q(x)); at the first rejection the token is drawn from
norm[p - q]+; after the last acceptance one more from p.
Only the first drawn path of a tree is looked at.
Source: Leviathan et al. 2023, algorithm 1; Chen et al. 2023, theorem 1.
"""

from __future__ import annotations

import torch

from ..tree import DraftTree
from .base import Choice, Coins, DrawnRule, Weights, first_accepted
from .forest import Forest
from .siblings import weigh_siblings


class TokenRule(DrawnRule):
    """Speculative sampling, token by token."""

    def weigh(self, forest: Forest, p: torch.Tensor, q: torch.Tensor) -> Weights:
        return weigh_siblings(forest, p, q, paths=False, most=1)

    def stop(self, tree: DraftTree, coins: Coins, choice: Choice) -> int:
        return first_accepted(tree, coins, choice, most=1)
