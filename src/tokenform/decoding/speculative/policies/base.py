"""Length and shape of drafts.

Purpose: a policy says how many nodes may be drafted, when a drafter that pays for each token
should stop, and which nodes of the proposal are worth scoring.
Invariant: a policy changes what is scored, never what is committed, unless the drafts were
drawn from distributions: then it may only cut by what it knows before the draw (`depth`, `nodes`).
"""

from __future__ import annotations

from typing import Protocol

from ..drafters.base import Budget
from ..tree import DraftTree


class Policy(Protocol):
    """One rule for the size of drafts; one object serves one run."""

    def budget(self, active: int) -> Budget:
        """What may be drafted for one sequence, when `active` sequences share the pass."""
        ...

    def shape(self, tree: DraftTree) -> list[bool]:
        """Which nodes to score; what stands below a node that is left out is left out too."""
        ...

    def observe(self, tokens: int, seconds: float, drafting: float = 0.0) -> None:
        """A forward pass over `tokens` tokens has taken `seconds`, and its drafts `drafting` seconds."""
        ...


def chances(tree: DraftTree) -> list[float]:
    """The probability that each node is committed: the product of confidences on its path."""
    out: list[float] = []
    for parent, confidence in zip(tree.parents, tree.confidences, strict=True):
        out.append(confidence * (out[parent] if parent >= 0 else 1.0))
    return out
