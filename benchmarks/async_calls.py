"""Calls awaited at once beside the same calls one after the other, in turns in one run.

python benchmarks/async_calls.py --count 100                      # the built-in model
python benchmarks/async_calls.py --count 100 --vocabulary 131072  # random weights
python benchmarks/async_calls.py --held MODEL                     # how long an event loop stands still

Ends with the load that is left after as many calls are cancelled on their way: no places may be taken.
`--held`: the longest turn of the loop while a model is opened by path and while a type of 1,500 fields is
compiled, cold: what the loop's own thread computes in it, and the wall, which also has what other threads do
under the interpreter's lock (reading a tokenizer's JSON, say) and what else the machine runs.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

import torch

import tokenform as tf

PERSON = {
    "type": "object",
    "properties": {  # bounded: random weights would write digits, keys and spaces for as long as they may
        "name": {"type": "string", "pattern": "^[A-Za-z ]{1,20}$"},
        "born": {"type": "integer", "minimum": 0, "maximum": 2100},
    },
    "required": ["name", "born"],
    "additionalProperties": False,
}
SCHEMA = tf.json_schema(PERSON, whitespace="compact", strings="canonical")


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


async def cancelled(generator: tf.Generator, prompts: list[Any]) -> tuple[int, int]:
    """Running and waiting texts after all calls were cancelled on their way."""
    async with tf.AsyncGenerator(generator) as shared:
        calls = [asyncio.create_task(shared.sample(prompt, SCHEMA, seed=0)) for prompt in prompts]
        while not shared.scheduler.load.running:
            await asyncio.sleep(0.01)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await shared.sample(prompts[0], SCHEMA, seed=0)  # whoever was to leave has left
        await asyncio.sleep(0.1)
        load = shared.scheduler.load
        return load.running, load.waiting


async def held_by(call: Any) -> tuple[float, float]:
    """The longest turn of the loop while a call is awaited: (seconds of its own thread, of the wall)."""
    own = wall = 0.0
    task = asyncio.ensure_future(call)
    computed, began = time.thread_time(), time.perf_counter()
    while not task.done():
        await asyncio.sleep(0.001)
        own, computed = max(own, time.thread_time() - computed), time.thread_time()
        wall, began = max(wall, time.perf_counter() - began), time.perf_counter()
    await task
    return own, wall


async def held(model: str) -> None:
    import pydantic

    fields: dict[str, Any] = {f"field_{number}": (int | None, number) for number in range(1500)}
    large = pydantic.create_model("Large", first=(bool, ...), **fields)
    calls = {
        "a model is opened": lambda: tf.agenerate("a", regex="[a-z]{2}", model=model, max_tokens=4),
        "a large type is compiled": lambda: tf.agenerate("a", schema=large, model=model, max_tokens=30),
        "both are there": lambda: tf.agenerate("a", schema=large, model=model, max_tokens=30),
    }
    for name, call in calls.items():
        own, wall = await held_by(call())
        print(f"{name}: own {1e3 * own:.1f} ms, wall {1e3 * wall:.0f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--held", metavar="MODEL", help="a folder or file of a model; measures this alone")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--vocabulary", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of a model's pass")
    options = parser.parse_args()
    if options.held:
        asyncio.run(held(options.held))
        return
    torch.set_num_threads(options.threads)
    generator = opened(options.vocabulary)
    prompts: list[Any] = [f"Person {i} was born in {1800 + i}." for i in range(options.count)]
    if options.vocabulary:
        prompts = [list(prompt.encode()) for prompt in prompts]
    generator.sample(prompts[0], SCHEMA)
    for _ in range(options.rounds):
        began = time.perf_counter()
        alone = [generator.sample(prompt, SCHEMA, seed=0)[0].text for prompt in prompts]
        single = time.perf_counter() - began
        began = time.perf_counter()
        together = asyncio.run(at_once(generator, prompts))
        shared = time.perf_counter() - began
        same = sum(a == b for a, b in zip(alone, together, strict=True))
        print(f"{options.count} calls: {single:.2f} s one by one, {shared:.2f} s at once")
        print(f"{single / shared:.1f} times; equal texts: {same}", flush=True)
    running, waiting = asyncio.run(cancelled(generator, prompts))
    print(f"after {options.count} cancelled calls: {running} running, {waiting} waiting")


if __name__ == "__main__":
    main()
