"""How many threads of the processor run a pass.

Purpose: at the end of each parallel region, a hundred times a pass, the threads wait for the last one.  Where
another process keeps a core busy, the last one does not run: a pass of SmolLM2-135M on two cores took 0.6 to
2.6 s with two threads, 0.03 with one (0.023 and 0.028 on a quiet machine).  A small model takes less time on
one thread anyway.
Invariant: the calling thread alone is limited, and within a pass alone: OpenMP's and MKL's settings belong to
a thread.
A step that takes longer than a core needs to read the weights is compared with a step on one thread, and the
slower way is not tried again for a while, twice as long each time.
Complexity: some microseconds a pass.
Rejected: `torch.set_num_threads`: what other threads start meanwhile would keep the limit for good;
OMP_WAIT_POLICY=PASSIVE: a process sets it before it loads PyTorch, and a quiet machine's pass takes 39 ms.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch

from .facts import device_of, weight_bytes

if TYPE_CHECKING:
    from .base import Counters

Limit = Callable[[], AbstractContextManager[Any]]
SMALL = 32 << 20  # bytes of weights, which a core reads in some milliseconds
SHORT = 16  # positions of a step; a prompt's pass is not bound by reading weights
READ = 5e9  # bytes a second, the least that a core reads
WHILE = 64  # steps until the slower way is tried again
LONGEST = 1 << 12


class PassThreads:
    """The threads of one model's passes: all, or one.

    Args:
        size: bytes of its weights; 0 where it is not on the processor, or doesn't tell.
        limit: what a pass on one thread runs in; None: nothing is limited.
    Attributes:
        single: whether the next pass runs on one thread.
    """

    def __init__(self, size: int, limit: Limit | None) -> None:
        self._limit = limit if size else None
        self._small, self._bound = size <= SMALL, 0.01 + size / READ
        self.single = self._small
        self._slow = 0.0  # seconds of the step on all threads that is compared
        self._left, self._while = 0, WHILE

    @contextmanager
    def run(self, counters: Counters) -> Iterator[None]:
        """What a pass runs in."""
        if self._limit is None or torch.get_num_threads() == 1:
            yield
            return
        before, began, single = counters.positions, time.perf_counter(), self.single
        with self._limit() if single else nullcontext():
            yield
        if not self._small and counters.positions - before <= SHORT:
            self.step(single, time.perf_counter() - began)

    def step(self, single: bool, seconds: float) -> None:
        """Takes note of a step, and decides on the next one."""
        if single and self._slow:  # the one that is compared
            self.single = seconds < self._slow
            self._slow, self._left = 0.0, self._while
            self._while = min(2 * self._while, LONGEST)
        elif self._left:
            self._left -= 1
            self.single = self.single and self._left > 0
        elif not single and seconds > self._bound:
            self._slow, self.single = seconds, True
        elif not single:
            self._while = WHILE


_of_models: WeakKeyDictionary[Any, PassThreads] = WeakKeyDictionary()


def threads_of(model: Any) -> PassThreads:
    """The threads of a model's passes, which all its backbones share."""
    try:
        return _of_models[model]
    except (KeyError, TypeError):  # or what no weak reference can be made to
        found = PassThreads(_size(model), _one_thread())
    with suppress(TypeError):
        _of_models[model] = found
    return found


def _size(model: Any) -> int:
    if not callable(getattr(model, "parameters", None)) or device_of(model).type != "cpu":
        return 0
    return weight_bytes(model)


@cache
def _one_thread() -> Limit | None:
    """A limit of the calling thread's parallel regions to one thread; None where that can't be had."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    openmp = ThreadpoolController().select(user_api="openmp")
    mkl: Any = None
    with suppress(OSError, AttributeError):  # a PyTorch without MKL
        mkl = ctypes.CDLL(torch._C.__file__).MKL_Set_Num_Threads_Local

    @contextmanager
    def limit() -> Iterator[None]:
        before = None if mkl is None else mkl(1)  # where it was set by PyTorch, it does not follow OpenMP
        try:
            with openmp.limit(limits=1):
                yield
        finally:
            if mkl is not None:
                mkl(before)

    return limit
