"""MaskBench: time per token and to the first mask, and verdicts, of several engines in one run.

    python benchmarks/maskbench.py --limit 300 --engines tokenform,glrmask,llguidance
    python benchmarks/maskbench.py --data folder/ --whitespace any --order any --warm

Purpose: the table of the project's speed claims. Engines take turns schema by schema, each in a process of
its own that lives through the run, so that noise of the machine meets all of them alike; the schema is new to
the process ("cold").
Invariant: ratios are taken over the schemas that both engines compile; a schema that hangs an engine costs
--timeout once.
Rejected: one engine after the other (the machine's load changes in between).
"""

from __future__ import annotations

import argparse
import sys
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from suites.maskcheck import add_data_arguments, add_option_arguments, chosen_options, select
from tokenform.batch.workers import WorkerStartError, run_tasks
from tokenform_bench.data import Case
from tokenform_bench.engines import EngineOptions
from tokenform_bench.measure import CLOCKS, Measured, case_measurer, quantiles
from tokenform_bench.tables import number, save, text_table

RESULTS = Path(__file__).resolve().parent / "results"
VERDICTS = (
    "pass",
    "refused",
    "wrong_accept",
    "wrong_reject",
    "inconsistent",
    "timeout",
    "memory",
    "crash",
    "error",
)


