"""Copying: does what a model wants to write come out byte for byte, under each engine's own defaults?

    python benchmarks/copying.py --documents 2000
    python benchmarks/copying.py --documents 300 --engines tokenform --show 5

Purpose: the price of defaults that bend what models write: a model that holds a document in its own spelling
takes its first choice wherever it may, and the likeliest allowed token elsewhere (`suites/copying.py`).
Invariant: only documents that are valid as they are written are wanted; those whose keys stand in another
order than declared are counted apart, for every engine: a schema's order is what a model is asked to keep
where nothing else is said (`order="declared"`), and `order="any"`, a row of its own, takes them as they are.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

from suites.copying import STYLES, copier, wanted
from suites.maskcheck import add_data_arguments, select
from tokenform.batch.workers import WorkerStartError, run_tasks
from tokenform_bench.engines import EngineOptions, missing
from tokenform_bench.tables import save, text_table

RESULTS = Path(__file__).resolve().parent / "results"
# What each engine does where nothing is asked of it; the peers take any whitespace.
DEFAULTS = EngineOptions("declared", "natural", "natural", "natural")
ANY_ORDER = replace(DEFAULTS, order="any")
PEERS = EngineOptions()
# The rows of the table: an engine, and the options that it is asked with.
ROWS = {
    "tokenform": ("tokenform", DEFAULTS),
    "tokenform-any-order": ("tokenform", ANY_ORDER),
    "llguidance": ("llguidance", PEERS),
    "xgrammar": ("xgrammar", PEERS),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add_data_arguments(parser)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--engines", default=",".join(ROWS), help=f"of {', '.join(ROWS)}")
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds for one document")
    parser.add_argument("--show", type=int, default=0, help="so many texts that were changed")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    texts = list(wanted(select(arguments), arguments.documents, random.Random(arguments.seed)))
    engines = arguments.engines.split(",")
    for name in missing(sorted({ROWS[row][0] for row in engines})):
        print(f"{name} is not installed: left out")
        engines = [row for row in engines if ROWS[row][0] != name]
    rows, found = [], {}
    for name in engines:
        counts, by_style = Counter[str](), defaultdict[str, Counter[str]](Counter)
        stream = run_tasks(
            texts, copier, ROWS[name], workers=1, timeout=arguments.timeout, memory_bytes=6 << 30
        )
        shown = 0
        try:
            for one, outcome in stream:
                kind = outcome.value.outcome if outcome.status == "ok" else outcome.status
                counts[kind] += 1
                by_style[one.style][kind] += 1
                if kind not in ("copied", "order") and shown < arguments.show:
                    shown += 1
                    text = outcome.value.text if outcome.status == "ok" else outcome.detail
                    print(f"{name} {kind} {one.id} {one.style}")
                    print(f"  wanted  {one.text[:600]!r}\n  written {text[:600]!r}")
        except WorkerStartError as error:
            print(f"{name}: left out: {error}")
            continue
        apart = counts["order"]
        taken = len(texts) - apart - counts["refused"]
        others = {k: n for k, n in counts.items() if k not in ("copied", "order", "refused")}
        share = counts["copied"] / taken if taken else 0.0
        rows.append(
            [name, str(taken), f"{100 * share:.2f} %", str(others or "-"), str(apart), str(counts["refused"])]
        )
        rows += [
            [f"  {style}", str(sum(by_style[style].values())), str(by_style[style]["copied"]), "", "", ""]
            for style in STYLES
        ]
        found[name] = {"all": dict(counts), "styles": {style: dict(n) for style, n in by_style.items()}}
    print(text_table(["engine", "documents", "as wanted", "otherwise", "another order", "refused"], rows))
    print(
        "\nanother order: changed, and the keys stand in another order than the schema declares; an engine\n"
        'that keeps the declared order can\'t copy them; order="any" (tokenform-any-order) takes them.'
    )
    path = save(
        arguments.results, "copying", {"documents": len(texts), "seed": arguments.seed, "engines": found}
    )
    print(f"\nresults: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
