"""Choices taken token by token, as wholes, and as wholes over the value's own prior: which are right.

python benchmarks/choices.py                # SmolLM2-135M-Instruct of `make real`, questions of choices.jsonl
python benchmarks/choices.py --listed       # the options stand in the question, too

The prior of a value is its probability after a question that says nothing ("?"). The greedy whole choice is
held against a plain pass over each option (`argmax`: how often they are the same).
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tokenform as tf

HERE = Path(__file__).parent
LOCAL = {"token": tf.Local(0.0, values="token"), "whole": tf.Local(0.0)}


def messages(question: str, options: list[str], listed: bool) -> list[dict[str, str]]:
    asked = f"{question}\nAnswer with one of: {', '.join(options)}." if listed else question
    return [{"role": "user", "content": asked}]


@torch.inference_mode()
def plain(gen: tf.Generator, prompt: Any, options: list[str]) -> dict[str, float]:
    """The log-probability of each option and an end, by one plain pass an option."""
    ids, found = gen.prompt_ids(prompt), {}
    for option in options:
        tokens = gen.spell(option.encode())
        logits = gen.model(torch.tensor([[*ids, *tokens]])).logits[0, len(ids) - 1 :].double()
        table = torch.log_softmax(logits, -1).numpy()
        known = sum(float(table[at][token]) for at, token in enumerate(tokens))
        found[option] = known + float(np.logaddexp.reduce([table[-1][end] for end in gen.vocabulary.eos]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--model", default=str(Path(os.environ.get("TOKENFORM_REAL", HERE.parent / ".real")) / "smollm2")
    )
    parser.add_argument("--rows", default=str(HERE / "choices.jsonl"))
    parser.add_argument("--listed", action="store_true")
    parser.add_argument("--drafter", default="auto", choices=["auto", "none"])
    parser.add_argument("--kind", help="questions of one kind")
    args = parser.parse_args()
    gen = tf.Generator(args.model, drafter=None if args.drafter == "none" else "auto")
    rows = [json.loads(line) for line in Path(args.rows).read_text().splitlines()]
    rows = [row for row in rows if args.kind in (None, row["kind"])]
    right: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    passes, seconds, equal = collections.Counter[str](), collections.Counter[str](), 0
    for row in rows:
        prompt, options = messages(row["question"], row["options"], args.listed), row["options"]
        grammar, taken = tf.choice(options), {}
        for name, local in LOCAL.items():
            began = time.process_time()
            (result,) = gen.sample(prompt, grammar, sampler=local)
            seconds[name] += time.process_time() - began
            passes[name] += result.stats.forwards
            taken[name] = result.text
        scores = plain(gen, prompt, options)
        equal += taken["whole"] == max(scores, key=scores.__getitem__)
        (neutral,) = gen.sample(messages("?", options, False), grammar)
        prior = neutral.probabilities
        taken["over prior"] = max(options, key=lambda one: scores[one] - math.log(prior[one]))
        for name, text in taken.items():
            right[name][row["kind"]] += text == row["right"]
    kinds = collections.Counter(row["kind"] for row in rows)
    print(
        f"| right of | {' | '.join(f'{kind} ({count})' for kind, count in kinds.items())} | passes | CPU s |"
    )
    print("|---" * (len(kinds) + 3) + "|")
    for name, counts in right.items():
        told = " | ".join(str(counts[kind]) for kind in kinds)
        print(f"| {name} | {told} | {passes[name] or '-'} | {seconds[name]:.0f} |")
    print(f"argmax: {equal} of {len(rows)}")


if __name__ == "__main__":
    main()
