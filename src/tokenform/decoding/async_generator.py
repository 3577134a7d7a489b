"""Generation for event loops: calls that run at once share the forward passes of one model.

Purpose: `AsyncGenerator` is a `Generator` beside a `Scheduler`; the texts of all tasks are one running batch,
which each text joins when a place is free and leaves when it has ended.
Invariant: a call with a seed has the texts that `Generator.sample` writes.  A cancelled call or a closed
stream leaves the batch at its next step.
Complexity: that of the scheduler; prompts are read and grammars compiled in threads, so the loop goes on.
Rejected: a thread for each call (each would run passes of its own).
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from typing import Any, Generic

from typing_extensions import Self

from tokenform.decoding.calls import AnySampler, check_varied
from tokenform.decoding.generator import Entries, Generator
from tokenform.decoding.keyed_random import fresh_seed
from tokenform.decoding.options import AGAIN, OWN, Call, with_keywords
from tokenform.decoding.progress import Progress
from tokenform.decoding.results import Result, T, too_long
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.scheduler import Job, Piece, Scheduler
from tokenform.decoding.speculative.drafters.base import Nothing
from tokenform.decoding.tracing import span_of
from tokenform.decoding.validated import law_of
from tokenform.errors import InvalidType, OptionError, TokenformError
from tokenform.frontends.partial_value import MISSING, Fields, PartialValue, partial_value

WAITING = 1 << 16  # texts of all calls


class AsyncGenerator:
    """Writes texts for the tasks of an event loop.

    Args:
        generator: the model and the defaults of a call; or a function that opens them.  In a running loop
            that is called in a thread, and the first call raises its errors.
        batch_size: most texts that run together; None is the generator's.
        waiting: most texts that wait for a place; a call beyond it is refused (`Busy`).

    Use `async with` or `await aclose()` to end it; else it ends when it is garbage-collected.
    """

    def __init__(
        self,
        generator: Generator | Callable[[], Generator],
        *,
        batch_size: int | None = None,
        waiting: int = WAITING,
    ) -> None:
        self._opening: Future[tuple[Generator, Scheduler]] = Future()

        def open_it() -> None:
            try:
                opened = generator if isinstance(generator, Generator) else generator()
                self._opening.set_result((opened, Scheduler(opened, batch_size=batch_size, waiting=waiting)))
            except BaseException as error:
                self._opening.set_exception(error)

        if isinstance(generator, Generator) or not _in_a_loop():
            open_it()
            self._opening.result()
        else:
            threading.Thread(target=open_it, name="tokenform-opening").start()

    def __repr__(self) -> str:
        opened = self._opening.done() and self._opening.exception() is None
        return (
            f"<{type(self).__name__} of {self.generator!r}>"
            if opened
            else f"<{type(self).__name__}, not open>"
        )

    @property
    def generator(self) -> Generator:
        """The model; waits until it is open."""
        return self._opening.result()[0]

    @property
    def scheduler(self) -> Scheduler:
        """What runs the texts; waits until the model is open."""
        return self._opening.result()[1]

    async def opened(self) -> Self:
        """Waits until the model is open, while the loop goes on."""
        if not self._opening.done():
            await asyncio.shield(asyncio.wrap_future(self._opening))
        return self

    @with_keywords()
    async def generate(self, prompt: Any, schema: Any = None, *, n: int = 1, **options: Any) -> Any:
        """Arguments, results and errors are those of `Generator.generate`, without `batch_size`."""
        return await self.write(prompt, Call.of(schema, {"n": n, **options}))

    __call__ = generate

    @with_keywords()
    async def sample(self, prompt: Any, schema: Any = None, *, n: int = 1, **options: Any) -> Any:
        """As `generate`; gives lists as `Generator.sample` does."""
        return await self.write(prompt, Call.of(schema, {"n": n, **options}), listed=True)

    async def write(self, prompt: Any, call: Call, *, listed: bool = False) -> Any:
        """The texts of a call; see `Generator.write`."""
        check_shared(call)
        await self.opened()
        with span_of(self.generator, prompt, call.schema, call.keywords) as ended:
            entries = await asyncio.to_thread(self.generator.entries, prompt, call)
            check_varied(call.n, entries.sampler)
            with Progress(len(entries.prompts), call.progress) as bar:

                async def one(
                    prompt: Any, grammar: Any, companion_prompt: Any, seed: int | None
                ) -> list[Any]:
                    results = await self._of_prompt(
                        prompt, grammar, companion_prompt, seed, entries.sampler, call
                    )
                    bar.advance(texts=1)
                    return results

                written = await asyncio.gather(*(one(*each) for each in zip(*entries[:4], strict=True)))
            return ended(call.collected(list(written), entries.batched, listed=listed))

    async def _of_prompt(
        self,
        prompt: Any,
        grammar: Any,
        companion_prompt: Any,
        seed: int | None,
        chosen: AnySampler,
        call: Call,
    ) -> list[Any]:
        """The results or errors of one prompt."""
        if isinstance(grammar, TokenformError):
            return [grammar] * call.n
        options = _options(call, companion_prompt, fresh_seed() if seed is None else seed)
        law, drafter = chosen, None
        if isinstance(chosen, Local):
            law, drafter = law_of(chosen, grammar, call), drafter_of(call)
        try:
            job = await self._submit(
                prompt, grammar, **options, n=call.n, sampler=law, stop=call.stop, drafter=drafter
            )
            return [*await asyncio.wrap_future(job.future)]
        except InvalidType:  # the texts are drawn again, as a call alone would
            options |= {name: getattr(call, name) for name in ("n", *AGAIN)}
            options |= {"sampler": chosen, "on_error": "return", "progress": False}
            sample: Callable[..., list[Any]] = self.generator.sample
            return await asyncio.to_thread(functools.partial(sample, prompt, grammar, **options))
        except TokenformError as error:
            return [error] * call.n

    @with_keywords(streamed=True)
    def stream(
        self, prompt: Any, schema: Any = None, *, partial: bool = False, **options: Any
    ) -> AsyncStream[Any]:
        """One text for one prompt as it is written; arguments are those of `Generator.stream`."""
        call = Call.of(schema, {"partial": partial, **options}, streamed=True)
        return AsyncStream(lambda: self, prompt, call)

    async def aclose(self) -> None:
        """Cancels running texts; takes no more calls."""
        await self.opened()
        await asyncio.to_thread(self.scheduler.close, drain=False)

    async def __aenter__(self) -> Self:
        return await self.opened()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _submit(self, *call: Any, **options: Any) -> Job:
        """Submits a call in a thread; its job is cancelled with the task."""
        submitted: Future[Job] = Future()

        def begin() -> Job:
            job = self.scheduler.submit(*call, **options)
            submitted.set_result(job)
            return job

        try:
            return await asyncio.to_thread(begin)
        except asyncio.CancelledError:
            submitted.add_done_callback(lambda made: made.result().cancel())
            raise


def check_shared(call: Call) -> None:
    if call.batch_size is not None:
        raise OptionError(
            "batch_size= is not for one of several calls at once: their texts run as one batch; give it to "
            "the generator."
        )


def _options(call: Call, companion_prompt: Any, seed: int | None) -> dict[str, Any]:
    """The keywords that a job and a call alone share."""
    shared = {"seed": seed, "max_tokens": call.max_tokens, "logprobs": call.logprobs}
    return {**shared, "companion_prompt": companion_prompt, **call.chat}


def drafter_of(call: Call) -> Any:
    """The drafter of a job of this call; None: the generator's."""
    return None if call.drafter in (OWN, "auto") else call.drafter or Nothing()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class AsyncStream(Generic[T]):
    """One text as it is written: `async for` gives pieces of text, or values with `partial=True`.

    It begins with the first iteration.  `async with` or `aclose()` ends it early and frees its place.

    Attributes:
        result: the text's, once the stream has ended.
    """

    def __init__(self, open_it: Callable[[], AsyncGenerator], prompt: Any, call: Call) -> None:
        check_shared(call)
        self._open, self._prompt, self._call = open_it, prompt, call
        self._fields = Fields(call.on_field) if call.partial else None
        self._reader: PartialValue | None = None
        self._job: Job | None = None
        self._ended = False
        self._pieces: asyncio.Queue[Piece | None] = asyncio.Queue()
        self.result: Result[T] | None = None

    def __repr__(self) -> str:
        return f"<AsyncStream, {'to be read' if self.result is None else f'ended: {self.result!r}'}>"

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
        if not self._ended:
            self._ended = await self._pieces.get() is None  # the job has ended, which closes its span
            if self._call.on_length == "raise" and self.result.reason == "length":
                raise too_long(self.result)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Cancels the text."""
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

        def on_piece(piece: Piece | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        call = self._call = await asyncio.to_thread(self._call.ready, self._prompt, streamed=True)
        writer = await (await asyncio.to_thread(self._open)).opened()
        entries = await asyncio.to_thread(self._read, writer.generator)
        prompt, grammar, companion_prompt, seed = entries.single()
        self._job = await writer._submit(
            prompt, grammar, **_options(call, companion_prompt, seed),
            sampler=entries.sampler, stop=call.stop, drafter=drafter_of(call), listener=on_piece,
        )  # fmt: skip
        self._job.future.add_done_callback(lambda _: on_piece(None))

    def _read(self, generator: Generator) -> Entries:
        """Reads the inputs; runs in a thread."""
        entries = generator.entries(self._prompt, self._call)
        if self._fields is not None:
            self._reader = partial_value(entries.single()[1], self._fields.tell)
        return entries

    async def _next(self) -> Piece:
        assert self._job is not None
        piece = await self._pieces.get()
        if piece is None:  # the job has ended without its last piece
            self._ended = True
            if self._job.future.cancelled():
                raise StopAsyncIteration
            error = self._job.future.exception()
            raise StopAsyncIteration if error is None else error
        return piece

    def _value(self, piece: Piece) -> Any:
        if piece.thought:
            if piece.text and self._call.on_reasoning is not None:
                self._call.on_reasoning(piece.text)
            return MISSING
        self.result = piece.result
        if self._reader is None:
            return piece.text
        self._reader.feed(piece.text)
        if piece.result is None:
            return self._reader.value()
        self._reader.finish()
        piece.result.value = self._reader.last(piece.result.value)
        return piece.result.value


__all__ = ["AsyncGenerator", "AsyncStream"]
