"""How many processors this process may use.

Purpose: PyTorch starts a thread for each core of the machine.  A container is mostly given fewer by a quota
of its control group, and its threads then wait for each other while the quota is used up: with a quota of one
and two threads SmolLM2-135M took 1.5 times as long as with one.
Source: Linux, "Control Group v2", cpu.max; "CFS Bandwidth Control", cpu.cfs_quota_us, for version 1.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


def usable_processors(root: Path = _ROOT, groups: Path = Path("/proc/self/cgroup")) -> int:
    """Processors of the process's affinity, within the quotas of its control groups; at least 1.

    Args:
        root: where control groups are mounted.
        groups: the file that names the groups of this process.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    most: float = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    try:
        lines = groups.read_text().splitlines()
    except OSError:  # another system
        return int(most)
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            most = min(most, _quota(root, path, _of_version_2))
        elif "cpu" in controllers.split(","):
            for mounted in (controllers, "cpu"):
                most = min(most, _quota(root / mounted, path, _of_version_1))
    return int(most)


def _quota(root: Path, path: str, read: Callable[[Path], tuple[int, int]]) -> float:
    """The least quota of a group and those that it is in; a container may see itself as the root."""
    group, least = root / path.lstrip("/"), math.inf
    for folder in (group, *group.parents):
        with suppress(OSError, ValueError):  # no such folder, or no quota
            quota, period = read(folder)
            if quota > 0 and period > 0:
                least = min(least, max(1, math.ceil(quota / period)))
        if folder == root:
            break
    return least


def _of_version_2(folder: Path) -> tuple[int, int]:
    quota, period = (folder / "cpu.max").read_text().split()
    return int(quota), int(period)


def _of_version_1(folder: Path) -> tuple[int, int]:
    quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
    return int(quota), int(period)
