"""The built-in masked-diffusion model under schemas: valid texts, right values, passes, by policy.

    python benchmarks/diffusion.py --count 40                  # some minutes on one core
    python benchmarks/diffusion.py --count 40 --temperatures 0,1

Unseen prompts with unseen schemas (the evaluation set of `benchmarks/training`), canvases of 96 positions.
"free" writes without a constraint, by the same policy.  A document that a typed limit stops is left out of
all rows and counted below.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.training.data import examples
from benchmarks.training.evaluate import EVALUATION_SEED, score

import tokenform as tf
from tokenform.decoding.diffusion import (
    Blocks,
    Confidence,
    Credit,
    EarlyAnswer,
    EntropyBound,
    LeftToRight,
    LocalDeterminism,
    Threshold,
)
from tokenform_bench.tables import save, text_table

POLICIES = {
    "left to right": LeftToRight(),
    "confidence 1": Confidence(1),
    "confidence 4": Confidence(4),
    "threshold 0.9": Threshold(0.9),
    "threshold 0.7": Threshold(0.7),
    "entropy bound 0.1": EntropyBound(0.1),
    "blocks 16": Blocks(16),
    "early answer": EarlyAnswer(Confidence(4)),
    "credit": Credit(),
    "local determinism": LocalDeterminism(),
}
FREE = ("left to right", "threshold 0.9")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--temperatures", default="0", help="with commas")
    parser.add_argument("--minutes", type=float, default=60.0, help="no row is begun after these")
    parser.add_argument("--save", action="store_true", help="keep the figures in benchmarks/results")
    told = parser.parse_args()
    writer, end = tf.DiffusionGenerator(), time.monotonic() + 60 * told.minutes
    batch = examples(EVALUATION_SEED, told.count, held_out=True, tools=0.0)
    ids = [writer.tokenizer.encode(e.prompt, add_special_tokens=False) for e in batch]
    grammars = [tf.json_schema(e.record.schema, whitespace="spaced") for e in batch if e.record is not None]
    fits = [place for place, grammar in enumerate(grammars) if _fits(writer, ids[place], grammar)]
    table: list[list[str]] = []
    runs = [(name, free) for free in (False, True) for name in POLICIES if not free or name in FREE]
    for temperature in map(float, told.temperatures.split(",")):
        for name, free in runs:
            if time.monotonic() > end:
                continue
            begin, results = time.process_time(), []
            for place in fits:
                wanted: Any = None if free else grammars[place]
                results.append(
                    writer.generate(
                        ids[place], wanted, policy=POLICIES[name], temperature=temperature, seed=place
                    )
                )
            spent = (time.process_time() - begin) / len(fits)
            found = score([result.text for result in results], [batch[place] for place in fits]).report()
            passes = sum(result.stats.forwards for result in results) / len(fits)
            table.append(
                [
                    "free" if free else "schema",
                    name,
                    f"{temperature:g}",
                    f"{100 * found['valid']:.1f}",
                    f"{100 * found['field_match']:.1f}",
                    f"{passes:.1f}",
                    f"{1e3 * spent:.0f}",
                ]
            )
            print(table[-1], flush=True)
    header = ["", "policy", "T", "valid %", "values right %", "passes", "CPU ms"]
    print(text_table(header, table))
    print(f"{len(fits)} documents; {len(batch) - len(fits)} over a limit")
    if told.save:
        print(save(Path(__file__).resolve().parent / "results", "diffusion", {"table": table}))


def _fits(writer: Any, ids: list[int], grammar: tf.Grammar) -> bool:
    try:
        writer.generate(ids, grammar, policy=Threshold(0.0))
    except (tf.errors.LimitExceeded, tf.errors.BudgetTooSmall):
        return False
    return True


if __name__ == "__main__":
    main()
