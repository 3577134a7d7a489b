"""The model behind a server: its generator, its scheduler, its constraints and its format of tool calls.

Purpose: `begin` turns a request into a job of the scheduler, off the event loop.
Invariant: at most `compilers` requests read constraints at once; the others wait, in turns of their keys.  A
request without a constraint waits for none.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from tokenform.decoding.samplers.local import Local
from tokenform.decoding.scheduler import Job, Piece, Scheduler
from tokenform.decoding.thinking import NoThought
from tokenform.errors import DrafterError, ModelError, OptionError, PromptTooLong, TokenformError
from tokenform.frontends.tools import detect_format, find_format
from tokenform.integrations.diffusion import DiffusionGenerator, is_diffusion
from tokenform.integrations.generation import Generator
from tokenform.integrations.grammar_compiler import GrammarCompiler
from tokenform.server.canvases import CanvasScheduler, check
from tokenform.server.constraints import ConstraintReader
from tokenform.server.faults import Refused
from tokenform.server.keys import Key
from tokenform.server.text_request import TextRequest
from tokenform.server.turns import Turns

logger = logging.getLogger("tokenform.server")
BUILTIN = "tokenform-builtin"
_Made = TypeVar("_Made")
_WARM = {
    "type": "object",
    "properties": {"a": {"enum": [0, 1]}},
    "required": ["a"],
    "additionalProperties": False,
}


class Engine:
    """One model, ready to serve.

    Args:
        model: None for the built-in model, a path or hub name, or a `Generator`; `builtin:diffusion` is the
            built-in model that fills canvases, and a `DiffusionGenerator` serves others of its kind.
        name: for clients; None: its path, or `tokenform-builtin`.
        tool_format: how the model writes tool calls: a format's name or a `tf.tools.Format`; None: by its
            chat template.
        batch_size, waiting, jobs: of the scheduler.
        compilers: requests whose constraints are read at once.
        **options: of `Generator`, or `DiffusionGenerator`, for a model by name.
    Raises:
        ModelError, VocabularyError, OptionError: the model can't be used.
        ToolError: there is no such format.
    """

    def __init__(
        self,
        model: Any = None,
        *,
        name: str | None = None,
        tool_format: Any = None,
        batch_size: int = 32,
        waiting: int = 256,
        jobs: int = 1,
        compilers: int = 4,
        **options: Any,
    ) -> None:
        self.diffusion = is_diffusion(model)
        self.generator: Any = _open_model(model, self.diffusion, options)
        if self.generator.tokenizer is None:
            raise OptionError("a server reads and writes text: give a model with its tokenizer.")
        self.name = name or (model if isinstance(model, str) else BUILTIN)
        self.scheduler: Scheduler | CanvasScheduler = (
            CanvasScheduler(self.generator, waiting=waiting)
            if self.diffusion
            else Scheduler(self.generator, batch_size=batch_size, waiting=waiting, jobs=jobs)
        )
        vocabulary = self.generator.vocabulary
        self.compiler = GrammarCompiler(self.generator.tokenizer, size=vocabulary.size, eos=vocabulary.eos)
        self._compiling = Turns(compilers)
        self.format = (
            _format_of(self.generator.tokenizer) if tool_format is None else find_format(tool_format)
        )
        if tool_format is not None and not self.diffusion:
            self.generator.thoughts.format = self.format

    def warm_up(self) -> None:
        """Writes a few tokens, so that no request waits for what is made once: the template and the
        vocabulary read, the model tried for drafts, its kernels loaded."""
        try:
            self.generator.generate("Hello", _WARM, seed=0)
        except Exception as error:  # whatever a model raises; requests get it as their answer
            logger.warning("the first text failed: %s: %s", type(error).__name__, error)

    @property
    def sampler(self) -> Any:
        """The default sampler of requests."""
        return Local(self.generator.temperature) if self.diffusion else self.generator.sampler

    def reader(self, key: Key) -> ConstraintReader:
        """Reads constraints within a caller's limits."""
        return ConstraintReader(self.compiler, key.schema_bytes)

    def text(self, token: int) -> bytes:
        """The bytes of a token."""
        return bytes(self.generator.vocabulary.token(token))

    async def count_tokens(self, read: Callable[[], TextRequest], key: Key, bound: bool = True) -> int:
        """The number of tokens of a request's prompt; nothing is written.

        Args:
            read, bound: as for `begin`.
        Raises:
            Refused, TokenformError.
        """

        def count() -> int:
            request = read()
            options: Any = {"chat_options": request.chat_options}
            if not self.diffusion:
                options["thinking"] = request.thought.thinking
            with self._prompt_of(request):
                return len(self.generator.prompt_ids(self._prompt(request), request.grammar, **options))

        return await asyncio.shield(await self._in_turn(count, key, bound))

    async def begin(
        self, read: Callable[[], TextRequest], key: Key, listener: Callable[[Piece], None], bound: bool = True
    ) -> tuple[TextRequest, Job]:
        """Starts the texts of a request.

        Args:
            read: reads it, in a thread.
            listener: called with the pieces, in the event loop.
            bound: whether it has a constraint or tools.
        Raises:
            Refused, TokenformError.
        """
        loop = asyncio.get_running_loop()

        def tell(piece: Piece) -> None:
            loop.call_soon_threadsafe(listener, piece)

        def start() -> tuple[TextRequest, Job]:
            request = read()
            if self.diffusion:
                check(request)
            with self._prompt_of(request):
                return request, self._submit(request, key, tell)

        # not cancelled in the middle, so that a submitted job is always known and can be cancelled
        submitted = await self._in_turn(start, key, bound)
        try:
            return await asyncio.shield(submitted)
        except asyncio.CancelledError:
            submitted.add_done_callback(_drop)
            raise

    async def _in_turn(self, work: Callable[[], _Made], key: Key, bound: bool) -> asyncio.Future[_Made]:
        """Work that has begun in a thread, in the caller's turn where it reads a constraint."""
        if bound:
            await self._compiling.take(key.name)
        begun = asyncio.ensure_future(asyncio.to_thread(work))
        if bound:  # free when the thread is: who goes away and asks again takes no more of them
            begun.add_done_callback(lambda _: self._compiling.give_back(key.name))
        return begun

    def _submit(self, request: TextRequest, key: Key, on_piece: Callable[[Piece], None]) -> Job:
        if request.further_prompts:
            return self._submit_jobs(request, key, on_piece)
        return self._submit_job(request, key, on_piece)

    def _submit_jobs(self, request: TextRequest, key: Key, on_piece: Callable[[Piece], None]) -> Job:
        """The jobs of several prompts, as one: it ends with the first that fails, and they with it."""
        grammar: Any = request.grammar  # of no weight here: each job has its own
        whole = Job(grammar, key.name, on_piece, request.texts)
        prompts = [request.prompt, *request.further_prompts]

        def tell(number: int, piece: Piece) -> None:
            whole.tell(replace(piece, number=number * request.n + piece.number))

        def end_with_whole(job: Job) -> None:
            whole.future.add_done_callback(lambda _: job.cancel())

        def ended(job: Future[Any]) -> None:
            if job.cancelled():
                whole.cancel()
            elif (error := job.exception()) is not None:
                whole.fail(error)

        try:
            for number, prompt in enumerate(prompts):
                one = replace(request, prompt=prompt)
                job = self._submit_job(one, key, functools.partial(tell, number), len(prompts))
                end_with_whole(job)
                job.future.add_done_callback(ended)
                whole.prompt_tokens += job.prompt_tokens
        except BaseException:
            whole.cancel()
            raise
        return whole

    @contextlib.contextmanager
    def _prompt_of(self, request: TextRequest) -> Iterator[None]:
        """Gives errors of a prompt their place in the request."""
        try:
            yield
        except NoThought as error:
            raise Refused(str(error), code="unsupported_parameter", param=request.thought.place) from error
        except DrafterError as error:
            raise Refused(str(error), code="drafter_error", param="/drafter") from error
        except PromptTooLong as error:  # by the name that clients of OpenAI's API look for
            raise Refused(str(error), code="context_length_exceeded", param="/messages") from error
        except ModelError as error:  # before any pass: the model's template refuses these messages
            raise Refused(str(error), code="unreadable_prompt", param="/messages") from error

    def _prompt(self, request: TextRequest) -> Any:
        """The prompt, with the request's `show_schema`."""
        (prompt,) = self.generator.framed([request.prompt], None, None, request.show_schema)
        return prompt

    def _submit_job(
        self, request: TextRequest, key: Key, on_piece: Callable[[Piece], None], jobs: int = 1
    ) -> Job:
        most = max(key.tokens // (request.n * jobs), 1)
        options: dict[str, Any] = {
            "n": request.n,
            "seed": request.seed,
            "max_tokens": most if request.max_tokens is None else request.max_tokens,
            "sampler": request.sampler,
            "chat_options": request.chat_options,
            "limits": key.limits,
            "owner": key.name,
            "listener": on_piece,
        }
        if not self.diffusion:  # `check` has refused them
            options |= {
                "penalties": request.penalties,
                "transforms": request.transforms,
                "stop": list(request.stop),
                "alternatives": request.alternatives or 0,
                "logprobs": request.alternatives is not None or bool(request.confidence),
                "drafter": request.drafter,
                "thinking": request.thought.thinking,
            }
        return self.scheduler.submit(self._prompt(request), request.grammar, **options)


def _open_model(model: Any, diffusion: bool, options: Mapping[str, Any]) -> Any:
    """The generator of a model, by name or as an object."""
    if "length" in options and not diffusion:
        raise OptionError(
            "length is of the canvas of a diffusion model; max_tokens of a request is for others."
        )
    if hasattr(model, "generate"):
        return model
    if not diffusion:
        return Generator(model, **options)
    if unknown := set(options) - {"length", "temperature", "policy"}:
        raise OptionError(
            f"{', '.join(sorted(unknown))}: not for diffusion models; pass a DiffusionGenerator."
        )
    return DiffusionGenerator(model, **options)


def _drop(submitted: asyncio.Future[tuple[TextRequest, Job]]) -> None:
    """Cancels a job whose request was cancelled."""
    if not submitted.cancelled() and submitted.exception() is None:
        submitted.result()[1].cancel()


def _format_of(tokenizer: Any) -> Any:
    """The format of a model's tool calls, or the error that there is none."""
    try:
        return detect_format(tokenizer)
    except TokenformError as error:
        return error
