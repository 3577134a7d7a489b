"""How many threads of the processor run a pass.

Purpose: a pass of a small model is some sixty parallel regions of some microseconds, and at the end of each
the threads wait for the last one.  One thread takes half the time (the built-in model, two cores); beside
other busy processes, where a thread that is waited for may be none of those that run, a sixtieth.
Invariant: the calling thread alone is limited, and within a pass alone: OpenMP's setting belongs to a thread.
Complexity: 4 microseconds a pass.
Rejected: `torch.set_num_threads`: what other threads start meanwhile would keep the limit for good.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache, partial
from typing import Any
from weakref import WeakKeyDictionary

from .facts import device_of

SMALL = 32 << 20  # bytes of weights, which a core reads in some milliseconds
Limit = Callable[[], AbstractContextManager[Any]]
_limits: WeakKeyDictionary[Any, Limit] = WeakKeyDictionary()


def thread_limit(model: Any) -> Limit:
    """What a pass of the model runs in: a limit to one thread for small models on the processor.

    Args:
        model: any; one that doesn't tell its weights is not limited.
    """
    try:
        return _limits[model]
    except (KeyError, TypeError):  # or what no weak reference can be made to
        found = _limit(model)
    with suppress(TypeError):
        _limits[model] = found
    return found


def _limit(model: Any) -> Limit:
    parameters = getattr(model, "parameters", None)
    if not callable(parameters) or device_of(model).type != "cpu":
        return nullcontext
    size = sum(one.numel() * one.element_size() for one in parameters())
    controller = _openmp() if 0 < size <= SMALL else None
    return nullcontext if controller is None else partial(controller.limit, limits=1)


@cache
def _openmp() -> Any:
    """Controls the OpenMP libraries of the process; None where that can't be had."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController().select(user_api="openmp")
