"""The names by which a model takes and gives back its cache.

Purpose: `transformers` called it `past_key_values`, `cache_params` (Mamba) or `state` (RWKV) until 5.23 and
calls it `cache` from 5.24 on; code that is loaded with a model may do either.
Invariant: the name is read from the model's own `forward`, so no version is asked for.
"""

from __future__ import annotations

import inspect
from typing import Any

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
