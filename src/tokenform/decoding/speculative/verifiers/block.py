"""Block verification of a drawn chain x_1 .. x_n.

With r_0 = 1 and r_i = min(1, r_{i-1} p(x_i) / q(x_i)), where p and q are the distributions before x_i:
S_i = sum_x [r_i p(x | x_1..i) - q(x | x_1..i)]+, h_i = S_i / (S_i + 1 - r_i) for i < n, h_n = r_n.
The *largest* i whose own coin of probability h_i falls is kept; the next token is drawn from
norm[r_i p - q]+, after the whole block from p.  It accepts at least as much as the token rule,
and no rule for chains accepts more.
Source: Sun et al. 2024 (Block verification accelerates speculative decoding), algorithm 2.
Rejected: stopping at the first coin that does not fall (that is the token rule again).
"""

from __future__ import annotations

from .siblings import SiblingRule


class BlockRule(SiblingRule):
    """Accepts or rejects a chain as a whole; looks at the first drawn path of a tree."""

    paths, most = True, 1
