"""`AsyncGenerator`, which opens models by name, and `agenerate` and `astream`, functions for one call.

Complexity: the generators of the last few models are cached; calls that run at once are one batch.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any, Literal, overload

from typing_extensions import TypeForm, Unpack

from tokenform.errors import OptionError, extras

with extras():
    from tokenform.decoding import async_generator, generator
    from tokenform.decoding.async_generator import AsyncStream, check_shared
    from tokenform.decoding.options import (
        AnyFunctionOptions,
        Call,
        FunctionOptions,
        StreamFunctionOptions,
        with_keywords,
    )
    from tokenform.decoding.prompts import Prompt
    from tokenform.decoding.results import Result, T
    from tokenform.decoding.writing import Function, Many
    from tokenform.integrations.generation import Generator, parted, writer_of


class AsyncGenerator(async_generator.AsyncGenerator):
    """Writes texts for the tasks of an event loop; calls that run at once are one batch.

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
        is_generator = isinstance(model, generator.Generator)
        if is_generator and (tokenizer is not None or options):
            raise OptionError("a Generator has its own tokenizer and options.")
        opener = model if is_generator else functools.partial(Generator, model, tokenizer, **options)
        super().__init__(opener, waiting=waiting)


def _shared(model_options: dict[str, Any]) -> async_generator.AsyncGenerator:
    """The generator of a call; it may open a model, so the call is read before."""
    model = model_options.get("model")
    if isinstance(model, async_generator.AsyncGenerator):
        if others := [name for name in model_options if name != "model"]:
            raise OptionError(f"model= is an AsyncGenerator, which has its own {', '.join(others)}.")
        return model
    writer = writer_of(model_options)
    return writer.shared() if isinstance(writer, Generator) else async_generator.AsyncGenerator(writer)


@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: Many, schema: TypeForm[T], *, n: Literal[1] = 1, **options: Unpack[FunctionOptions]
) -> list[Result[T]]: ...
@overload
async def agenerate(
    prompt: Many, schema: TypeForm[T], *, n: int, **options: Unpack[FunctionOptions]
) -> list[list[Result[T]]]: ...
@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: Prompt, schema: TypeForm[T], *, n: Literal[1] = 1, **options: Unpack[FunctionOptions]
) -> Result[T]: ...
@overload
async def agenerate(  # type: ignore[overload-overlap]
    prompt: Prompt, schema: TypeForm[T], *, n: int, **options: Unpack[FunctionOptions]
) -> list[Result[T]]: ...
@overload
async def agenerate(
    prompt: Prompt, schema: Function, *, n: Literal[1] = 1, **options: Unpack[FunctionOptions]
) -> Result[dict[str, Any]]: ...
@overload
async def agenerate(
    prompt: str, schema: Any = None, *, n: Literal[1] = 1, **options: Unpack[AnyFunctionOptions]
) -> Result: ...
@overload
async def agenerate(
    prompt: Many, schema: Any = None, *, n: Literal[1] = 1, **options: Unpack[AnyFunctionOptions]
) -> list[Result]: ...
@overload
async def agenerate(
    prompt: Any, schema: Any = None, *, n: int = 1, **options: Unpack[AnyFunctionOptions]
) -> Any: ...
@with_keywords(model=True)
async def agenerate(prompt: Any, schema: Any = None, *, n: int = 1, **options: Any) -> Any:
    """`generate` for event loops: calls that run at once share the model's passes.

    The keywords, results and errors are those of `generate`; `model` may be an `AsyncGenerator`, too.

    Raises:
        Busy: too many texts wait already; and what `generate` raises.

    >>> import asyncio, tokenform as tf
    >>> asyncio.run(tf.agenerate("The order has been paid.", choices=["new", "paid"])).text
    'paid'
    """
    model_options, call_options = parted(options)
    call = Call.of(schema, {"n": n, **call_options})
    check_shared(call)
    call = await asyncio.to_thread(call.ready, prompt)  # a large type takes a second to read
    writer = await asyncio.to_thread(_shared, model_options)  # and a model seconds to open
    return await writer.write(prompt, call)


@with_keywords(streamed=True, model=True)
def astream(
    prompt: Any, schema: Any = None, *, partial: bool = False, **options: Unpack[StreamFunctionOptions]
) -> AsyncStream[Any]:
    """`stream` for event loops: `async for` gives the pieces; `result` is set when they have ended.

    >>> import asyncio, tokenform as tf
    >>> async def written():
    ...     return [piece async for piece in tf.astream("It is paid.", choices=["new", "paid"])]
    >>> "".join(asyncio.run(written()))
    'paid'
    """
    model_options, call_options = parted(options)
    call = Call.of(schema, {"partial": partial, **call_options}, streamed=True)
    return AsyncStream(lambda: _shared(model_options), prompt, call)


__all__ = ["AsyncGenerator", "AsyncStream", "agenerate", "astream"]
