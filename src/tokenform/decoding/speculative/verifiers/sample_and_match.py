"""Sample-and-match: the sampler draws at each node and goes on while the draw is drafted.

Exact for *any* sampler and any draft, drawn or looked up, since the draft decides nothing but
which distributions are known already.  With counter-based randomness the text is that of plain decoding.
Complexity: the distribution at the visited nodes alone.
Source: the point-mass case of speculative sampling (Leviathan et al. 2023), on trees.
"""

from __future__ import annotations

from ..tree import ROOT, DraftTree
from .base import Choice, TargetAtNodes


class SampleAndMatch:
    """The default."""

    drawn = False

    def verify(self, tree: DraftTree, target: TargetAtNodes, choice: Choice) -> list[int]:
        tokens: list[int] = []
        node: int | None = ROOT
        while node is not None:
            token = self._token(target, node)
            tokens.append(token)
            node = tree.child(node, token)
        return tokens

    def _token(self, target: TargetAtNodes, node: int) -> int:
        return target.draw(node)
