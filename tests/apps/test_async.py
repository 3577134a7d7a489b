"""Calls of an event loop: one running batch, the texts of calls alone, places that are freed."""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import Coroutine
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, field_validator

import tokenform as tf
from tokenform import errors

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["n"],
}


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 120))


async def quiet(generator: tf.AsyncGenerator) -> None:
    """Waits until nothing runs or waits."""
    while (load := generator.scheduler.load).running or load.waiting:
        await asyncio.sleep(0.005)


def test_a_call_may_do_without_log_probabilities(small: tf.Generator) -> None:
    async def work() -> None:
        async with tf.AsyncGenerator(small) as generator:
            (untold,) = await generator.sample("a", tf.regex("[a-z]{6}"), seed=1, logprobs=False)
            (alone,) = small.sample("a", tf.regex("[a-z]{6}"), seed=1)
            assert untold.tokens == alone.tokens and untold.token_logprobs == []
            assert math.isnan(untold.logprob)
            stream = generator.stream("a", tf.regex("[a-z]{6}"), seed=1, logprobs=False)
            assert "".join([piece async for piece in stream]) == alone.text
            assert stream.result is not None and math.isnan(stream.result.logprob)

    run(work())


def test_calls_at_once_have_the_texts_of_calls_alone(small: tf.Generator) -> None:
    letters = tf.regex("[a-z]{6}")

    async def work() -> None:
        async with tf.AsyncGenerator(small) as generator:
            calls = [
                generator.sample(f"number {i}", letters, seed=i, n=1 + i % 2, sampler=tf.Local())
                for i in range(20)
            ]
            results = await asyncio.gather(*calls)
            steps = generator.scheduler.load.steps
        for i, several in enumerate(results):
            alone = small.sample(f"number {i}", letters, seed=i, n=1 + i % 2, sampler=tf.Local())
            assert [one.text for one in several] == [one.text for one in alone]
        assert steps < sum(len(one.tokens) for several in results for one in several) / 3

    run(work())


def test_agenerate_with_the_built_in_model() -> None:
    async def work() -> None:
        words = ["new", "paid", "shipped"]
        prompts = [f"The order has been {word}." for word in words]
        alone = [one.text for one in tf.generate(prompts, choices=words)]
        calls = [tf.agenerate(prompt, choices=words) for prompt in prompts]
        assert [one.text for one in await asyncio.gather(*calls)] == alone
        assert [one.text for one in await tf.agenerate(prompts, choices=words)] == alone
        with pytest.raises(errors.OptionError):
            await tf.agenerate("x", choices=words, regex="a")

    run(work())


def test_streams(small: tf.Generator) -> None:
    async def work() -> None:
        async with tf.AsyncGenerator(small) as generator:
            stream = generator.stream("x", SCHEMA, seed=3, sampler=tf.Local())
            text = "".join([piece async for piece in stream])
            assert stream.result is not None and stream.result.text == text
            assert text == small.sample("x", SCHEMA, seed=3, sampler=tf.Local())[0].text
            told: list[Any] = []
            values = generator.stream("x", SCHEMA, seed=3, sampler=tf.Local(), partial=True)
            seen = [value async for value in values.on_field("/n", told.append)]
            assert seen[-1] == values.result.value and told == [seen[-1]["n"]] and seen[0] == {}

    run(work())


def test_what_is_cancelled_leaves_no_place_taken(small: tf.Generator) -> None:
    async def work() -> None:
        endless = tf.regex("[a-z]{400}")
        async with tf.AsyncGenerator(small) as generator:
            tasks = [asyncio.create_task(generator.sample("x", endless, seed=i)) for i in range(12)]
            while not generator.scheduler.load.running:
                await asyncio.sleep(0.005)
            for task in tasks:
                task.cancel()
            assert all(
                isinstance(one, asyncio.CancelledError)
                for one in await asyncio.gather(*tasks, return_exceptions=True)
            )
            await quiet(generator)
            async with generator.stream("x", endless) as stream:
                async for _ in stream:
                    break
            await quiet(generator)
            left = generator.stream("x", endless)
            await left.__anext__()
            del left
            gc.collect()
            await quiet(generator)
            early = asyncio.create_task(generator.sample("x", endless))
            await asyncio.sleep(0)
            early.cancel()
            with pytest.raises(asyncio.CancelledError):
                await early
            await quiet(generator)
            assert (await generator.sample("x", SCHEMA, seed=0))[0].value["n"] >= 0

    run(work())


class Picky(BaseModel):
    n: Annotated[int, Field(ge=0, le=9)]

    @field_validator("n")
    @classmethod
    def small_one(cls, value: int) -> int:
        if value > 4:
            raise ValueError("too large")
        return value


def test_validators_and_errors(small: tf.Generator) -> None:
    class Broken(Picky):
        @field_validator("n")
        @classmethod
        def broken(cls, value: int) -> int:
            raise KeyError("mine")

    async def work() -> None:
        options: dict[str, Any] = {"n": 12, "seed": 4, "sampler": tf.Local(values="token")}
        grammar = tf.from_type(Picky, whitespace="compact", strings="canonical")
        async with tf.AsyncGenerator(small) as generator:
            results = await generator.sample("A number", grammar, **options)
            assert [one.text for one in results] == [
                one.text for one in small.sample("A number", grammar, **options)
            ]
            with pytest.raises(errors.InvalidType) as caught:
                await generator.sample("A number", grammar, on_invalid="raise", **options)
            assert sum(one is not None for one in caught.value.results) > 0
            with pytest.raises(KeyError, match="mine"):
                await generator.sample("A number", Broken)
            mixed = await generator.sample(
                ["x", "y"], [SCHEMA, tf.regex("a{90}")], max_tokens=20, on_error="return"
            )
            assert mixed[0][0].value["n"] >= 0 and isinstance(mixed[1][0], errors.BudgetTooSmall)
        with pytest.raises(errors.Busy):
            await generator.sample("x", SCHEMA)

    run(work())
