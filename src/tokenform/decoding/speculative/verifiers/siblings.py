"""Rejection over siblings that were drawn without replacement: what two rules, and their chains, weigh.

Of a node's children x in order, each is judged by p(x) / q(x); where it is rejected, p becomes norm[a p - q]+
and q goes on without x.  The recursive rule has a = 1 throughout.  In the rule of whole paths, a is the
chance with which the node itself may still be accepted: a child begins with min(1, a p(x) / q(x)), and
with S = sum [a p - q]+ its rejection leaves the node with S / (S + 1 - a).
Invariant: that holds for the node's j-th child given that those before it were rejected, which is the only
case in which anybody asks; so all nodes can be weighed beforehand.
Complexity: O(V) a child, a few kernels a level and rank of child.
"""

from __future__ import annotations

import torch

from .base import Weights, normalised
from .forest import Forest


def weigh_siblings(
    forest: Forest, p: torch.Tensor, q: torch.Tensor, *, paths: bool, most: int | None = None
) -> Weights:
    """Arguments as of `DrawnRule.weigh`.

    Args:
        paths: whether a node's chance is that of its whole path.
        most: children of a node that are looked at; None for all.
    """
    final, rest, roots = p.clone(), q.clone(), forest.roots
    chance = torch.ones(forest.rows, dtype=torch.float64, device=p.device)
    for _, _, siblings in forest.levels():
        for parents, children, tokens, distributions in siblings[:most]:
            here, drawn, at = final[parents], rest[distributions], tokens[:, None]
            held = chance[parents] if paths else torch.ones_like(chance[parents])
            ratio = (here.gather(1, at) / drawn.gather(1, at))[:, 0]
            chance[children] = (held * ratio).clamp(max=1.0)
            left = (held[:, None] * here - drawn).clamp_(min=0.0)
            total = left.sum(1)
            final[parents] = normalised(left, here)
            if paths:
                remaining = torch.where(total > 0, total / (total + 1 - held), 0.0)
                chance[parents] = torch.where(roots[parents], 1.0, remaining)
            without = drawn.scatter(1, at, 0.0)
            rest[distributions] = normalised(without, without)
    return Weights(chance, final, torch.zeros_like(chance))
