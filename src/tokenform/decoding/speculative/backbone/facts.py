"""What a model's configuration and weights say about it, and what running it may raise."""

from __future__ import annotations

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
"""What a model may raise that can't do what it was tried for."""
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


def padding_cost(model: Any) -> float:
    """What a position whose logits nobody wants costs beside one with them, by the weights it meets; as
    they were when the model was first looked at."""
    try:
        return _padding[model]
    except (KeyError, TypeError):  # or what no weak reference can be made to
        cost = _padding_cost(model)
    with suppress(TypeError):
        _padding[model] = cost
    return cost


def _padding_cost(model: Any) -> float:
    try:
        head, given = model.get_output_embeddings(), model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        return 1.0
    if head is None or given is None:
        return 1.0
    met = sum(one.numel() for one in head.parameters())
    apart = {id(one): one.numel() for part in (head, given) for one in part.parameters()}
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
