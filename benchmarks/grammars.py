"""Context-free grammars: time per token on texts that are new to the engine, engines side by side in one run.

    python benchmarks/grammars.py --repeat 3

Purpose: the line "mean per token at most a third of the better of llguidance and XGrammar on json, sql, c,
arithmetic" of the library's grammars.
Invariant: the same grammar in each engine's language (`benchmarks.suites.dialects`), the same texts, the same
tokens; each engine meets each grammar in a process of its own. Of several repetitions the fastest first mask
and the fastest mean are kept. "cold": the texts are walked for the first time (mask + advance, called from
Python); "again": the same texts once more.
"""

from __future__ import annotations

import argparse
import importlib.resources
import sys
from pathlib import Path
from typing import Any

import numpy as np

from suites.dialects import dialects
from suites.grammar_cases import TEXTS
from tokenform.batch.workers import run_tasks
from tokenform.frontends import grammars
from tokenform_bench.engines import EngineOptions
from tokenform_bench.measure import CLOCKS, grammar_measurer
from tokenform_bench.tables import number, save, text_table

LARKS_PYTHON = "larks-python"
"""The Python grammar that comes with Lark: its numbers and strings look past their ends, in Lark's words."""
HEADER = (
    "// tokenform: lexer=contextual start=file_input\n"
    "// tokenform: indenter newline=_NEWLINE indent=_INDENT dedent=_DEDENT"
    " open=LPAR,LSQB,LBRACE close=RPAR,RSQB,RBRACE tab=8\n"
)
RESULTS = Path(__file__).resolve().parent / "results"


def larks_python() -> str:
    folder = importlib.resources.files("lark.grammars")
    return (folder / "python.lark").read_text(encoding="utf-8")


def measure(name: str, engine: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One engine on one grammar: the worst verdict, and the least of each time over the repetitions."""
    if name == LARKS_PYTHON:
        spoken, texts = {"lark": HEADER + larks_python()}, TEXTS["python"]
    else:
        spoken, texts = dialects(grammars.text(name)), TEXTS[name]
    row: dict[str, Any] = {"grammar": name, "engine": engine, "verdict": "pass", "detail": ""}
    if engine != "tokenform" and "ebnf" not in spoken:
        return row | {"verdict": "none", "detail": "its language has no indented blocks"}
    if engine in spoken:
        spoken["lark"] = spoken[engine]
    tasks = [(None, spoken, [(text, True) for text in texts])] * arguments.repeat
    stream = run_tasks(
        tasks,
        grammar_measurer,
        (engine, EngineOptions(), arguments.clock, True),
        workers=1,
        timeout=arguments.timeout,
        memory_bytes=4096 << 20,
        fresh=True,
    )
    for _, outcome in stream:
        if outcome.status != "ok" or outcome.value.verdict != "pass":
            value = outcome.value if outcome.status == "ok" else None
            row["verdict"] = value.verdict if value else outcome.status
            row["detail"] = value.detail if value else outcome.detail
            continue
        value = outcome.value
        found = {"first_ms": value.first_mask_ns / 1e6, "tokens": len(value.cold)}
        for key, times in (("cold", value.cold), ("again", value.warm)):
            array = np.frombuffer(times, np.uint64) / 1e3
            found[f"{key}_us"] = float(array.mean())
            found[f"{key}_p50_us"], found[f"{key}_p99_us"] = map(float, np.quantile(array, (0.5, 0.99)))
        row |= {k: min(v, row.get(k, v)) for k, v in found.items()}
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--engines", default="tokenform,llguidance,xgrammar")
    names = ", ".join([*TEXTS, LARKS_PYTHON])
    parser.add_argument("--grammars", default="json,sql,c,arithmetic", help=f"of {names}")
    parser.add_argument("--repeat", type=int, default=1, help="processes for each grammar; the best is kept")
    parser.add_argument("--clock", default="wall", choices=sorted(CLOCKS))
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--results", type=Path, help=f"keep the raw results there, e.g. {RESULTS}")
    arguments = parser.parse_args()
    engines = arguments.engines.split(",")
    unknown = sorted({*arguments.grammars.split(",")} - {*TEXTS, LARKS_PYTHON})
    if unknown:
        parser.error(f"no texts for {', '.join(unknown)}: choose of {names}")
    rows: list[dict[str, Any]] = []
    table: list[list[str]] = []
    for name in arguments.grammars.split(","):
        found = {engine: measure(name, engine, arguments) for engine in engines}
        rows += found.values()
        others = [r["cold_us"] for e, r in found.items() if e != engines[0] and "cold_us" in r]
        own = found[engines[0]].get("cold_us")
        ratio = own / min(others) if others and own else None
        cells = [
            " / ".join(number(r[k]) for k in ("first_ms", "cold_us", "cold_p50_us", "again_us"))
            if r["verdict"] == "pass"
            else f"{r['verdict']}: {r['detail'][:60]}"
            for r in found.values()
        ]
        table.append([name, *cells, number(ratio)])
        print(f"{name}: {dict(zip(found, cells, strict=True))} {number(ratio)}", flush=True)
    print(
        "\nms to the first mask / µs a token cold: mean / median / µs again; last: cold over the best other"
    )
    print(text_table(["grammar", *engines, "ratio"], table))
    if arguments.results:
        print(save(arguments.results, "grammars", {"rows": rows, "command": sys.argv}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
