"""Peak memory of one process that compiles every development schema, walks its documents, and keeps all
automata.

    python benchmarks/memory.py --plot                    # all 6,760
    python benchmarks/memory.py --limit 1000 --engine llguidance

Purpose: the bound of 512 MiB for the 6,760 schemas, and memory per 1,000 compiled schemas.
Invariant: nothing is released on the way: every compiled schema is held to the end. The process is this one,
and the schemas and documents are read one by one, so that the peak that the kernel reports (VmHWM) is the
engine's, the vocabulary's and the interpreter's alone.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from suites.maskcheck import add_data_arguments, add_option_arguments, chosen_options, select
from tokenform_bench.data import read_maskbench
from tokenform_bench.documents import write
from tokenform_bench.engines import EngineOptions, EngineRefused, load
from tokenform_bench.measure import walk
from tokenform_bench.tables import save
from tokenform_bench.vocabulary import tekken

RESULTS = Path(__file__).resolve().parent / "results"


def resident_mib() -> float:
    """Resident size now, in MiB (Linux); the peak elsewhere."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return peak_mib()


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def shared_masks(engine: str) -> dict[str, float]:
    """The table of lexical masks that all automata share: what it holds, how often it served."""
    if engine != "tokenform":
        return {}
    from tokenform._core import store_figures

    entries, size, hits, misses = store_figures()
    return {"entries": entries, "mib": size / 2**20, "hits": hits, "misses": misses}


def point(engine: str, schemas: int, compiled: int) -> dict[str, Any]:
    """What is held after so many schemas."""
    now = resident_mib()
    print(f"{schemas:6d} schemas, {compiled:6d} compiled: {now:7.0f} MiB", flush=True)
    return {
        "schemas": schemas,
        "compiled": compiled,
        "resident_mib": now,
        "peak_mib": peak_mib(),
        "shared_masks": shared_masks(engine),
    }


def plot(points: list[dict[str, Any]], start: float, path: Path) -> None:
    """Resident memory over the number of schemas."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6, 4), layout="constrained")
    axis.plot([0, *(p["schemas"] for p in points)], [start, *(p["resident_mib"] for p in points)])
    axis.set(xlabel="schemas compiled, walked and kept", ylabel="resident MiB", ylim=(0, None))
    axis.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add_data_arguments(parser)
    parser.add_argument("--engine", default="tokenform")
    add_option_arguments(parser, **asdict(EngineOptions()))
    parser.add_argument("--plot", action="store_true", help="write a plot too (needs matplotlib)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    vocabulary = tekken()
    chosen = arguments.limit or arguments.ids or arguments.uses
    cases = select(arguments) if chosen else read_maskbench(arguments.data)
    before_engine = resident_mib()
    engine = load(arguments.engine, vocabulary, EngineOptions(**chosen_options(arguments)))
    start = resident_mib()
    print(f"before: {before_engine:.0f} MiB; with the engine: {start:.0f} MiB")
    kept: list[Any] = []
    points, tokens, begun = [], 0, time.perf_counter()
    index = 0
    for index, case in enumerate(cases, 1):
        try:
            compiled = engine.json_schema(case.schema)
            for document in case.documents:
                text = vocabulary.encode(write(document.data))
                tokens += len(walk(compiled.session(), text, vocabulary.eos).nanoseconds)
            kept.append(compiled)
        except EngineRefused:
            pass
        except Exception as error:
            print(f"{case.id}: {type(error).__name__}: {error}"[:200], file=sys.stderr)
        if index % 250 == 0:
            points.append(point(engine.name, index, len(kept)))
    points.append(point(engine.name, index, len(kept)))
    growth = (resident_mib() - start) / max(len(kept), 1) * 1000
    seconds = time.perf_counter() - begun
    print(
        f"peak {peak_mib():.0f} MiB; {growth:.0f} MiB per 1,000 schemas; {tokens:,} tokens, {seconds:.0f} s"
    )
    shared = shared_masks(engine.name)
    if shared:
        share = shared["hits"] / max(shared["hits"] + shared["misses"], 1)
        print(
            f"shared masks: {shared['entries']:,} of {shared['mib']:.0f} MiB; "
            f"{100 * share:.1f} % of {shared['hits'] + shared['misses']:,} lookups served"
        )
    payload = {"engine": engine.name, "points": points, "tokens": tokens, "command": sys.argv}
    payload |= {
        "before_engine_mib": before_engine,
        "start_mib": start,
        "peak_mib": peak_mib(),
        "mib_per_1000": growth,
    }
    path = save(arguments.results, "memory", payload)
    print(f"results: {path}")
    if arguments.plot:
        plot(points, start, path.with_suffix(".png"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
