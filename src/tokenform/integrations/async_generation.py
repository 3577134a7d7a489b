"""`AsyncGenerator`, which opens models by name, and `agenerate`, one call for all.

Complexity: `agenerate` keeps the generators of the last few models; calls that run at once are one batch.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any, Literal, overload

from typing_extensions import TypeForm, Unpack

from tokenform.engine.opening import opened_once
from tokenform.errors import OptionError, extras

with extras():
    from tokenform.decoding import async_generator
    from tokenform.decoding.async_generator import AsyncStream
    from tokenform.decoding.prompts import Prompt, is_batch
    from tokenform.decoding.results import Result, T
    from tokenform.integrations import generation
    from tokenform.integrations.generation import (
        CallOptions,
        Function,
        Generator,
        Untyped,
        call_of,
        unwrapped,
    )


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
    ...         status = {"enum": ["new", "paid", "shipped"]}
    ...         order = {"properties": {"status": status}, "required": ["status"]}
    ...         prompts = ("The order is now shipped.", "The order has been paid.")
    ...         calls = [generator.sample(prompt, order) for prompt in prompts]
    ...         return [one.text for (one,) in await asyncio.gather(*calls)]
    >>> asyncio.run(both())
    ['{"status": "shipped"}', '{"status": "paid"}']
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
        made = model if known else functools.partial(Generator, model, tokenizer, **options)
        super().__init__(made, waiting=waiting)


@opened_once(4)
def _named(model: str | None) -> async_generator.AsyncGenerator:
    return async_generator.AsyncGenerator(generation.named(model))


class AsyncOptions(CallOptions, total=False):
    """The options of `agenerate`, for type checkers."""

    model: AsyncGenerator | str | None


class AsyncConstraints(AsyncOptions, Untyped, total=False):
    """`agenerate` with constraints whose values have no type of their own."""


@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: Prompt, *, schema: TypeForm[T], n: Literal[1] = 1, **options: Unpack[AsyncOptions]
) -> Result[T]: ...
@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: Prompt, *, type: TypeForm[T], n: Literal[1] = 1, **options: Unpack[AsyncOptions]
) -> Result[T]: ...
@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: Prompt, *, schema: TypeForm[T], n: int, **options: Unpack[AsyncOptions]
) -> list[Result[T]]: ...
@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: Prompt, *, type: TypeForm[T], n: int, **options: Unpack[AsyncOptions]
) -> list[Result[T]]: ...
@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: list[str], *, schema: TypeForm[T], n: Literal[1] = 1, **options: Unpack[AsyncOptions]
) -> list[Result[T]]: ...
@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: list[str], *, type: TypeForm[T], n: Literal[1] = 1, **options: Unpack[AsyncOptions]
) -> list[Result[T]]: ...
@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: list[str], *, schema: TypeForm[T], n: int, **options: Unpack[AsyncOptions]
) -> list[list[Result[T]]]: ...
@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: list[str], *, type: TypeForm[T], n: int, **options: Unpack[AsyncOptions]
) -> list[list[Result[T]]]: ...
@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: Prompt, *, schema: Function, n: Literal[1] = 1, **options: Unpack[AsyncOptions]
) -> Result[dict[str, Any]]: ...
@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: Prompt, *, type: Function, n: Literal[1] = 1, **options: Unpack[AsyncOptions]
) -> Result[dict[str, Any]]: ...
@overload
async def agenerate(prompt: str, *, n: Literal[1] = 1, **options: Unpack[AsyncConstraints]) -> Result: ...
@overload
async def agenerate(
    prompt: list[str], *, n: Literal[1] = 1, **options: Unpack[AsyncConstraints]
) -> list[Result]: ...
@overload
async def agenerate(prompt: Any, *, n: int = 1, **options: Unpack[AsyncConstraints]) -> Any: ...
async def agenerate(prompt: Any, *, model: Any = None, n: int = 1, **options: Any) -> Any:
    """`generate` for event loops: calls that run at once share the model's passes.

    Args:
        prompt: a text, chat messages, or a list of texts.
        model: None for the built-in model; a path or hub name; or an `AsyncGenerator`, for a model object.
        n: results for each prompt.
        **options: those of `generate`, but for what belongs to a generator (`tokenizer`, `drafter`,
            `mixture`, `companion`, `penalties`).
    Returns:
        What `generate` returns.
    Raises:
        Busy: too many texts wait already; and what `generate` raises.

    >>> import asyncio, tokenform as tf
    >>> asyncio.run(tf.agenerate("The order has been paid.", choices=["new", "paid"])).text
    'paid'
    """
    own = isinstance(model, async_generator.AsyncGenerator)
    # in threads: a model takes seconds to open, a large type one to read
    constraint, options = await asyncio.to_thread(functools.partial(call_of, **options))
    batched = is_batch(prompt) or isinstance(constraint, list | tuple)
    writer = model if own else await asyncio.to_thread(_named, model)
    return unwrapped(await writer.sample(prompt, constraint, n=n, **options), n, batched)


__all__ = ["AsyncGenerator", "AsyncStream", "agenerate"]
