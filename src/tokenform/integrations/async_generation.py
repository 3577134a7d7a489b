"""`AsyncGenerator`, which opens models by name, and `agenerate`, one call for all.

Complexity: `agenerate` keeps the generators of the last few models; calls that run at once are one batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal, TypedDict, overload

from typing_extensions import Unpack

from tokenform.errors import OptionError, extras

with extras():
    from tokenform.decoding import async_generator
    from tokenform.decoding.async_generator import AsyncStream
    from tokenform.decoding.calls import DEFAULT_MAX_TOKENS, Prompt, pair
    from tokenform.decoding.results import Result, T
    from tokenform.decoding.validated import TRIES
    from tokenform.integrations import generation
    from tokenform.integrations.generation import Generator, constraint_of, sampler_of, unwrapped


class AsyncGenerator(async_generator.AsyncGenerator):
    """Writes texts for the tasks of an event loop; what they await at once is one batch.

    Args:
        model: a `Generator`; None for the built-in model; a path or hub name; or a causal language model.
        tokenizer: as for `Generator`.
        waiting: most texts that wait for a place; a call beyond it is refused (`Busy`).
        **options: as for `Generator`.

    >>> import asyncio, tokenform as tf
    >>> async def both():
    ...     async with tf.AsyncGenerator() as generator:
    ...         states = tf.choice(["new", "paid", "shipped"])
    ...         prompts = ("The order is now shipped.", "The order has been paid.")
    ...         calls = [generator.sample(prompt, states) for prompt in prompts]
    ...         return [one.text for (one,) in await asyncio.gather(*calls)]
    >>> asyncio.run(both())
    ['shipped', 'paid']
    """

    def __init__(
        self,
        model: Any = None,
        tokenizer: Any = None,
        *,
        waiting: int = async_generator.WAITING,
        **options: Any,
    ) -> None:
        known = isinstance(model, generation.generator.Generator)
        if known and (tokenizer is not None or options):
            raise OptionError("a Generator has its own tokenizer and options.")
        super().__init__(model if known else Generator(model, tokenizer, **options), waiting=waiting)


@lru_cache(maxsize=4)
def _named(model: str | None) -> async_generator.AsyncGenerator:
    return async_generator.AsyncGenerator(generation.named(model))


class AsyncOptions(TypedDict, total=False):
    """The options of `agenerate`, for type checkers."""

    model: AsyncGenerator | str | None
    seed: int | None
    max_tokens: int
    temperature: float
    top_k: int | None
    top_p: float
    min_p: float
    sampler: Any
    stop: str | Sequence[str]
    on_invalid: Literal["resample", "return", "raise"]
    max_tries: int


class AsyncConstraints(AsyncOptions, total=False):
    """The same, with the constraints whose values have no type of their own."""

    schema: Any
    regex: str | re.Pattern[str] | None
    choices: Iterable[str] | None
    grammar: Any
    type: Any


@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: Prompt, *, schema: type[T], n: Literal[1] = 1, **options: Unpack[AsyncOptions]
) -> Result[T]: ...
@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: Prompt, *, type: type[T], n: Literal[1] = 1, **options: Unpack[AsyncOptions]
) -> Result[T]: ...
@overload
async def agenerate(prompt: str, *, n: Literal[1] = 1, **options: Unpack[AsyncConstraints]) -> Result: ...
@overload
async def agenerate(prompt: Any, *, n: int = 1, **options: Unpack[AsyncConstraints]) -> Any: ...
async def agenerate(
    prompt: Any,
    *,
    schema: Any = None,
    regex: str | re.Pattern[str] | None = None,
    choices: Iterable[str] | None = None,
    grammar: Any = None,
    type: Any = None,  # the argument is named for its caller
    model: Any = None,
    n: int = 1,
    seed: int | None = None,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    min_p: float = 0.0,
    sampler: Any = None,
    stop: str | Sequence[str] = (),
    on_invalid: Literal["resample", "return", "raise"] = "resample",
    max_tries: int = TRIES,
) -> Any:
    """`generate` for event loops: calls that run at once share the model's passes.

    Args:
        model: None for the built-in model; a path or hub name; or an `AsyncGenerator`, for a model object.
        The others are those of `generate`.
    """
    constraint = constraint_of(schema, regex, choices, grammar, type)
    batched = pair(prompt, constraint)[2]
    writer = model if isinstance(model, async_generator.AsyncGenerator) else _named(model)
    results = await writer.sample(
        prompt,
        constraint,
        n=n,
        seed=seed,
        max_tokens=max_tokens,
        sampler=sampler_of(sampler, temperature, top_k, top_p, min_p),
        stop=stop,
        on_invalid=on_invalid,
        max_tries=max_tries,
    )
    return unwrapped(results, n, batched)


__all__ = ["AsyncGenerator", "AsyncStream", "agenerate"]
