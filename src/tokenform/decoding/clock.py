"""Measures the time of work, for decisions about it.

Purpose: on a busy machine a thread waits for its turn, and a pass seems to take many times its cost, which
would mislead the choice between a pass and a draft.  On a CPU the thread's own time is measured.  On a device
a pass is launched without waiting, so the host's clocks say nothing about it: events are put into the
device's stream before and after.
Invariant: nothing waits for a device.  Until the work is done its time is None, and the caller asks again a
step later.  The time on a device without events is never known.
Rejected: least times of several passes (sizes hardly ever repeat); a wall clock read where the draws of a
pass are waited for anyway (it counts the host's own work meanwhile).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch


class Elapsed(NamedTuple):
    """Seconds of a piece of work.

    Attributes:
        work: of the thread, or the device.
        wall: that passed; on a device the same.
    """

    work: float
    wall: float


class Span:
    """The time span of a piece of work on the host; begins now."""

    __slots__ = ("began", "ended")

    def __init__(self) -> None:
        self.began: Any = Elapsed(time.thread_time(), time.perf_counter())
        self.ended: Any = None

    def end(self) -> None:
        """The work is done, or launched."""
        self.ended = Elapsed(time.thread_time(), time.perf_counter())

    def elapsed(self) -> Elapsed | None:
        """Its time; None if not known yet."""
        return Elapsed(self.ended.work - self.began.work, self.ended.wall - self.began.wall)


class Clock:
    """Measures work on a device.

    Args:
        device: None is the host.
    Attributes:
        begin: a piece of work begins, on the host or in the device's stream.
    """

    def __init__(self, device: torch.device | None = None) -> None:
        self._module = None if device is None else events_of(device)
        self.host = self._module is None and (device is None or device.type == "cpu")
        self.begin: Callable[[], Span] = Span if self.host else _Unknown
        if self._module is not None:
            self.begin = partial(_DeviceSpan, self._module, device)


def events_of(device: torch.device) -> Any:
    """The module with the `Event` of a kind of device (`torch.cuda`, ...); None where there is none (CPU)."""
    module = None if device.type == "cpu" else getattr(torch, device.type, None)
    return module if hasattr(module, "Event") else None


class _DeviceSpan(Span):
    __slots__ = ("stream",)

    def __init__(self, module: Any, device: torch.device | None) -> None:
        # an event goes into the current device's stream if it isn't told which
        current = getattr(module, "current_stream", None)
        self.stream = () if current is None else (current(device),)
        self.began, self.ended = module.Event(enable_timing=True), module.Event(enable_timing=True)
        self.began.record(*self.stream)

    def end(self) -> None:
        self.ended.record(*self.stream)

    def elapsed(self) -> Elapsed | None:
        if not self.ended.query():
            return None
        seconds = self.began.elapsed_time(self.ended) / 1000  # milliseconds
        return Elapsed(seconds, seconds)


class _Unknown(Span):
    __slots__ = ()

    def elapsed(self) -> None:
        return None
