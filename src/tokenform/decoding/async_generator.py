"""Generation for event loops: calls that run at once share the forward passes of one model.

Purpose: `AsyncGenerator` is a `Generator` beside a `Scheduler`; what many tasks await is one running batch,
which each text joins when there is room and leaves when it has ended.
Invariant: a call with a seed has the texts that `Generator.sample` writes.  A call that is cancelled, or a
stream that is given up, leaves the batch at its next step.
Complexity: that of the scheduler; prompts are read and grammars compiled in threads, so the loop goes on.
Rejected: a thread for each call (each would run passes of its own).
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Generic

from typing_extensions import Self

from tokenform.decoding.calls import (
    DEFAULT_MAX_TOKENS,
    AnySampler,
    check_reactions,
    check_varied,
    ending_at,
    given_back,
    pair,
    pair_one,
    seeds_of,
)
from tokenform.decoding.generator import Generator
from tokenform.decoding.keyed_random import fresh_seed
from tokenform.decoding.prompts import ShowSchema
from tokenform.decoding.results import Result, T, too_long
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.scheduler import Job, Piece, Scheduler
from tokenform.decoding.thinking import Thinking
from tokenform.decoding.tracing import traced
from tokenform.decoding.validated import Again, law_of
from tokenform.errors import InvalidType, OptionError, TokenformError
from tokenform.frontends.partial_value import MISSING, Fields, PartialValue, partial_value

WAITING = 1 << 16  # texts of all calls


class AsyncGenerator:
    """Writes texts for the tasks of an event loop.

    Args:
        generator: the model and the defaults of a call; or a function that opens them, which in a running
            loop is called in a thread: what it raises, the first call does.
        batch_size: most texts that run together; None is the generator's.
        waiting: most texts that wait for a place; a call beyond it is refused (`Busy`).

    Use it as `async with`, or `await aclose()`; without, it lasts as long as somebody holds it.
    """

    def __init__(
        self,
        generator: Generator | Callable[[], Generator],
        *,
        batch_size: int | None = None,
        waiting: int = WAITING,
    ) -> None:
        self._opened: Future[tuple[Generator, Scheduler]] = Future()

        def open_it() -> None:
            try:
                made = generator if isinstance(generator, Generator) else generator()
                self._opened.set_result((made, Scheduler(made, batch_size=batch_size, waiting=waiting)))
            except BaseException as error:
                self._opened.set_exception(error)

        if isinstance(generator, Generator) or not _in_a_loop():
            open_it()
            self._opened.result()
        else:
            threading.Thread(target=open_it, name="tokenform-opening").start()

    @property
    def generator(self) -> Generator:
        """The model; waits until it is open."""
        return self._opened.result()[0]

    @property
    def scheduler(self) -> Scheduler:
        """What runs the texts; waits until the model is open."""
        return self._opened.result()[1]

    async def opened(self) -> Self:
        """Waits until the model is open, while the loop goes on."""
        if not self._opened.done():
            await asyncio.shield(asyncio.wrap_future(self._opened))
        return self

    async def sample(self, prompt: Any, grammar: Any = None, **options: Any) -> Any:
        """Arguments, results and errors are those of `Generator.sample`."""
        await self.opened()
        return await self._sample(prompt, grammar, **options)

    @traced
    async def _sample(
        self,
        prompt: Any,
        grammar: Any = None,
        *,
        n: int = 1,
        seed: int | Sequence[int] | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        sampler: AnySampler | None = None,
        stop: str | Sequence[str] = (),
        on_error: str = "raise",
        on_invalid: str = "resample",
        feedback: bool = False,
        max_tries: int | None = None,
        max_seconds: float | None = None,
        on_length: str = "return",
        logprobs: bool = True,
        raw: bool | None = None,
        system: str | None = None,
        show_schema: ShowSchema | None = None,
        thinking: Thinking | bool | int | None = None,
        chat_options: Mapping[str, Any] | None = None,
    ) -> Any:
        check_reactions(on_error, on_invalid, on_length)
        tries = {"feedback": feedback, "max_tries": max_tries, "max_seconds": max_seconds}
        # in a thread: a large type takes a second to read
        prompts, grammars, batched = await asyncio.to_thread(
            lambda: pair(prompt, ending_at(stop, grammar), on_error)
        )
        prompts = self.generator.framed(prompts, raw, system, show_schema)
        seeds = seeds_of(seed, len(prompts))
        chosen = self.generator.chosen(sampler)
        check_varied(n, chosen)
        again = Again(on_invalid, feedback, max_tries, max_seconds, stop)

        alone: Callable[..., list[Any]] = self.generator.sample

        async def one(number: int) -> list[Any]:
            key = seeds[number]
            options = {
                "n": n,
                "seed": fresh_seed() if key is None else key,
                "max_tokens": max_tokens,
                "sampler": sampler,
                "logprobs": logprobs,
                "thinking": thinking,
                "chat_options": chat_options,
            }
            bare = None if stop else grammars[number]  # free text is made again of its stops
            if isinstance(bare, TokenformError):
                return [bare] * n
            call = (prompts[number], bare)
            try:
                law = law_of(chosen, bare, again) if isinstance(chosen, Local) else chosen
                job = await self._submitted(*call, **options | {"sampler": law}, stop=stop)
                results = await asyncio.wrap_future(job.future)
                return [*results]
            except InvalidType:  # the texts are drawn again, as a call alone would
                redrawn = {**options, "on_error": "return", "on_invalid": on_invalid, **tries}
                return await asyncio.to_thread(functools.partial(alone, *call, **redrawn))
            except TokenformError as error:
                return [error] * n

        written = await asyncio.gather(*(one(number) for number in range(len(prompts))))
        return given_back(list(written), batched, on_error, on_length)

    def stream(
        self,
        prompt: Any,
        grammar: Any = None,
        *,
        seed: int | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        sampler: AnySampler | None = None,
        stop: str | Sequence[str] = (),
        on_length: str = "return",
        partial: bool = False,
        on_field: Mapping[str, Callable[[Any], Any]] | None = None,
        logprobs: bool = True,
        raw: bool | None = None,
        system: str | None = None,
        show_schema: ShowSchema | None = None,
        thinking: Thinking | bool | int | None = None,
        chat_options: Mapping[str, Any] | None = None,
        on_reasoning: Callable[[str], Any] | None = None,
    ) -> AsyncStream[Any]:
        """One text for one prompt as it is written; arguments are those of `Generator.stream`."""
        if on_field is not None and not partial:
            raise OptionError("on_field= is for streams of values; add partial=True.")
        check_reactions(on_length=on_length)
        options: dict[str, Any] = {"seed": seed, "max_tokens": max_tokens, "sampler": sampler, "stop": stop}
        options |= {"logprobs": logprobs, "thinking": thinking, "chat_options": chat_options}
        shown, fields = (raw, system, show_schema), Fields(on_field) if partial else None
        return AsyncStream(self, (prompt, grammar), shown, options, fields, on_length, on_reasoning)

    async def aclose(self) -> None:
        """Ends what is being written; nothing more is taken."""
        await self.opened()
        await asyncio.to_thread(self.scheduler.close, drain=False)

    async def __aenter__(self) -> Self:
        return await self.opened()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _submitted(self, *call: Any, **options: Any) -> Job:
        """The job of a call, made in a thread; one that nobody waits for any more is cancelled."""
        begun: Future[Job] = Future()

        def begin() -> Job:
            job = self.scheduler.submit(*call, **options)
            begun.set_result(job)
            return job

        try:
            return await asyncio.to_thread(begin)
        except asyncio.CancelledError:
            begun.add_done_callback(lambda made: made.result().cancel())
            raise


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class AsyncStream(Generic[T]):
    """One text as it is written: `async for` gives pieces of text, or values with `partial=True`.

    It begins when it is first asked.  As `async with`, or by `aclose()`, it ends early and frees its place.

    Attributes:
        result: the text's, once the stream has ended.
    """

    def __init__(
        self,
        owner: AsyncGenerator,
        call: tuple[Any, Any],
        shown: tuple[bool | None, str | None, ShowSchema | None],
        options: dict[str, Any],
        fields: Fields | None,
        on_length: str = "return",
        on_reasoning: Callable[[str], Any] | None = None,
    ) -> None:
        self._owner, self._call, self._shown, self._options = owner, call, shown, options
        self._fields, self._on_length, self._on_reasoning = fields, on_length, on_reasoning
        self._reader: PartialValue | None = None
        self._job: Job | None = None
        self._over = False
        self._pieces: asyncio.Queue[Piece | None] = asyncio.Queue()
        self.result: Result[T] | None = None

    def on_field(self, pointer: str, function: Callable[[Any], Any]) -> AsyncStream[T]:
        """Calls a function with the value of a field as soon as it is complete, see `Partials.on_field`."""
        if self._fields is None:
            raise OptionError("on_field is for streams of values; add partial=True.")
        self._fields.add(pointer, function)
        return self

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        if self._job is None:
            await self._begin()
        while self.result is None:
            piece = await self._next()
            try:
                value = self._value(piece)
            except BaseException:
                await self.aclose()
                raise
            if value is not MISSING and (value or self._fields is not None):
                return value  # type: ignore[no-any-return]
        if not self._over:
            self._over = await self._pieces.get() is None  # the job's own end, which closes its span
            if self._on_length == "raise" and self.result.reason == "length":
                raise too_long(self.result)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Gives the text up."""
        if self._job is not None:
            self._job.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if self._job is not None:
            self._job.cancel()

    async def _begin(self) -> None:
        loop, pieces = asyncio.get_running_loop(), self._pieces

        def told(piece: Piece | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        await self._owner.opened()
        prompt, constraint = await asyncio.to_thread(self._read)
        self._job = await self._owner._submitted(prompt, constraint, **self._options, listener=told)
        self._job.future.add_done_callback(lambda _: told(None))

    def _read(self) -> tuple[Any, Any]:
        """The prompt and its grammar, in a thread; free text is made again of its stops."""
        (prompt, grammar), stop = self._call, self._options["stop"]
        prompt, constraint = pair_one(prompt, ending_at(stop, grammar), "stream")
        (prompt,) = self._owner.generator.framed([prompt], *self._shown)
        if self._fields is not None:
            self._reader = partial_value(constraint, self._fields.tell)
        return prompt, None if stop else constraint

    async def _next(self) -> Piece:
        assert self._job is not None
        piece = await self._pieces.get()
        if piece is None:  # it has ended without its last piece
            self._over = True
            if self._job.future.cancelled():
                raise StopAsyncIteration
            error = self._job.future.exception()
            raise StopAsyncIteration if error is None else error
        return piece

    def _value(self, piece: Piece) -> Any:
        if piece.thought:
            if piece.text and self._on_reasoning is not None:
                self._on_reasoning(piece.text)
            return MISSING
        self.result = piece.result
        if self._reader is None:
            return piece.text
        self._reader.feed(piece.text)
        if piece.result is None:
            return self._reader.value()
        self._reader.finish()
        return piece.result.value


__all__ = ["AsyncGenerator", "AsyncStream"]
