"""Drawing drafts from a law, in the three shapes that verifiers know.

Purpose: chains and independent paths (`draw_paths`), trees whose siblings are draws without
replacement (`draw_tree`).  Every law that was drawn from is kept in the tree.
Invariant: the tree is drawn by exactly the process that the verifiers assume.
Randomness comes from a `Choice`, so that drawing and verifying can be enumerated together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..tree import ROOT, DraftTree
from ..verifiers.base import Choice

Law = Callable[[Sequence[int]], np.ndarray]
"""Drafted path -> float64 [V], the law of its next token."""


def draw_paths(law: Law, count: int, depth: int, choice: Choice, source: str = "") -> DraftTree:
    """`count` independent paths of `depth` tokens; equal prefixes share their nodes."""
    tree = DraftTree()
    for _ in range(count):
        node, path = ROOT, []
        for _ in range(depth):
            node = _draw(tree, node, law, choice, source)
            path.append(node)
        tree.paths.append(path)
    return tree


def _draw(tree: DraftTree, node: int, law: Law, choice: Choice, source: str) -> int:
    q = tree.laws.get(node)
    if q is None:
        q = tree.laws[node] = law(tree.path(node) if node >= 0 else [])
    x = choice.draw(q)
    return tree.add(node, x, source, max(float(q[x]), 1e-6))


def draw_tree(law: Law, widths: Sequence[int], choice: Choice, source: str = "") -> DraftTree:
    """A tree with up to `widths[d]` children at each node of depth d, drawn without replacement."""
    tree, level = DraftTree(), [ROOT]
    for width in widths:
        below = []
        for node in level:
            q = tree.laws[node] = law(tree.path(node) if node >= 0 else [])
            rest = q.copy()
            for _ in range(min(width, int(np.count_nonzero(q)))):
                x = choice.draw(rest)
                below.append(tree.add(node, x, source, max(float(q[x]), 1e-6)))
                rest[x] = 0.0
        level = below
    return tree
