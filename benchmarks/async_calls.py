"""Calls awaited at once beside the same calls one after the other, in turns in one run.

python benchmarks/async_calls.py --count 100                      # the built-in model
python benchmarks/async_calls.py --count 32 --vocabulary 131072   # random weights
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

import torch

import tokenform as tf

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "born": {"type": "integer"}},
    "required": ["name", "born"],
}


def opened(size: int) -> tf.Generator:
    if not size:
        return tf.Generator(drafter=None, batch_size=64)
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=size, hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4,
        eos_token_id=256,
    )  # fmt: skip
    tokens = [bytes([i]) for i in range(256)] + [b""] + [b"%d" % i for i in range(size - 257)]
    vocabulary = tf.Vocabulary(tokens, eos=[256])
    return tf.Generator(LlamaForCausalLM(config).eval(), vocabulary, drafter=None, batch_size=16)


async def at_once(generator: tf.Generator, prompts: list[Any]) -> list[str]:
    async with tf.AsyncGenerator(generator) as shared:
        results = await asyncio.gather(*(shared.sample(prompt, SCHEMA, seed=0) for prompt in prompts))
    return [one.text for (one,) in results]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--vocabulary", type=int, default=0)
    options = parser.parse_args()
    generator = opened(options.vocabulary)
    prompts: list[Any] = [f"Person {i} was born in {1800 + i}." for i in range(options.count)]
    if options.vocabulary:
        prompts = [list(prompt.encode()) for prompt in prompts]
    generator.sample(prompts[0], SCHEMA)
    for _ in range(2):
        began = time.perf_counter()
        alone = [generator.sample(prompt, SCHEMA, seed=0)[0].text for prompt in prompts]
        single = time.perf_counter() - began
        began = time.perf_counter()
        together = asyncio.run(at_once(generator, prompts))
        shared = time.perf_counter() - began
        same = sum(a == b for a, b in zip(alone, together, strict=True))
        print(f"{options.count} calls: {single:.2f} s one by one, {shared:.2f} s at once")
        print(f"{single / shared:.1f} times; equal texts: {same}")


if __name__ == "__main__":
    main()
