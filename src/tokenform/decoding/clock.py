"""What work takes, for those who decide by it.

Purpose: on a busy machine a thread waits for its turn, and a pass seems to take many times what it costs;
whoever weighs a pass against a guess would guess wrongly.  On a CPU the seconds that the thread itself has
worked are measured; where a device works, those that pass.
Rejected: least times of several passes (sizes hardly ever repeat).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch


def clock(device: torch.device | None) -> Callable[[], float]:
    """Seconds of work on a device (None: the host); differences count."""
    return time.thread_time if device is None or device.type == "cpu" else time.perf_counter
