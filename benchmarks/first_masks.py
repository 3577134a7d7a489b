"""Compile and first mask of new schemas, beside another checkout of this project.

    git worktree add --detach ../before COMMIT     # and its engine built there
    python benchmarks/first_masks.py --beside ../before --limit 1500

Purpose: what a change makes of the time to a first mask, on a machine that others use too.
Invariant: each schema is new to its process; checkouts take turns, a process each, and of the rounds the
least counts.
The clock is the thread's own processor time; options, vocabulary and schemas are the same.
Design: the file runs itself in a process whose `PYTHONPATH` is a checkout's: it asks for what both have.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def measured(limit: int | None, options: dict[str, str]) -> dict[str, int]:
    """Nanoseconds by schema, of the `tokenform` that this process imports."""
    from tokenform_bench.data import read_maskbench, sample
    from tokenform_bench.engines import EngineOptions, EngineRefused, load
    from tokenform_bench.vocabulary import tekken

    warnings.simplefilter("ignore")
    engine = load("tokenform", tekken(), EngineOptions(**options))
    for warm in ({"type": "string", "format": "uri"}, {"type": "array", "items": {"type": "string"}}):
        engine.json_schema(warm).session().fill()
    time.sleep(1)  # what a process makes once, by a thread of its own
    found = {}
    gc.collect()
    gc.disable()
    for case in sample(read_maskbench(), limit):
        begun = time.thread_time_ns()
        try:
            compiled = engine.json_schema(case.schema)
            compiled.session().fill()
        except EngineRefused:
            continue
        found[case.id] = time.thread_time_ns() - begun
        del compiled
    return found


def in_checkout(folder: Path, arguments: Sequence[str]) -> dict[str, int]:
    """The same in a process of its own, of another checkout's sources."""
    shared = os.environ.get("TOKENFORM_SHARED", str(ROOT.parent / "shared"))
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "TOKENFORM_SHARED": shared}
    command = [sys.executable, __file__, "--measure", *arguments]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def compared(rounds: dict[str, list[dict[str, int]]]) -> list[str]:
    """Lines: microseconds of each side over the schemas that both compile, and the ratios."""
    import numpy as np

    both = sorted(set.intersection(*(set(found) for side in rounds.values() for found in side)))
    least = {
        name: np.array([min(found[i] for found in side) for i in both]) / 1e3 for name, side in rounds.items()
    }
    marks: dict[str, Any] = {
        "mean": np.mean,
        "median": np.median,
        "p99": lambda x: np.quantile(x, 0.99),
        "worst": np.max,
    }
    lines = [f"{len(both)} schemas, the least of {len(rounds['now'])} rounds, µs of processor time"]
    for name, values in least.items():
        lines.append(f"{name:8}" + "  ".join(f"{mark} {of(values):.1f}" for mark, of in marks.items()))
    ratios = "  ".join(f"{mark} {of(least['now']) / of(least['before']):.3f}" for mark, of in marks.items())
    slower = sorted(zip(least["now"] / least["before"], both, strict=True), reverse=True)[:3]
    lines.append(f"{'ratio':8}{ratios}  worst: " + ", ".join(f"{name} {ratio:.2f}" for ratio, name in slower))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--beside", type=Path, help="the root of the other checkout")
    parser.add_argument("--limit", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--options", type=json.loads, default={}, help="of `EngineOptions`, as JSON")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measured(given.limit, given.options)))
        return
    if given.beside is None:
        parser.error("--beside names the other checkout")
    rounds: dict[str, list[dict[str, int]]] = {"before": [], "now": []}
    passed = ["--limit", str(given.limit), "--options", json.dumps(given.options)]
    for _ in range(given.rounds):
        for name, folder in (("before", given.beside), ("now", ROOT)):
            rounds[name].append(in_checkout(folder, passed))
    print("\n".join(compared(rounds)))


if __name__ == "__main__":
    main()
