"""Verification: which part of a draft tree is kept, and which token follows it.

Purpose: a verifier turns (tree, target law at its nodes, randomness) into committed tokens
whose law is exactly the target's.
Notation, in all files: p the target law at a node, q the law that the node's children were
drawn from, [x]+ the positive part, norm[.] normalisation.
Invariant: at least one token is returned: the accepted path and one token more.
Randomness comes from a `Choice`, so that a test can enumerate every outcome with its
probability; nothing else in a verifier is random.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tokenform.errors import DrafterError

from ..tree import DraftTree


class TargetAtNodes(Protocol):
    """The target at the nodes of one tree."""

    def law(self, node: int) -> np.ndarray:
        """p at the node (-1: the root), float64 [V], sums to one."""
        ...

    def draw(self, node: int) -> int:
        """The sampler's own draw at the node."""
        ...


class Choice(Protocol):
    """A source of randomness."""

    def accept(self, probability: float) -> bool:
        """True with this probability (values outside of [0, 1] are clipped)."""
        ...

    def draw(self, law: np.ndarray) -> int:
        """An index drawn by the law, which need not be normalised."""
        ...


class Verifier(Protocol):
    """One rule of acceptance.

    Attributes:
        drawn: whether the rule needs the laws that the drafts were drawn from.
    """

    drawn: bool

    def verify(self, tree: DraftTree, target: TargetAtNodes, choice: Choice) -> list[int]:
        """The committed tokens: the accepted path, then one more."""
        ...


def draft_law(tree: DraftTree, node: int) -> np.ndarray:
    """q at a node.

    Raises:
        DrafterError: the children of the node were not drawn.
    """
    try:
        return tree.laws[node]
    except KeyError:
        raise DrafterError(
            "this verifier needs drafts that were drawn from a law; for those that are looked up"
            " use SampleAndMatch"
        ) from None


def positive(law: np.ndarray) -> np.ndarray:
    """[x]+ elementwise."""
    part: np.ndarray = np.maximum(law, 0.0)
    return part


def residual(rest: np.ndarray, fallback: np.ndarray) -> np.ndarray:
    """norm[rest]; the fallback where rounding has left nothing (the case has probability 0)."""
    total = float(rest.sum())
    if total <= 0:
        return fallback
    normal: np.ndarray = rest / total
    return normal
