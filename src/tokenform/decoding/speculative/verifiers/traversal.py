"""Traversal verification of a drawn tree, from the leaves up.

Each node carries the chance a with which it may still be accepted, and its target p.  For its
children x in order: a' = min(1, a p(x) / q(x)) and the child's subtree is tried first; if it is
rejected, with S = sum [a p - q]+: a becomes S / (S + 1 - a), p becomes norm[a p - q]+ (of the old
a), and q goes on without x.  A node whose children are all rejected is accepted with its a, and
the next token is drawn from its p.
On a chain it is block verification; siblings are draws without replacement.
Source: Weng et al. 2025 (Traversal verification for speculative tree decoding), algorithm 1.
"""

from __future__ import annotations

from ..tree import ROOT, DraftTree
from .base import Choice, TargetAtNodes, draft_law, positive, residual
from .recursive import without


class Traversal:
    """A good default for drawn trees."""

    drawn = True

    def verify(self, tree: DraftTree, target: TargetAtNodes, choice: Choice) -> list[int]:
        tokens = self._visit(tree, ROOT, 1.0, target, choice)
        assert tokens is not None  # the root's chance is 1 throughout
        return tokens

    def _visit(
        self, tree: DraftTree, node: int, chance: float, target: TargetAtNodes, choice: Choice
    ) -> list[int] | None:
        """The committed tokens if the node is accepted, else None."""
        if chance <= 0:
            return None
        p = target.law(node)
        q = draft_law(tree, node) if tree.children(node) else p
        for child in tree.children(node):
            x = tree.tokens[child]
            taken = self._visit(tree, child, min(1.0, float(chance * p[x] / q[x])), target, choice)
            if taken is not None:
                return taken
            rest = positive(chance * p - q)
            total = float(rest.sum())
            p, q = residual(rest, p), without(q, x)
            chance = 1.0 if node == ROOT else (total / (total + 1 - chance) if total > 0 else 0.0)
        if node != ROOT and not choice.accept(chance):
            return None
        return [*tree.path(node), choice.draw(p)] if node >= 0 else [choice.draw(p)]
