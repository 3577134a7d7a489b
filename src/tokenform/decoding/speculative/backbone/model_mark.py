"""A mark of a model as it is now, which changes when its weights, adapters or hooks do.

Purpose: results of a model may be reused only while the model is the same.
Detected: parameters and buffers that were replaced or written to (by their version, and some of their values,
since writing through `.data` keeps the version); adapters that are switched; hooks that are added or removed;
training mode.
Not detected: a hook whose own state changes, and code of a model that reads something else.
Complexity: some microseconds a module and parameter; one transfer a device.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

_SAMPLED = 16  # values of a tensor that are compared
_ADAPTERS = ("_active_adapter", "_disable_adapters", "merged_adapters", "scaling")
_PLAIN, _FLOATS = (torch.nn.Parameter, torch.Tensor), (torch.float32, torch.float16, torch.bfloat16)
_STRETCHED = ("dynamic", "longrope")  # rotary angles that depend on how long the text becomes


def model_mark(model: Any) -> Any:
    """Equal for equal models; None for one whose results can't be reused."""
    config = getattr(model, "config", None)
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    kinds = {str(v) for v in _leaves(rope)} if isinstance(rope, dict) else {str(rope)}
    if kinds & set(_STRETCHED) or not hasattr(model, "modules"):
        return None
    modules, seen, todo = list[Any](), {id(model)}, [model]
    while todo:  # `model.modules()`, without a generator a level
        modules.append(todo.pop())
        for part in modules[-1]._modules.values():
            if part is not None and id(part) not in seen:
                seen.add(id(part))
                todo.append(part)
    parts: list[Any] = [_modules_mark(modules)]
    samples: dict[Any, list[torch.Tensor]] = {}
    with torch.no_grad():
        for module in modules:
            for tensor in (*module._parameters.values(), *module._buffers.values()):
                if tensor is None:
                    continue
                parts.append((id(tensor), 0 if tensor.is_inference() else tensor._version))
                count = tensor.numel()
                if not count or tensor.device.type == "meta" or tensor.layout != torch.strided:
                    continue  # what has no values to look at, or is prepacked, and can't be written to
                if type(tensor) in _PLAIN and tensor.dtype in _FLOATS and tensor.is_contiguous():
                    step = max(1, count // _SAMPLED)
                    some = tensor.as_strided((min(_SAMPLED, -(-count // step)),), (step,))
                else:
                    some = _some(tensor.detach())
                samples.setdefault((some.device, some.dtype), []).append(some)
        values = [tuple(torch.cat(found).tolist()) for found in samples.values()]
    return tuple(parts), tuple(values)


def module_mark(model: Any) -> Any:
    """The modules' part of the mark: hooks, adapters, training mode; not the weights."""
    return _modules_mark(model.modules())


def _modules_mark(modules: Iterable[Any]) -> Any:
    parts: list[Any] = []
    for module in modules:
        own = vars(module)
        parts.append((id(module), module.training, *module._forward_hooks, *module._forward_pre_hooks))
        for name in _ADAPTERS:
            if name in own:
                parts.append(repr(own[name]))
    return tuple(parts)


def _some(tensor: torch.Tensor) -> torch.Tensor:
    """A few values, spread over the tensor, as float64."""
    flat = tensor.view(-1) if tensor.is_contiguous() else tensor[tuple([0] * (tensor.dim() - 1))].reshape(-1)
    return flat[:: max(1, len(flat) // _SAMPLED)][:_SAMPLED].double()


def _leaves(values: dict[str, Any]) -> list[Any]:
    return [leaf for v in values.values() for leaf in (_leaves(v) if isinstance(v, dict) else [v])]
