"""The protocol of mixtures.

Invariant: a mixture never looks outside of its node, and brings nothing from the device to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from tokenform.decoding.speculative.node import Node


class Mixture(Protocol):
    """Makes one row of scores of the model's and its companions' logits.

    Attributes:
        companions: how many rows beside the model's own it needs.
    """

    companions: int

    def __call__(self, logits: Sequence[torch.Tensor], node: Node) -> torch.Tensor:
        """(1 + companions) x [V] -> float64 [V], log-probabilities up to a constant; not one of the
        arguments.
        """
        ...


def log_distribution(row: torch.Tensor) -> torch.Tensor:
    """float64 [V], normalised log-probabilities of logits [V]."""
    return torch.log_softmax(torch.as_tensor(row).double(), -1)
