"""Sample-and-match: the sampler draws at each node and goes on while the draw is drafted.

Exact for *any* sampler and any draft, drawn or looked up, since the draft decides nothing but
which distributions are known already.  With counter-based randomness the text is that of plain decoding.
Complexity: the distribution at the visited nodes alone.
Source: the point-mass case of speculative sampling (Leviathan et al. 2023), on trees.
"""

from __future__ import annotations

from collections.abc import Callable

from ..tree import ROOT, DraftTree


class SampleAndMatch:
    """The default."""

    drawn = False
    greedy = False
    """Whether samplers that are not greedy are refused."""

    @staticmethod
    def follow(tree: DraftTree, drawn: Callable[[int], int | None]) -> list[int]:
        """The committed tokens: what is drawn from the root down, as long as it is drafted.

        Args:
            drawn: the sampler's draw at a node; None where nothing follows.
        """
        tokens: list[int] = []
        node: int | None = ROOT
        while node is not None and (token := drawn(node)) is not None:
            tokens.append(token)
            node = tree.child(node, token)
        return tokens
