"""Choices taken token by token, as wholes, and by other scores of the whole value: which are right.

python benchmarks/choices.py                  # SmolLM2-135M-Instruct of `make real`, questions as texts
python benchmarks/choices.py --half aside     # the half of the questions by which nothing was decided
python benchmarks/choices.py --form message   # the question alone as a chat message: no line on the answer
python benchmarks/choices.py --form after     # the options after the question, in the message

Scores of an option, by one plain pass over it: `whole` is the law of `tf.Local`, its tokens and its end; then
without the end, a token on average, and over the value's own prior: its score after the same words without
the question, and after a question that says nothing ("?").  `argmax`: how often the greedy choice of
`tf.Local` is the best by `whole`.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tokenform as tf

HERE = Path(__file__).parent
LOCAL = {"token": tf.Local(0.0, values="token"), "whole": tf.Local(0.0)}


FORMS: dict[str, Callable[[str, list[str]], Any]] = {
    "text": lambda question, options: question,
    "message": lambda question, options: [{"role": "user", "content": question}],
    "after": lambda question, options: [
        {"role": "user", "content": f"{question}\nAnswer with one of: {', '.join(options)}.".lstrip()}
    ],
}
Scores = dict[str, tuple[float, float, int]]
"""Of each option: log-probability of its tokens, and of its end; how many tokens."""


@torch.inference_mode()
def plain(gen: tf.Generator, prompt: Any, options: list[str]) -> Scores:
    """By one plain pass an option."""
    ids, found = gen.prompt_ids(prompt, tf.choice(options)), {}
    for option in options:
        tokens = gen.spell(option.encode())
        logits = gen.model(torch.tensor([[*ids, *tokens]])).logits[0, len(ids) - 1 :].double()
        table = torch.log_softmax(logits, -1).numpy()
        known = sum(float(table[at][token]) for at, token in enumerate(tokens))
        end = float(np.logaddexp.reduce([table[-1][end] for end in gen.vocabulary.eos]))
        found[option] = known, end, len(tokens)
    return found


def rules(scores: Scores, priors: dict[str, Scores]) -> dict[str, dict[str, float]]:
    """The score of each option under each rule."""
    found = {
        "whole": {one: known + end for one, (known, end, _) in scores.items()},
        "without its end": {one: known for one, (known, _, _) in scores.items()},
        "a token on average": {one: (known + end) / (n + 1) for one, (known, end, n) in scores.items()},
    }
    for name, prior in priors.items():
        for weight, part in ((1.0, ""), (0.5, "half of ")):
            found[f"over {part}the prior, {name}"] = {
                one: whole - weight * sum(prior[one][:2]) for one, whole in found["whole"].items()
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--model", default=str(Path(os.environ.get("TOKENFORM_REAL", HERE.parent / ".real")) / "smollm2")
    )
    parser.add_argument("--rows", default=str(HERE / "choices.jsonl"))
    parser.add_argument("--form", default="text", choices=list(FORMS))
    parser.add_argument("--half", default="deciding", choices=["deciding", "aside"])
    parser.add_argument("--drafter", default="auto", choices=["auto", "none"])
    parser.add_argument("--kind", help="questions of one kind")
    parser.add_argument(
        "--unasked", action="store_true", help="texts alone, without the question before them"
    )
    args = parser.parse_args()
    gen = tf.Generator(args.model, drafter=None if args.drafter == "none" else "auto")
    rows = [json.loads(line) for line in Path(args.rows).read_text().splitlines()]
    rows = [row for row in rows if args.kind in (None, row["kind"]) and row["half"] == args.half]
    if args.unasked:
        rows = [
            row | {"question": row["question"].split("? ", 1)[1]} for row in rows if "? " in row["question"]
        ]
    right: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    passes, seconds, equal = collections.Counter[str](), collections.Counter[str](), 0
    form, priors = FORMS[args.form], dict[tuple[str, tuple[str, ...]], Scores]()
    for row in rows:
        options: list[str] = row["options"]
        prompt, grammar, taken = form(row["question"], options), tf.choice(options), {}
        for name, local in LOCAL.items():
            began = time.process_time()
            (result,) = gen.sample(prompt, grammar, sampler=local)
            seconds[name] += time.process_time() - began
            passes[name] += result.stats.forwards
            taken[name] = result.text
        neutral = {"without the question": form("", options), '"?"': [{"role": "user", "content": "?"}]}
        for name, words in neutral.items():
            if (name, tuple(options)) not in priors:
                priors[name, tuple(options)] = plain(gen, words, options)
        scores = plain(gen, prompt, options)
        ruled = rules(scores, {name: priors[name, tuple(options)] for name in neutral})
        equal += taken["whole"] == max(options, key=ruled["whole"].__getitem__)
        taken |= {
            rule: max(options, key=ranks.__getitem__) for rule, ranks in ruled.items() if rule != "whole"
        }
        for name, text in taken.items():
            right[name][row["kind"]] += text == row["right"]
    kinds = collections.Counter(row["kind"] for row in rows)
    heads = " | ".join(f"{kind} ({count})" for kind, count in kinds.items())
    print(f"| right of | {heads} | all ({len(rows)}) | passes | CPU s |")
    print("|---" * (len(kinds) + 4) + "|")
    for name, counts in right.items():
        told = " | ".join(str(counts[kind]) for kind in kinds)
        print(f"| {name} | {told} | {sum(counts.values())} | {passes[name] or '-'} | {seconds[name]:.0f} |")
    print(f"argmax: {equal} of {len(rows)}")


if __name__ == "__main__":
    main()
