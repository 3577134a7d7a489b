"""A model's own cache: the name by which it is taken and given back, and its rows.

Purpose: `transformers` called it `past_key_values`, `cache_params` (Mamba) or `state` (RWKV) until 5.23 and
calls it `cache` from 5.24 on; code that is loaded with a model may do either.
Invariant: the name is read from the model's own `forward`, so no version is asked for.
"""

from __future__ import annotations

import inspect
from typing import Any
from weakref import WeakKeyDictionary

import torch

_KEYS_AND_VALUES = ("cache", "past_key_values")
_RECURRENT = ("cache_params", "state")
_TAKEN: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()


def cache_name(model: Any, *, recurrent: bool = False) -> str | None:
    """The argument of a model's `forward` that takes its cache; the output's attribute has the same name.

    Args:
        model: called as Hugging Face models are.
        recurrent: look for names of states that are no keys and values too.
    Returns:
        None for a model that takes none.

    Example:
        >>> cache_name(lambda input_ids, past_key_values=None: None)
        'past_key_values'
    """
    accepted = taken_by(model)
    names = _KEYS_AND_VALUES + (_RECURRENT if recurrent else ())
    return next((name for name in names if name in accepted), None)


def taken_by(model: Any) -> frozenset[str]:
    """The arguments of a model's `forward`, which is looked at once."""
    forward = getattr(model, "forward", model)
    function = getattr(forward, "__func__", forward)
    try:
        known = _TAKEN.get(function)
        if known is None:
            known = _TAKEN[function] = frozenset(inspect.signature(forward).parameters)
    except TypeError:  # something that can't be referred to weakly
        known = frozenset(inspect.signature(forward).parameters)
    return known


def is_recurrent(cache: Any, name: str | None) -> bool:
    """Whether a cache, taken by this name, is made of recurrent states alone.

    What has gone into a state is not masked again: it would be read as the mask of the new tokens.
    """
    layers = getattr(cache, "layers", None)
    return name in _RECURRENT or (layers is not None and not any(hasattr(layer, "keys") for layer in layers))


def select_rows(cache: Any, rows: torch.Tensor) -> bool:
    """Keeps rows of the batch in a cache, in place.

    Args:
        cache: with a list of `layers`, as those of `transformers` have.
        rows: int64 [B], numbers of rows of the batch before.
    Returns:
        Whether every layer could; else the cache is of no use any more.
    """
    if not hasattr(cache, "layers"):
        return False
    for layer in cache.layers:
        # layers of recurrent states know beams alone, which are rows too
        select = getattr(layer, "batch_select_indices", None) or getattr(layer, "reorder_cache", None)
        if select is None:
            return False
        select(rows)
        held = (part for each in vars(layer).values() for part in tensors(each))
        if any(part.dim() > 1 and len(part) != len(rows) for part in held):  # some states were left out
            return False
    return True


def tensors(held: Any) -> list[torch.Tensor]:
    """The tensors that an attribute of a layer is, or holds."""
    parts = list(held.values()) if isinstance(held, dict) else held if isinstance(held, list) else [held]
    return [part for part in parts if isinstance(part, torch.Tensor)]