@dataclass
class Results:
    """What one engine did with each schema, by id."""

    engine: str
    by_id: dict[str, Measured] = field(default_factory=dict)

    def compiled(self) -> set[str]:
        return {i for i, m in self.by_id.items() if m.first_mask_ns}

    def times(self, ids: Iterable[str], phase: str) -> np.ndarray:
        """Nanoseconds of the phase ("cold", "warm", "first") over the schemas, in one array."""
        if phase == "first":
            return np.array([self.by_id[i].first_mask_ns for i in ids], np.uint64)
        parts = [
            np.frombuffer(getattr(self.by_id[i], phase), np.uint64)
            for i in ids
            if getattr(self.by_id[i], phase)
        ]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def run(
    cases: list[Case], engines: list[str], options: EngineOptions, arguments: argparse.Namespace
) -> dict[str, Results]:
    """All engines over all cases, taking turns."""
    results, streams = {}, {}
    for name in engines:
        results[name] = Results(name)
        streams[name] = run_tasks(
            cases,
            case_measurer,
            (name, options, arguments.warm, arguments.clock),
            workers=1,
            timeout=arguments.timeout,
            memory_bytes=arguments.memory << 20,
        )
    for number_done in range(1, len(cases) + 1):
        for name in list(streams):
            try:
                case, outcome = next(streams[name])
            except WorkerStartError as error:
                print(f"\n{name}: left out: {error}", file=sys.stderr)
                del streams[name], results[name]
                continue
            measured = outcome.value if outcome.status == "ok" else Measured(outcome.status, outcome.detail)
            results[name].by_id[case.id] = measured
        if number_done % 20 == 0 or number_done == len(cases):
            print(f"\r{number_done}/{len(cases)} schemas", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for stream in streams.values():
        stream.close()
    return results


def _time_row(name: str, results: Results, ids: Iterable[str], phase: str) -> dict[str, Any]:
    ids = sorted(ids)
    cold = quantiles(results.times(ids, phase))
    first = quantiles(results.times(ids, "first"))
    return {
        "engine": name,
        "schemas": len(ids),
        "tokens": int(results.times(ids, phase).size),
        "token": cold,
        "first": first,
    }


HEADER = [
    "engine",
    "schemas",
    "tokens",
    "mean",
    "median",
    "p99",
    "p99.9",
    "worst",
    "first: median",
    "p99",
    "worst ms",
]


def _cells(row: dict[str, Any]) -> list[str]:
    token, first = row["token"], row["first"]
    micro = [number(token[k]) for k in ("mean", "p50", "p99", "p99.9", "worst")]
    milli = [number(first[k] / 1e3) for k in ("p50", "p99", "worst")]
    return [row["engine"], f"{row['schemas']:,}", f"{row['tokens']:,}", *micro, *milli]


def summarise(results: dict[str, Results], reference: str, phases: list[str]) -> dict[str, Any]:
    """The tables' contents: verdict counts, times over each engine's own schemas, and ratios to the
    reference."""
    summary: dict[str, Any] = {"verdicts": {}, "own": [], "common": [], "ratios": []}
    for name, result in results.items():
        summary["verdicts"][name] = dict(Counter(m.verdict for m in result.by_id.values()))
        for phase in phases:
            summary["own"].append({**_time_row(name, result, result.compiled(), phase), "phase": phase})
    if reference not in results:
        return summary
    for name, result in results.items():
        if name == reference:
            continue
        both = result.compiled() & results[reference].compiled()
        for phase in phases:
            ours, theirs = (
                _time_row(name, result, both, phase),
                _time_row(reference, results[reference], both, phase),
            )
            summary["common"] += [{**ours, "phase": phase}, {**theirs, "phase": phase}]
            ratio = {
                kind: {k: ours[kind][k] / theirs[kind][k] for k in ours[kind]} for kind in ("token", "first")
            }
            summary["ratios"].append(
                {"engine": name, "to": reference, "phase": phase, "schemas": len(both), **ratio}
            )
    return summary


def report(results: dict[str, Results], summary: dict[str, Any], slowest: int) -> str:
    """The summary as text."""
    parts = []
    shown = [v for v in VERDICTS if any(v in counts for counts in summary["verdicts"].values())]
    rows = [[name, *(str(counts.get(v, 0)) for v in shown)] for name, counts in summary["verdicts"].items()]
    parts.append(text_table(["engine", *shown], rows))
    for title, key in (
        ("Each over the schemas it compiles (µs a token; ms to the first mask)", "own"),
        ("Over common schemas", "common"),
    ):
        if summary[key]:
            rows = [[f"{r['engine']} {r['phase']}", *_cells(r)[1:]] for r in summary[key]]
            parts.append(f"{title}\n{text_table(HEADER, rows)}")
    for r in summary["ratios"]:
        token = "  ".join(f"{k} {number(r['token'][k])}" for k in ("mean", "p50", "p99", "p99.9", "worst"))
        first = "  ".join(f"{k} {number(r['first'][k])}" for k in ("p50", "p99", "worst"))
        title = f"{r['engine']} / {r['to']} ({r['phase']}, {r['schemas']} schemas)"
        parts.append(f"{title}: per token {token};  first mask {first}")
    for name, result in results.items():
        by_first = sorted(result.compiled(), key=lambda i: -result.by_id[i].first_mask_ns)[:slowest]
        by_worst = sorted(result.compiled(), key=lambda i: -max(result.by_id[i].cold, default=0))[:slowest]
        lines = [f"{name}: slowest first masks"]
        lines += [f"  {result.by_id[i].first_mask_ns / 1e6:9.2f} ms  {i}" for i in by_first]
        lines += [f"{name}: slowest single tokens"]
        lines += [f"  {max(result.by_id[i].cold, default=0) / 1e6:9.2f} ms  {i}" for i in by_worst]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def plot(results: dict[str, Results], path: Path) -> None:
    """Cumulative distributions of time per token and time to first mask, log scale."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for axis, phase, title in (
        (axes[0], "cold", "time per token (µs)"),
        (axes[1], "first", "time to first mask (ms)"),
    ):
        for name, result in results.items():
            values = np.sort(result.times(sorted(result.compiled()), phase)) / (
                1e3 if phase == "cold" else 1e6
            )
            if values.size:
                points = values[np.linspace(0, values.size - 1, min(values.size, 4000)).astype(int)]
                axis.plot(points, 1 - np.linspace(0, 1, points.size, endpoint=False), label=name)
        axis.set(xscale="log", yscale="log", xlabel=title, ylabel="share of samples above")
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def raw_rows(results: dict[str, Results], tokens: bool) -> list[dict[str, Any]]:
    """One row for each engine and schema; with every token's time where asked."""
    rows = []
    for name, result in results.items():
        for i, m in sorted(result.by_id.items()):
            row: dict[str, Any] = {"engine": name, "id": i, "verdict": m.verdict, "detail": m.detail}
            row |= {"compile_ns": m.compile_ns, "first_mask_ns": m.first_mask_ns}
            for phase in ("cold", "warm"):
                values: array[int] = getattr(m, phase)
                if values:
                    row[phase] = {"tokens": len(values), "sum_ns": sum(values), "max_ns": max(values)}
                    if tokens:
                        row[phase]["ns"] = list(values)
            rows.append(row)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add_data_arguments(parser)
    parser.add_argument("--engines", default="tokenform,llguidance")
    parser.add_argument("--reference", default="llguidance", help="ratios are taken to this engine")
    add_option_arguments(parser, **asdict(EngineOptions()))
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: the processor time of all threads of an engine"
    )
    parser.add_argument("--warm", action="store_true", help="walk the documents a second time as well")
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds for one schema on one engine")
    parser.add_argument("--memory", type=int, default=6144, help="MiB for one engine's process")
    parser.add_argument(
        "--slowest", type=int, default=5, help="so many slowest schemas listed for each engine"
    )
    parser.add_argument("--tokens", action="store_true", help="keep every token's time in the results file")
    parser.add_argument(
        "--plot", action="store_true", help="write a plot beside the results (needs matplotlib)"
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    options = EngineOptions(**chosen_options(arguments))
    cases = select(arguments)
    results = run(cases, arguments.engines.split(","), options, arguments)
    summary = summarise(results, arguments.reference, ["cold", "warm"] if arguments.warm else ["cold"])
    print(report(results, summary, arguments.slowest))
    settings = {
        "options": asdict(options),
        "schemas": len(cases),
        "seed": arguments.seed,
        "command": sys.argv,
    }
    path = save(
        arguments.results,
        "maskbench",
        {**settings, "summary": summary, "rows": raw_rows(results, arguments.tokens)},
    )
    print(f"\nresults: {path}")
    if arguments.plot:
        plot(results, path.with_suffix(".png"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
