"""Verification: which part of a draft tree is kept, and which token follows it.

Purpose: a rule turns (trees, target distributions at their nodes, randomness) into committed tokens whose
distribution is exactly the target's.  Rules for drawn drafts do so in two halves: `weigh` makes of whole
distributions, on the device and for many trees at once, one number a node and the distribution of the token
that follows where the text stops there; `stop` needs those numbers and coins alone.
Notation, in all files: p the target distribution at a node, q the one that the node's children were
drawn from, [x]+ the positive part, norm[.] normalisation.
Invariant: the accepted path is followed by one token more.  `weigh` brings nothing to the host: what it says
of a node holds if the rule gets there, and nobody asks where it does not.
Randomness comes from a `Choice`, so that a test can enumerate every outcome with its
probability; nothing else in a verifier is random.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch

from tokenform.errors import DrafterError

from ..tree import ROOT, DraftTree
from .forest import Forest


class Choice(Protocol):
    """A source of randomness."""

    def accept(self, probability: float) -> bool:
        """True with this probability (values outside of [0, 1] are clipped)."""
        ...


class Weights(NamedTuple):
    """What `weigh` says of the R rows of a forest.

    Attributes:
        chance: float64 [R], the probability of the coin that decides about a row's node.
        final: float64 [R, V], the distribution of the next token if the text stops at the row.
        lean: float64 [R], by which siblings are told apart where a rule takes one of them; 0 where none does.
    """

    chance: torch.Tensor
    final: torch.Tensor
    lean: torch.Tensor


class Coins(NamedTuple):
    """`Weights` of one tree on the host; its root has number 0, node i has number i + 1."""

    chance: Sequence[float]
    lean: Sequence[float]


class DrawnRule:
    """Base of the rules for drawn drafts."""

    drawn = True
    """Whether the rule needs the distributions that the drafts were drawn from."""
    needs_paths = False
    """Whether the trees must be drawn as independent paths."""

    def weigh(self, forest: Forest, p: torch.Tensor, q: torch.Tensor) -> Weights:
        """Numbers and distributions of all rows.

        Args:
            p: float64 [R, V], the target's at each row.
            q: float64 [L, V], what children were drawn from; `forest.distributions` says where each row's is.
        """
        raise NotImplementedError

    def stop(self, tree: DraftTree, coins: Coins, choice: Choice) -> int:
        """The node at which the text stops; `ROOT` for none of the draft."""
        raise NotImplementedError

    def check(self, tree: DraftTree) -> None:
        """Refuses a tree that was not drawn as the rule needs it.

        Raises:
            DrafterError: the children of a node were looked up, or drawn in another way.
        """
        if any(node not in tree.distributions and tree.children(node) for node in range(ROOT, len(tree))):
            raise DrafterError(
                f"{type(self).__name__} needs drafts that were drawn from a distribution; for those that are "
                "looked up use SampleAndMatch"
            )
        if self.needs_paths and len(tree) and not tree.paths:
            raise DrafterError(
                f"{type(self).__name__} needs independently drawn paths; draft with paths instead of a tree"
            )


def normalised(rest: torch.Tensor, fallback: torch.Tensor) -> torch.Tensor:
    """norm[rest], row by row; the fallback where rounding has left nothing (the case has probability 0)."""
    total = rest.sum(-1, keepdim=True)
    return torch.where(total > 0, rest / total, fallback)
