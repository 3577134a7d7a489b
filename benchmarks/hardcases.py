"""Hard cases: bounded repeats, huge enums, thousands of optional properties, deep nesting, long `$ref`
chains, grammars.

    python benchmarks/hardcases.py --engines tokenform,llguidance,xgrammar,outlines_core --repeat 3 --plot

Purpose: the table "no hard case slower than the best of the peers, and none crashes, hangs or eats the
memory".
Invariant: each engine meets each case in a process of its own, with limits on time and memory, and walks
valid texts, and one that breaks the hard part: an engine that takes it is no rival there.  Of several
repetitions the fastest first mask and the fastest mean are kept; `--clock cpu` counts the time of the
process's threads instead of the wall's, for a machine that others use too.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from suites.hard_cases import HardCase, hard_cases
from tokenform.batch.workers import TaskOutcome, run_tasks
from tokenform_bench.engines import EngineOptions
from tokenform_bench.measure import CLOCKS, grammar_measurer
from tokenform_bench.tables import number, save, text_table

RESULTS = Path(__file__).resolve().parent / "results"
TIMES = ("first_ms", "mean_us", "worst_us", "again_us", "texts_ms")
COMPARED = ("texts_ms", "again_us", "first_ms", "mean_us")


def row_of(name: str, engine: str, outcome: TaskOutcome) -> dict[str, Any]:
    """One result: verdict, first mask (ms), mean and worst token (µs), peak memory (MiB).

    `again_us` is the mean of a second pass, when all masks were there once; `texts_ms` the time from the
    schema to the end of the texts: first mask and all tokens of the first pass.
    """
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
            again = np.frombuffer(measured.warm, np.uint64)
            row |= {"mean_us": float(times.mean()) / 1e3, "worst_us": float(times.max()) / 1e3}
            row |= {"again_us": float(again.mean()) / 1e3} if again.size else {}
            row |= {"texts_ms": row["first_ms"] + float(times.sum()) / 1e6}
    return row


def best_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The worst verdict of the repetitions, and the least of each time."""
    row = next((r for r in rows if r["verdict"] != "pass"), rows[0]).copy()
    for key in TIMES:
        found = [r[key] for r in rows if key in r]
        if found:
            row[key] = min(found)
    row["peak_mib"] = max(r["peak_mib"] for r in rows)
    return row


def cell(row: dict[str, Any]) -> str:
    """`whole ms / first mask ms / mean µs / worst µs / again µs`, or what went wrong."""
    if "first_ms" not in row:
        return str(row["verdict"])
    shown = ("texts_ms", "first_ms", "mean_us", "worst_us", "again_us")
    numbers = " / ".join(number(row.get(key)) for key in shown)
    return numbers if row["verdict"] == "pass" else f"{numbers} ({row['verdict']})"


def ratios(case: str, rows: dict[tuple[str, str], dict[str, Any]], engines: list[str]) -> dict[str, float]:
    """The first engine's times over the best of the others that get the case right; empty where none does."""
    found = {}
    for key in COMPARED:
        own = rows[case, engines[0]]
        others = [rows[case, e] for e in engines[1:]]
        best = min((r[key] for r in others if r["verdict"] == "pass" and key in r), default=None)
        if best is not None and own["verdict"] == "pass" and key in own:
            found[key] = own[key] / best
    return found


def plot(
    cases: list[str], rows: dict[tuple[str, str], dict[str, Any]], engines: list[str], path: Path
) -> None:
    """Time to first mask and mean time per token, a line for each case; what is missing was not passed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    size = (13, 0.28 * len(cases) + 1.5)
    figure, axes = pyplot.subplots(1, 2, figsize=size, sharey=True, layout="constrained")
    for axis, key, title in (
        (axes[0], "first_ms", "first mask (ms)"),
        (axes[1], "mean_us", "mean token (µs)"),
    ):
        for engine, mark in zip(engines, "osv^Dx"):
            passed = [rows[case, engine] for case in cases]
            values = [r.get(key, np.nan) if r["verdict"] == "pass" else np.nan for r in passed]
            axis.plot(values, range(len(cases)), mark, label=engine, alpha=0.8)
        axis.set(xscale="log", xlabel=title)
        axis.grid(alpha=0.3)
    axes[0].set_yticks(range(len(cases)), cases, fontsize=8)
    axes[0].invert_yaxis()
    axes[1].legend()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def measure(
    cases: list[HardCase], engine: str, options: EngineOptions, arguments: argparse.Namespace
) -> dict[tuple[str, str], dict[str, Any]]:
    """Every case on one engine."""
    tasks = [
        (
            case.schema,
            case.dialects,
            [*((text, True) for text in case.texts), *((text, False) for text in case.refused)],
        )
        for case in cases
        for _ in range(arguments.repeat)
    ]
    names = {id(task): cases[i // arguments.repeat].name for i, task in enumerate(tasks)}
    found: dict[str, list[dict[str, Any]]] = {}
    stream = run_tasks(
        tasks,
        grammar_measurer,
        (engine, options, arguments.clock, True),
        workers=1,
        timeout=arguments.timeout,
        memory_bytes=arguments.memory << 20,
        fresh=True,
    )
    rows = {}
    for task, outcome in stream:
        name = names[id(task)]
        found.setdefault(name, []).append(row_of(name, engine, outcome))
        if len(found[name]) == arguments.repeat:
            row = rows[name, engine] = best_of(found[name])
            where = f"{engine:14s} {name:58s}"
            print(f"{where} {cell(row):42s} {row['peak_mib']:5d} MiB  {row['detail'][:90]}", flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--engines", default="tokenform,llguidance,xgrammar")
    parser.add_argument("--only", help="cases whose name holds this text")
    parser.add_argument("--order", default="declared", choices=("declared", "any"))
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one case on one engine")
    parser.add_argument("--memory", type=int, default=4096, help="MiB for one process")
    parser.add_argument("--repeat", type=int, default=1, help="processes for each case; the best is kept")
    parser.add_argument("--clock", default="wall", choices=sorted(CLOCKS))
    parser.add_argument("--plot", action="store_true", help="write a plot too (needs matplotlib)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    options = EngineOptions(order=arguments.order)
    cases = [case for case in hard_cases() if not arguments.only or arguments.only in case.name]
    engines = arguments.engines.split(",")
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for engine in engines:
        rows |= measure(cases, engine, options, arguments)
    compared = {case.name: ratios(case.name, rows, engines) for case in cases}
    table = [
        [
            case.name,
            *(cell(rows[case.name, engine]) for engine in engines),
            *(number(compared[case.name].get(key)) for key in COMPARED),
        ]
        for case in cases
    ]
    print("\nms from the schema to the end of the texts / ms to the first mask / µs a token: mean / worst")
    print("/ mean of a second pass; last: times over the best of the others")
    print(text_table(["case", *engines, "whole", "again", "first", "mean"], table))
    for name, ratio in compared.items():
        slower = ", ".join(f"{key} {value:.2g} times" for key, value in ratio.items() if value > 1)
        if slower:
            print(f"slower than the best of the others: {name}: {slower}")
    payload = {"rows": list(rows.values()), "ratios": compared, "clock": arguments.clock, "command": sys.argv}
    path = save(arguments.results, "hardcases", payload)
    print(f"\nresults: {path}")
    if arguments.plot:
        plot([case.name for case in cases], rows, engines, path.with_suffix(".png"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
