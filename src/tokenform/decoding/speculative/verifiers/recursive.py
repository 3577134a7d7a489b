"""Recursive rejection over siblings that were drawn without replacement.

Children in order: x_j is accepted with min(1, p(x_j) / q_j(x_j)); else p becomes norm[p - q_j]+
and q_{j+1} is q_j without x_j, renormalised.  After the last child the token is drawn from p.
Source: Jeon et al. 2024 (Recursive speculative decoding), algorithm 2; Chen et al. 2024 (Sequoia).
Rejected: siblings drawn with replacement (they accept less; k-SEQ serves those).
"""

from __future__ import annotations

import numpy as np

from ..tree import ROOT, DraftTree
from .base import Choice, TargetAtNodes, draft_law, positive, residual


class Recursive:
    """Top-down over a tree whose siblings are distinct draws."""

    drawn = True

    def verify(self, tree: DraftTree, target: TargetAtNodes, choice: Choice) -> list[int]:
        tokens: list[int] = []
        node: int | None = ROOT
        while node is not None:
            p, below = target.law(node), None
            q = draft_law(tree, node) if tree.children(node) else p
            for child in tree.children(node):
                x = tree.tokens[child]
                if choice.accept(p[x] / q[x]):
                    below = child
                    break
                p, q = residual(positive(p - q), p), without(q, x)
            tokens.append(choice.draw(p) if below is None else tree.tokens[below])
            node = below
        return tokens


def without(q: np.ndarray, token: int) -> np.ndarray:
    """q given that the token is not drawn; all zeros if nothing else is left."""
    rest = q.copy()
    rest[token] = 0.0
    total = rest.sum()
    return rest / total if total > 0 else rest
