"""A model without some of its layers, beside the model itself.

Purpose: a model drafts for itself with some of its layers (Zhang et al. 2024, Draft & Verify).
Invariant: the model is never touched, so other threads may run it meanwhile.  What is given back is a view:
modules of its own along the path to the list of layers; the parameters and all other modules are the model's.
Memory: some dictionaries of modules; no parameters.
Rejected: swapping the layers in the model for the length of a pass (another thread's pass then runs without
them); a shortened list of layers (models that choose the mask by a layer's number would choose another's).
"""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import torch

from tokenform.errors import DrafterError

_views: weakref.WeakKeyDictionary[Any, dict[frozenset[int], Any]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


class WatchedLayer(torch.nn.Module):
    """A layer, and how like what goes out is to what comes in: `alike`, the mean cosine."""

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer, self.alike = layer, 0.0

    def forward(self, hidden_states: torch.Tensor, *rest: Any, **named: Any) -> Any:
        found = self.layer(hidden_states, *rest, **named)
        after = found[0] if isinstance(found, tuple) else found
        self.alike = float(torch.cosine_similarity(hidden_states.double(), after.double(), dim=-1).mean())
        return found


class SkippedLayer(torch.nn.Module):
    """Stands for a layer that is left out."""

    def forward(self, hidden_states: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        return hidden_states


def decoder_layers(model: Any) -> torch.nn.ModuleList:
    """The list of the model's decoder layers.

    Raises:
        DrafterError: the model keeps its layers where this does not find them.
    """
    return _found(model)[1]


def without_layers(model: Any, skip: frozenset[int]) -> Any:
    """A view of the model in which these layers give back what they get; the model itself for none."""
    if not skip:
        return model
    with _lock:
        views = _views.setdefault(model, {})
        if skip not in views:
            layers = enumerate(decoder_layers(model))
            views[skip] = _view(model, [SkippedLayer() if i in skip else layer for i, layer in layers])
        return views[skip]


@torch.inference_mode()
def likeness(model: Any, text: Sequence[int]) -> list[float]:
    """How little each layer changes what passes through it on a text: cosines, one pass."""
    watched = [WatchedLayer(layer) for layer in decoder_layers(model)]
    device = next(model.parameters()).device
    _view(model, watched)(input_ids=torch.tensor([list(text)], device=device), use_cache=False)
    return [layer.alike for layer in watched]


def _view(model: Any, instead: Sequence[torch.nn.Module]) -> Any:
    path, layers = _found(model)
    kept = torch.nn.ModuleList(instead)
    kept.training = layers.training
    view = top = shallow(model)
    for name in path[:-1]:
        below = shallow(view._modules[name])
        view._modules[name] = below
        view = below
    view._modules[path[-1]] = kept
    return top


def shallow(module: Any) -> Any:
    """A module of the same class with the same parts, whose table of modules is its own."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    return twin


def _found(model: Any) -> tuple[tuple[str, ...], torch.nn.ModuleList]:
    """The names that lead to the list of decoder layers, and the list."""
    for holder in (("model",), ("transformer",), ()):
        inner = model
        for name in holder:
            inner = getattr(inner, name, None)
        for name in ("layers", "h"):
            layers = getattr(inner, name, None)
            if isinstance(layers, torch.nn.ModuleList) and len(layers):
                return (*holder, name), layers
    raise DrafterError(f"{type(model).__name__} has no list of layers to skip; use another drafter")
