"""Recursive rejection over siblings that were drawn without replacement.

Children in order: x_j is accepted with min(1, p(x_j) / q_j(x_j)); else p becomes norm[p - q_j]+
and q_{j+1} is q_j without x_j, renormalised.  After the last child the token is drawn from p.
Source: Jeon et al. 2024 (Recursive speculative decoding), algorithm 2; Chen et al. 2024 (Sequoia).
Rejected: siblings drawn with replacement (they accept less; k-SEQ serves those).
"""

from __future__ import annotations

from .siblings import SiblingRule


class Recursive(SiblingRule):
    """Top-down over a tree whose siblings are distinct draws."""
