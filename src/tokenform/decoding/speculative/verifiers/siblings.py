"""Rejection over siblings that were drawn without replacement: two rules, and what they are of a chain.

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

from ..tree import ROOT, DraftTree
from .base import Choice, Coins, DrawnRule, Weights, normalised
from .forest import Forest


class SiblingRule(DrawnRule):
    """See the module's header.

    Attributes:
        paths: whether a node's chance is that of its whole path; then the text stops at the first node from
            the leaves up whose coin falls, else where from the root down none does.
        most: children of a node that are looked at; None for all.
    """

    paths = False
    most: int | None = None

    def weigh(self, forest: Forest, p: torch.Tensor, q: torch.Tensor) -> Weights:
        final, rest, roots = p.clone(), q.clone(), forest.roots
        chance = torch.ones(forest.rows, dtype=torch.float64, device=p.device)
        for _, _, siblings in forest.levels():
            for parents, children, tokens, distributions in siblings[: self.most]:
                here, drawn, at = final[parents], rest[distributions], tokens[:, None]
                held = chance[parents] if self.paths else torch.ones_like(chance[parents])
                ratio = (here.gather(1, at) / drawn.gather(1, at))[:, 0]
                chance[children] = (held * ratio).clamp(max=1.0)
                left = (held[:, None] * here - drawn).clamp_(min=0.0)
                total = left.sum(1)
                final[parents] = normalised(left, here)
                if self.paths:
                    remaining = torch.where(total > 0, total / (total + 1 - held), 0.0)
                    chance[parents] = torch.where(roots[parents], 1.0, remaining)
                without = drawn.scatter(1, at, 0.0)
                rest[distributions] = normalised(without, without)
        return Weights(chance, final, torch.zeros_like(chance))

    def stop(self, tree: DraftTree, coins: Coins, choice: Choice) -> int:
        accepted = _last_accepted if self.paths else _first_accepted
        return accepted(tree, coins, choice, self.most)


def _first_accepted(tree: DraftTree, coins: Coins, choice: Choice, most: int | None) -> int:
    """From the root down: the first child whose coin falls is gone to, until none does.

    Args:
        most: children of a node that are tried; None for all.
    """
    node = ROOT
    while True:
        kids = tree.children(node)[:most]
        below = next((kid for kid in kids if choice.accept(coins.chance[kid + 1])), None)
        if below is None:
            return node
        node = below


def _last_accepted(tree: DraftTree, coins: Coins, choice: Choice, most: int | None) -> int:
    """From the leaves up: the first node, after all that stand below and before it, whose coin falls."""

    def visit(node: int) -> int | None:
        for kid in tree.children(node)[:most]:
            found = visit(kid)
            if found is not None:
                return found
        return node if node == ROOT or choice.accept(coins.chance[node + 1]) else None

    found = visit(ROOT)
    assert found is not None  # the root needs no coin
    return found
