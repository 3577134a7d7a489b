"""Block verification of a drawn chain x_1 .. x_n.

With r_0 = 1 and r_i = min(1, r_{i-1} p(x_i) / q(x_i)), where p and q are the laws before x_i:
S_i = sum_x [r_i p(x | x_1..i) - q(x | x_1..i)]+, h_i = S_i / (S_i + 1 - r_i) for i < n, h_n = r_n.
The *largest* i whose own coin of probability h_i falls is kept; the next token is drawn from
norm[r_i p - q]+, after the whole block from p.  It accepts at least as much as the token rule,
and no rule for chains accepts more.
Source: Sun et al. 2024 (Block verification accelerates speculative decoding), algorithm 2.
Rejected: stopping at the first coin that does not fall (that is the token rule again).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..tree import ROOT, DraftTree
from .base import Choice, TargetAtNodes, draft_law, positive, residual


class BlockRule:
    """Accepts or rejects a chain as a whole; looks at the first drawn path of a tree."""

    drawn = True

    def verify(self, tree: DraftTree, target: TargetAtNodes, choice: Choice) -> list[int]:
        path, node = [], ROOT
        while kids := tree.children(node):
            node = kids[0]
            path.append(node)
        laws = [draft_law(tree, n) for n in [ROOT, *path[:-1]]] if path else []
        return verify_block(tree, path, laws, target, choice)


def verify_block(
    tree: DraftTree, path: Sequence[int], laws: Sequence[np.ndarray], target: TargetAtNodes, choice: Choice
) -> list[int]:
    """Block verification of one path.

    Args:
        path: its nodes from the first level on.
        laws: q before each of them.
    """
    nodes, n = [ROOT, *path], len(path)
    kept, ratio, at_kept = 0, 1.0, 1.0
    for i in range(1, n + 1):
        x = tree.tokens[nodes[i]]
        ratio = min(1.0, ratio * float(target.law(nodes[i - 1])[x] / laws[i - 1][x]))
        if i == n:
            chance = ratio
        else:
            rest = float(positive(ratio * target.law(nodes[i]) - laws[i]).sum()) if ratio > 0 else 0.0
            chance = rest / (rest + 1 - ratio) if rest > 0 else 0.0
        if choice.accept(chance):
            kept, at_kept = i, ratio
    p = target.law(nodes[kept])
    law = p if kept == n else residual(positive(at_kept * p - laws[kept]), p)
    return [*(tree.tokens[node] for node in path[:kept]), choice.draw(law)]
