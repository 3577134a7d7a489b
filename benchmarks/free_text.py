"""What the default drafts cost a chat model that writes free text, text by text.

    python benchmarks/free_text.py                  # SmolLM2-135M-Instruct of `make real`, free_text.txt
    python benchmarks/free_text.py --schema 12      # extraction under schemas instead
    python benchmarks/free_text.py --measure 3      # by the clock: 3 runs of each text, in turns

Purpose: `auto` takes at most 1.03 of plain decoding's time on every text.  A clock on a busy machine swings
by more than that, so each text is written once, plainly; then the drafts that the policy would have scored
are replayed on it, and each pass has the price that passes of its width took on this model here.  The pass of
the prompt is counted on both sides; it has the first draft with it.
Invariant: the replay's passes are those of a run, for a draft changes no text; the texts come in order, so
that what earlier texts taught is known.  `--measure` compares CPU seconds of whole calls, in turns, with the
order alternated, by the median of each text's ratios, and counts texts that differ.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import torch

import tokenform as tf
from suites.replay import replay
from tokenform.decoding.decoder import bytes_encoder
from tokenform.decoding.speculative.drafters import Hints, auto
from tokenform.decoding.speculative.policies import Controller
from tokenform.frontends import to_constraint
from tokenform_bench.evaluate.tasks import make_tasks

HERE = Path(__file__).parent
WIDTHS = (1, 2, 3, 5, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
Task = tuple[str, tf.Grammar | None]


@torch.inference_mode()
def prices(model: Any, repeats: int = 7, before: int = 64) -> Callable[[int], float]:
    """CPU seconds of a pass by its width, after so many tokens; widths in turns, medians."""
    took: dict[int, list[float]] = {width: [] for width in WIDTHS}
    ids = torch.arange(10, 10 + before + max(WIDTHS))[None]
    for _ in range(repeats):
        for width in WIDTHS:
            cache = model(ids[:, :before], use_cache=True).past_key_values
            began = time.thread_time()
            model(ids[:, before : before + width], past_key_values=cache, use_cache=True)
            took[width].append(time.thread_time() - began)
    known = np.maximum.accumulate([median(took[width]) for width in WIDTHS])
    print("ms of a pass:", {w: round(1e3 * float(s)) for w, s in zip(WIDTHS, known, strict=True)})
    return lambda width: float(np.interp(width, WIDTHS, known))


def replayed(gen: tf.Generator, tasks: Sequence[Task], most: int) -> list[tuple[int, float, float]]:
    """Of each text: tokens; seconds of passes and drafts, of plain decoding's; ms of drafting a token."""
    price, drafter, policy, found = prices(gen.model), auto(), Controller(), []
    encode, eos = bytes_encoder(gen.tokenizer, gen.vocabulary), frozenset(gen.vocabulary.eos)
    for at in range(0, len(tasks), gen.batch_size):
        part = tasks[at : at + gen.batch_size]
        written = gen.sample([prompt for prompt, _ in part], [g for _, g in part], max_tokens=most, seed=0)
        for (_, grammar), (result,) in zip(part, written, strict=True):
            constraint = to_constraint(grammar).for_writing  # a predicate has no drafts
            assert result.prompt is not None
            report = replay(
                result.tokens, drafter, gen.vocabulary.size, constraint.compile(gen.vocabulary),
                prompt=result.prompt.ids, policy=policy, eos=eos, hints=Hints(constraint, gen.vocabulary),
                encode=encode, price=price,
            )  # fmt: skip
            count = len(result.tokens)
            first = price(len(result.prompt.ids)) - price(1)
            share = (report.seconds_model + report.seconds_draft + first) / (count * price(1) + first)
            found.append((count, share, 1e3 * report.seconds_draft / count))
    return found


def measured(
    gen: tf.Generator, tasks: Sequence[Task], most: int, repeats: int
) -> list[tuple[int, float, int]]:
    """Of each text: tokens, the median of the CPU seconds' ratios, whether drafts changed it."""
    ways = {"plain": gen, "auto": tf.Generator(gen.model, gen.tokenizer)}
    for way in ways.values():
        way.sample(*tasks[0], max_tokens=most, seed=0)
    found = []
    for number, (prompt, grammar) in enumerate(tasks):
        ratios, texts = [], {}
        for repeat in range(repeats):
            took = {}
            for name in sorted(ways, reverse=bool((number + repeat) % 2)):
                began = time.process_time()
                (texts[name],) = ways[name].sample(prompt, grammar, max_tokens=most, seed=0)
                took[name] = time.process_time() - began
            ratios.append(took["auto"] / took["plain"])
        changed = texts["auto"].text != texts["plain"].text
        found.append((len(texts["plain"].tokens), median(ratios), int(changed)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    real = Path(os.environ.get("TOKENFORM_REAL", HERE.parent / ".real"))
    parser.add_argument("--model", default=str(real / "smollm2"))
    parser.add_argument("--prompts", type=Path, default=HERE / "free_text.txt")
    parser.add_argument("--schema", type=int, metavar="COUNT", help="so many extraction tasks instead")
    parser.add_argument("--count", type=int, help="the first prompts alone")
    parser.add_argument("--max-tokens", type=int, default=80)
    parser.add_argument("--measure", type=int, metavar="REPEATS", help="by the clock")
    args = parser.parse_args()
    tasks: list[Task] = [(prompt, None) for prompt in args.prompts.read_text().splitlines()]
    if args.schema:
        tasks = [
            (task.prompt, tf.json_schema(task.schema)) for task in make_tasks("extraction", args.schema, 0)
        ]
    tasks, gen = tasks[: args.count], tf.Generator(args.model, drafter=None)
    if args.measure:
        found: Sequence[tuple[int, float, float]] = measured(gen, tasks, args.max_tokens, args.measure)
    else:
        found = replayed(gen, tasks, args.max_tokens)
    print(f"| text | tokens | share of plain | {'changed' if args.measure else 'ms of drafting a token'} |")
    print("|---|---|---|---|")
    for (prompt, _), (count, share, more) in zip(tasks, found, strict=True):
        print(f"| {prompt.splitlines()[-1][:50]} | {count} | {share:.3f} | {more:.2f} |")
    shares = [share for _, share, _ in found]
    above = sum(share > 1.03 for share in shares)
    print(f"{len(shares)} texts: mean {fmean(shares):.3f}, worst {max(shares):.3f}, {above} above 1.03")


if __name__ == "__main__":
    main()
