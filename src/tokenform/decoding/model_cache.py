"""A model's own cache: the name by which it is taken and given back, and its rows.

Purpose: `transformers` called it `past_key_values`, `cache_params` (Mamba) or `state` (RWKV) until 5.23 and
calls it `cache` from 5.24 on; code that is loaded with a model may do either.
Invariant: the name is read from the model's own `forward`, so no version is asked for.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch

_KEYS_AND_VALUES = ("cache", "past_key_values")
_RECURRENT = ("cache_params", "state")


def cache_name(model: Any, *, recurrent: bool = False) -> str | None:
    """The argument of a model's `forward` that takes its cache; the output's attribute has the same name.

    Args:
        model: called as Hugging Face models are.
        recurrent: look for states that are no keys and values too.
    Returns:
        None for a model that takes none.

    Example:
        >>> cache_name(lambda input_ids, past_key_values=None: None)
        'past_key_values'
    """
    accepted = inspect.signature(getattr(model, "forward", model)).parameters
    names = _KEYS_AND_VALUES + (_RECURRENT if recurrent else ())
    return next((name for name in names if name in accepted), None)


def keeps_keys(cache: Any) -> bool:
    """Whether some layer of a cache keeps keys, which padding must be masked out of; else all are recurrent
    states, and a mask would be read as that of the new tokens."""
    return any(hasattr(layer, "keys") for layer in cache.layers)


def select_rows(cache: Any, rows: torch.Tensor) -> bool:
    """Leaves some rows of the batch in a cache, in place.

    Args:
        cache: with a list of `layers`, as those of `transformers` have.
        rows: int64 [B], numbers of rows of the batch before.
    Returns:
        Whether every layer could be cut; else the cache is of no use any more.
    """
    for layer in cache.layers:
        # layers of recurrent states know beams alone, which are rows too
        select = getattr(layer, "batch_select_indices", None) or getattr(layer, "reorder_cache", None)
        if select is None:
            return False
        select(rows)
        for held in vars(layer).values():
            parts = held.values() if isinstance(held, dict) else held if isinstance(held, list) else [held]
            if any(isinstance(p, torch.Tensor) and p.dim() > 1 and len(p) != len(rows) for p in parts):
                return False
    return True
