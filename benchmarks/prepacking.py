"""What prepacked weights save: products of a model's layers, and its passes, with and without, in turns.

python benchmarks/prepacking.py             # SmolLM2-135M-Instruct of `make real`
python benchmarks/prepacking.py --threads 1 --model FOLDER
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, DynamicCache

from tokenform.decoding.prepacked import prepack
from tokenform.decoding.speculative.backbone.facts import cache_name

WIDTHS = (1, 2, 4, 8, 16, 64, 256)


def milliseconds(run: Callable[[], Any], repeats: int = 7) -> float:
    """The median of some runs, after one."""
    run()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return 1000 * statistics.median(seconds)


def one_pass(model: Any, before: int, width: int) -> Callable[[], Any]:
    """A pass of `width` tokens behind `before` others."""
    ids = torch.arange(before + width)[None] * 37 % model.config.vocab_size
    cache = DynamicCache(config=model.config)
    name = cache_name(model) or "past_key_values"
    model(ids[:, :before], use_cache=True, **{name: cache})

    def run() -> None:
        model(ids[:, before:], use_cache=True, **{name: cache})
        cache.crop(-width)

    return run


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default=str(Path(__file__).parents[1] / ".real" / "smollm2"))
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--before", type=int, default=128, help="tokens in the cache")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    plain, packed = (
        AutoModelForCausalLM.from_pretrained(args.model, dtype=getattr(torch, args.dtype)).eval()
        for _ in range(2)
    )
    start = time.perf_counter()
    prepack(packed)
    print(f"prepacked in {time.perf_counter() - start:.2f} s; {args.threads} threads, {args.dtype}\n")
    print("| tokens of a pass | plain, ms | prepacked, ms | share |\n|---|---|---|---|")
    for width in WIDTHS:
        before, after = (milliseconds(one_pass(model, args.before, width)) for model in (plain, packed))
        print(f"| {width} | {before:.1f} | {after:.1f} | {after / before:.2f} |", flush=True)


if __name__ == "__main__":
    main()
