"""Leaving out layers of a model for the length of a block.

Purpose: a model drafts for itself with some of its layers (Zhang et al. 2024, Draft &
Verify).  Keys and values of the layers that run go to the same cache.
Invariant: after the block the model is as it was, also when the block raises.
Rejected: a shortened list of layers (models that choose the mask by a layer's number
would choose another layer's).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tokenform.errors import DrafterError


class _Identity(torch.nn.Module):
    """Stands for a layer that is left out."""

    def forward(self, hidden_states: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        return hidden_states


def decoder_layers(model: Any) -> torch.nn.ModuleList:
    """The list of the model's decoder layers.

    Raises:
        DrafterError: the model keeps its layers where this does not find them.
    """
    for holder in (getattr(model, "model", None), getattr(model, "transformer", None), model):
        for name in ("layers", "h"):
            layers = getattr(holder, name, None)
            if isinstance(layers, torch.nn.ModuleList) and len(layers):
                return layers
    raise DrafterError(f"{type(model).__name__} has no list of layers to skip; use another drafter")


@contextmanager
def skipped(model: Any, skip: frozenset[int]) -> Iterator[None]:
    """Runs the block with the layers of these numbers left out."""
    if not skip:
        yield
        return
    layers = decoder_layers(model)
    held = {i: layers[i] for i in skip}
    try:
        for i in skip:
            layers[i] = _Identity()
        yield
    finally:
        for i, layer in held.items():
            layers[i] = layer
