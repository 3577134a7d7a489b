"""Hard cases: bounded repeats, huge enums, thousands of optional properties, deep nesting, long `$ref`
chains, grammars.

    python benchmarks/hardcases.py --engines tokenform,llguidance,xgrammar --only enum

Purpose: the table "no hard case slower than the best of the peers, and none crashes, hangs or eats the
memory".
Invariant: each engine meets each case in a process of its own, with limits on time and memory, and walks
valid texts.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tokenform.bench.engines import EngineOptions
from tokenform.bench.hard_cases import hard_cases
from tokenform.bench.measure import grammar_measurer
from tokenform.bench.tables import number, save, text_table
from tokenform.bench.workers import Outcome, run_tasks

RESULTS = Path(__file__).resolve().parent / "results"


def row_of(name: str, engine: str, outcome: Outcome) -> dict[str, Any]:
    """One result: verdict, first mask (ms), mean and worst token (µs), peak memory (MiB)."""
    row: dict[str, Any] = {
        "case": name,
        "engine": engine,
        "verdict": outcome.status,
        "detail": outcome.detail,
    }
    row["seconds"], row["peak_mib"] = outcome.seconds, outcome.peak_bytes >> 20
    if outcome.status == "ok":
        measured = outcome.value
        times = np.frombuffer(measured.cold, np.uint64) if measured.cold else np.empty(0, np.uint64)
        row |= {"verdict": measured.verdict, "detail": measured.detail, "tokens": int(times.size)}
        if measured.first_mask_ns:
            row["first_ms"] = measured.first_mask_ns / 1e6
        if times.size:
            row |= {"mean_us": float(times.mean()) / 1e3, "worst_us": float(times.max()) / 1e3}
    return row


def cell(row: dict[str, Any]) -> str:
    """`first mask ms / mean µs / worst µs`, or what went wrong."""
    if "first_ms" not in row:
        return str(row["verdict"])
    numbers = f"{number(row['first_ms'])} / {number(row.get('mean_us'))} / {number(row.get('worst_us'))}"
    return numbers if row["verdict"] == "pass" else f"{numbers} ({row['verdict']})"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--engines", default="tokenform,llguidance,xgrammar")
    parser.add_argument("--only", help="cases whose name holds this text")
    parser.add_argument("--order", default="declared", choices=("declared", "any"))
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one case on one engine")
    parser.add_argument("--memory", type=int, default=4096, help="MiB for one process")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    options = EngineOptions(order=arguments.order)
    cases = [case for case in hard_cases() if not arguments.only or arguments.only in case.name]
    engines = arguments.engines.split(",")
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for engine in engines:
        tasks = [(case.schema, case.dialects, case.texts) for case in cases]
        names = {id(task): case.name for task, case in zip(tasks, cases, strict=True)}
        stream = run_tasks(
            tasks,
            grammar_measurer,
            (engine, options),
            workers=1,
            timeout=arguments.timeout,
            memory_bytes=arguments.memory << 20,
            fresh=True,
        )
        for task, outcome in stream:
            row = row_of(names[id(task)], engine, outcome)
            rows[row["case"], engine] = row
            where = f"{engine:14s} {row['case']:58s}"
            print(f"{where} {cell(row):34s} {row['peak_mib']:5d} MiB  {row['detail'][:90]}", flush=True)
    table = [[case.name, *(cell(rows[case.name, engine]) for engine in engines)] for case in cases]
    print("\nms to the first mask / µs a token, mean / worst")
    print(text_table(["case", *engines], table))
    payload = {"rows": list(rows.values()), "command": sys.argv}
    print(f"\nresults: {save(arguments.results, 'hardcases', payload)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
