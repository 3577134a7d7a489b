"""Facts about a model, from its configuration, weights and `forward`: its cache argument, its costs, its
errors.

`transformers` called the cache `past_key_values`, `cache_params` (Mamba) or `state` (RWKV) until 5.23 and
calls it `cache` from 5.24 on; code that is loaded with a model may do either.
Invariant: the name is read from the model's own `forward`, so no version is checked.
"""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import torch

_padding: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
FAILURES = (
    TypeError,
    ValueError,
    RuntimeError,
    AttributeError,
    KeyError,
    IndexError,
    NotImplementedError,
)
"""The errors of a model that can't do what was tried."""
_KEYS_AND_VALUES = ("cache", "past_key_values")
_RECURRENT = ("cache_params", "state")
_TAKEN: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()
_SAID = ("can't allocate memory", "can't start new thread")
"""By torch on the CPU, and by Python."""


def device_of(model: Any) -> torch.device:
    """Where a model's first parameter is; the CPU for one without any."""
    parameter = first_parameter(model)
    return torch.device("cpu") if parameter is None else parameter.device


def text_config(model: Any) -> Any:
    """The configuration of the language model; None without one."""
    config = getattr(model, "config", None)
    named = getattr(config, "get_text_config", None)
    return config if named is None else named()


def first_parameter(model: Any) -> torch.Tensor | None:
    return next(iter(model.parameters()), None) if hasattr(model, "parameters") else None


def weight_bytes(model: Any) -> int:
    return sum(one.numel() * one.element_size() for one in model.parameters())


def padding_cost(model: Any) -> float:
    """The cost of a position without logits relative to one with them, by the weights in its path; measured
    once a model."""
    try:
        return _padding[model]
    except (KeyError, TypeError):  # or what no weak reference can be made to
        cost = _padding_cost(model)
    with suppress(TypeError):
        _padding[model] = cost
    return cost


def _padding_cost(model: Any) -> float:
    try:
        head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        return 1.0
    if head is None or embedding is None:
        return 1.0
    met = sum(one.numel() for one in head.parameters())
    apart = {id(one): one.numel() for part in (head, embedding) for one in part.parameters()}
    layers = sum(one.numel() for one in model.parameters()) - sum(apart.values())
    return float(layers / max(layers + met, 1))


def max_length(config: Any) -> int | None:
    """Positions of a learned table; rotary models stretch beyond what their config says."""
    learned = getattr(config, "n_positions", None)
    if (
        learned is None
        and getattr(config, "rope_parameters", None) is None
        and not hasattr(config, "rope_theta")
    ):
        learned = getattr(config, "max_position_embeddings", None)
    return int(learned) if learned else None


def out_of_memory(error: BaseException | None) -> bool:
    """Whether memory ran out, be it said by an error that another was made of (as compilers make them)."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or any(one in str(error) for one in _SAID):
            return True
        error = getattr(error, "inner_exception", None) or error.__cause__ or error.__context__
    return False


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
    """The arguments of a model's `forward`; cached."""
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
    """The tensors in an attribute of a layer."""
    parts = list(held.values()) if isinstance(held, dict) else held if isinstance(held, list) else [held]
    return [part for part in parts if isinstance(part, torch.Tensor)]


def differ(got: torch.Tensor, want: torch.Tensor) -> str:
    """By how much answers differ, or "".

    A wrong mask moves logits by a good part of their spread, rounding does not.
    Eager attention takes its softmax in float32 whatever the model's type, hence one bound.
    """
    error = float((got.double() - want.double()).abs().max())
    spread = float(want.double().std()) + 1e-30
    bound = 1e-3 if got.dtype in (torch.float32, torch.float64) else 0.1
    return "" if error <= bound * max(spread, 1e-3) else f"{error:.1e}"
