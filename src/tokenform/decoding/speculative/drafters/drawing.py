"""Drawing drafts from a distribution, in the three shapes that verifiers know.

Purpose: chains and independent paths (`draw_paths`), trees whose siblings are draws without
replacement (`draw_tree`).  Every distribution that was drawn from is kept in the tree.
Invariant: the tree is drawn by exactly the process that the verifiers assume.  All draws of a
level are asked for at once, so a model can give them in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..drafting import Drafting
from ..node_draws import Sample
from ..tree import ROOT, DraftTree

Draws = Callable[[DraftTree, Sequence[tuple[int, int]], bool], Drafting[list[Sample | None]]]
"""(tree so far, distinct nodes of one level with the number of draws at each, whether they are made without
replacement) -> the draws at each; None where nothing may follow.  Fewer where the distribution has no more
tokens.
"""


def draw_paths(draws: Draws, count: int, depth: int, source: str = "") -> Drafting[DraftTree]:
    """`count` independent paths of `depth` tokens, level by level; equal prefixes share their nodes."""
    tree = DraftTree()
    tree.paths = [[] for _ in range(count)]
    going = tree.paths
    for _ in range(depth):
        level: dict[int, list[list[int]]] = {}
        for path in going:
            level.setdefault(path[-1] if path else ROOT, []).append(path)
        wanted = [(node, len(paths)) for node, paths in level.items()]
        samples = (yield from draws(tree, wanted, False)) if wanted else []
        going = []
        for (node, paths), sample in zip(level.items(), samples, strict=True):
            if sample is not None:
                tree.distributions[node] = sample.distribution
                for path, token, chance in zip(paths, sample.tokens, sample.chances, strict=True):
                    path.append(tree.add(node, token, source, max(chance, 1e-6)))
                    going.append(path)
    return tree


def draw_tree(draws: Draws, widths: Sequence[int], source: str = "") -> Drafting[DraftTree]:
    """A tree with up to `widths[d]` children at each node of depth d, drawn without replacement."""
    tree, level = DraftTree(), [ROOT]
    for width in widths:
        samples = (yield from draws(tree, [(node, width) for node in level], True)) if level else []
        below = []
        for node, sample in zip(level, samples, strict=True):
            if sample is not None:
                tree.distributions[node] = sample.distribution
                for token, chance in zip(sample.tokens, sample.chances, strict=True):
                    below.append(tree.add(node, token, source, max(chance, 1e-6)))
        level = below
    return tree
