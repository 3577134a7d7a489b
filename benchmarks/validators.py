"""Passes of the model for a valid text, beside generating and asking again, for twenty types with validators.

    python benchmarks/validators.py --count 20 --distances --output benchmarks/results/validators.json

A tiny model of random weights over bytes.  "Ask again" is what independent texts cost under the same masks:
(tokens + 1) / share, with the share of valid texts that the run estimates.  `--distances` draws 300 to 6,000
more texts of each type and tells their total variation from the enumerated conditional distribution (ten
minutes); the largest is that of the type with most texts, where exact draws have about the same.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import tokenform as tf
from suites.validators import TYPES, distance, grammar_of, valid


def opened() -> tf.Generator:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = LlamaConfig(
        vocab_size=257, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        eos_token_id=256, initializer_range=0.3,
    )  # fmt: skip
    vocabulary = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    return tf.Generator(LlamaForCausalLM(config).double().eval(), vocabulary, drafter=None, batch_size=32)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--distances", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    generator, prompt, found = opened(), list(b"A number"), []
    print(f"{'type':<12}{'share':>10}{'valid':>7}{'passes':>9}{'ask again':>11}{'times':>8}{'distance':>10}")
    for tp in TYPES:
        results = generator.sample(
            prompt,
            grammar_of(tp),
            n=options.count,
            seed=2,
            sampler=tf.Local(),
            max_tries=200_000,
            on_error="return",
        )
        good = [one for one in results if isinstance(one, tf.Result) and valid(tp, one.text)]
        share = good[0].valid_share if good else None
        if share is None:
            continue
        passes = math.fsum(one.stats.forwards for one in good) / len(good)
        again = math.fsum(len(one.tokens) + 1 for one in good) / len(good) / share
        row: dict[str, Any] = {
            "type": tp.__name__, "share": share, "valid": len(good), "of": len(results), "passes": passes,
            "ask_again": again,
        }  # fmt: skip
        if options.distances:
            off = distance(generator, prompt, tp)
            row |= {
                "distance": off.distance,
                "draws": off.draws,
                "texts": off.texts,
                "exact_share": off.share,
            }
        found.append(row)
        print(
            f"{tp.__name__:<12}{share:>10.2g}{len(good):>4}/{len(results):<3}{passes:>8.1f}{again:>11.1f}"
            f"{again / passes:>8.1f}{row.get('distance', math.nan):>10.4f}",
            flush=True,
        )
        if options.output is not None:
            options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
