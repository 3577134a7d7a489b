"""Token verification of a drawn chain.

x is accepted with min(1, p(x) / q(x)); at the first rejection the token is drawn from
norm[p - q]+; after the last acceptance one more from p.
Only the first drawn path of a tree is looked at.
Source: Leviathan et al. 2023, algorithm 1; Chen et al. 2023, theorem 1.
"""

from __future__ import annotations

from .siblings import SiblingRule


class TokenRule(SiblingRule):
    """Speculative sampling, token by token."""

    most = 1
