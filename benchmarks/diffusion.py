"""The built-in masked-diffusion model under schemas: valid texts, right values, passes, by policy.

    python benchmarks/diffusion.py --count 40                  # some minutes on one core
    python benchmarks/diffusion.py --count 40 --temperatures 0,1

Unseen prompts with unseen schemas (the evaluation set of `benchmarks/training`), canvases of 96 positions.
"free" writes without a constraint, by the same policy.  Documents that no canvas holds are written from left
to right under every policy, and counted below.  "window 32": the model reads 32 positions behind the first
open one.  The slow rows come last.
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
from tokenform.builtin import load, load_diffusion
from tokenform.decoding.diffusion import (
    AdaptiveParallel,
    Blocks,
    Confidence,
    Credit,
    EarlyAnswer,
    EntropyBound,
    LeftToRight,
    LocalDeterminism,
    MaskedDenoiser,
    SelfDraft,
    Threshold,
)
from tokenform_bench.tables import save, text_table

POLICIES = {
    "threshold 0.9": Threshold(0.9),
    "threshold 0.7": Threshold(0.7),
    "entropy bound 0.1": EntropyBound(0.1),
    "credit": Credit(),
    "local determinism": LocalDeterminism(),
    "adaptive parallel": AdaptiveParallel(load()[0]),
    "window 32": Threshold(0.9),
    "blocks 16": Blocks(16),
    "early answer": EarlyAnswer(Confidence(4)),
    "4 drafts of threshold 0.9": SelfDraft(Threshold(0.9), 4),
    "4 drafts of confidence 4": SelfDraft(Confidence(4), 4),
    "confidence 4": Confidence(4),
    "4 drafts of confidence 1": SelfDraft(Confidence(1), 4),
    "left to right": LeftToRight(),
    "confidence 1": Confidence(1),
}
FREE = [name for name in POLICIES if "drafts" not in name]  # drafts write the text of what they draft


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--temperatures", default="0", help="with commas")
    parser.add_argument("--policies", help="some of them, with commas; all by default")
    parser.add_argument("--only", choices=["schema", "free"], help="one half of the table")
    parser.add_argument("--minutes", type=float, default=60.0, help="no row is begun after these")
    parser.add_argument("--save", action="store_true", help="keep the figures in benchmarks/results")
    told = parser.parse_args()
    writer, end = tf.DiffusionGenerator(), time.monotonic() + 60 * told.minutes
    batch = examples(EVALUATION_SEED, told.count, held_out=True, tools=0.0)
    ids = [writer.tokenizer.encode(e.prompt, add_special_tokens=False) for e in batch]
    grammars = [tf.json_schema(e.record.schema, whitespace="spaced") for e in batch if e.record is not None]
    for place, grammar in enumerate(grammars):
        writer.generate(ids[place], grammar, policy=Threshold(0.0))  # whether a canvas holds it is remembered
    windowed = tf.DiffusionGenerator(length=writer.length)
    windowed.denoiser = MaskedDenoiser(
        load_diffusion()[0], load_diffusion()[0].config.mask_token_id, window=32
    )
    table: list[list[str]] = []
    chosen = [name for name in POLICIES if told.policies is None or name in told.policies.split(",")]
    halves = [False, True] if told.only is None else [told.only == "free"]
    runs = [(name, free) for free in halves for name in chosen if not free or name in FREE]
    for temperature in map(float, told.temperatures.split(",")):
        for name, free in runs:
            if time.monotonic() > end:
                continue
            begin, results = time.process_time(), []
            own = windowed if name.startswith("window") else writer
            for place in range(len(batch)):
                wanted: Any = None if free else grammars[place]
                results.append(
                    own.generate(
                        ids[place], wanted, policy=POLICIES[name], temperature=temperature, seed=place
                    )
                )
            spent = (time.process_time() - begin) / len(batch)
            found = score([result.text for result in results], batch).report()
            passes = sum(result.stats.forwards for result in results) / len(batch)
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
    print(f"{len(batch)} documents; {len(writer._over)} of them in no canvas")
    if told.save:
        print(save(Path(__file__).resolve().parent / "results", "diffusion", {"table": table}))


if __name__ == "__main__":
    main()
