"""Token verification of a drawn chain.

x is accepted with min(1, p(x) / q(x)); at the first rejection the token is drawn from
norm[p - q]+; after the last acceptance one more from p.
Only the first drawn path of a tree is looked at.
Source: Leviathan et al. 2023, algorithm 1; Chen et al. 2023, theorem 1.
"""

from __future__ import annotations

from ..tree import ROOT, DraftTree
from .base import Choice, TargetAtNodes, draft_law, positive, residual


class TokenRule:
    """Speculative sampling, token by token."""

    drawn = True

    def verify(self, tree: DraftTree, target: TargetAtNodes, choice: Choice) -> list[int]:
        tokens: list[int] = []
        node = ROOT
        while kids := tree.children(node):
            x = tree.tokens[kids[0]]
            p, q = target.law(node), draft_law(tree, node)
            if not choice.accept(p[x] / q[x]):
                tokens.append(choice.draw(residual(positive(p - q), p)))
                return tokens
            tokens.append(x)
            node = kids[0]
        tokens.append(choice.draw(target.law(node)))
        return tokens
