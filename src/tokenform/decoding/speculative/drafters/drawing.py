"""Drawing drafts from a law, in the three shapes that verifiers know.

Purpose: chains and independent paths (`draw_paths`), trees whose siblings are draws without
replacement (`draw_tree`).  Every law that was drawn from is kept in the tree.
Invariant: the tree is drawn by exactly the process that the verifiers assume.  All laws of a
level are asked for at once and before its draws, so a model can give them in one pass.
Randomness comes from a `Choice`, so that drawing and verifying can be enumerated together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..drafting import Drafting
from ..tree import ROOT, DraftTree
from ..verifiers.base import Choice

Laws = Callable[[DraftTree, Sequence[int]], Drafting[list[np.ndarray]]]
"""(tree so far, distinct nodes of one level) -> for each, float64 [V], the law of its children."""


def draw_paths(laws: Laws, count: int, depth: int, choice: Choice, source: str = "") -> Drafting[DraftTree]:
    """`count` independent paths of `depth` tokens, level by level; equal prefixes share their nodes."""
    tree = DraftTree()
    tree.paths = [[] for _ in range(count)]
    for _ in range(depth):
        level = list(dict.fromkeys(path[-1] if path else ROOT for path in tree.paths))
        tree.laws.update(zip(level, (yield from laws(tree, level)), strict=True))
        for path in tree.paths:
            node = path[-1] if path else ROOT
            q = tree.laws[node]
            x = choice.draw(q)
            path.append(tree.add(node, x, source, max(float(q[x]), 1e-6)))
    return tree


def draw_tree(laws: Laws, widths: Sequence[int], choice: Choice, source: str = "") -> Drafting[DraftTree]:
    """A tree with up to `widths[d]` children at each node of depth d, drawn without replacement."""
    tree, level = DraftTree(), [ROOT]
    for width in widths:
        tree.laws.update(zip(level, (yield from laws(tree, level)), strict=True))
        below = []
        for node in level:
            q = tree.laws[node]
            rest = q.copy()
            for _ in range(min(width, int(np.count_nonzero(q)))):
                x = choice.draw(rest)
                below.append(tree.add(node, x, source, max(float(q[x]), 1e-6)))
                rest[x] = 0.0
        level = below
    return tree
