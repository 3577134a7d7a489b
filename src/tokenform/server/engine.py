"""The model behind a server: its generator, its scheduler, its constraints and its format of tool calls.

Purpose: `begin` turns what a request wants into a job of the scheduler, off the event loop.
Invariant: at most `compilers` requests read constraints at once; the others wait their turn.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tokenform.decoding.samplers.local import Local
from tokenform.decoding.scheduler import Job, Piece, Scheduler
from tokenform.decoding.thinking import NoThought
from tokenform.errors import DrafterError, ModelError, OptionError, TokenformError
from tokenform.frontends.tools import detect_format, find_format
from tokenform.integrations.asked import GrammarCompiler
from tokenform.integrations.diffusion import DiffusionGenerator, is_diffusion
from tokenform.integrations.generation import Generator
from tokenform.server.canvases import CanvasScheduler, check
from tokenform.server.constraints import ConstraintReader
from tokenform.server.faults import Refused
from tokenform.server.keys import Key
from tokenform.server.wanted import Wanted

BUILTIN = "tokenform-builtin"


class Engine:
    """One model, ready to serve.

    Args:
        model: None for the built-in model, a path or hub name, or a `Generator`; `builtin:diffusion` is the
            built-in model that fills canvases, and a `DiffusionGenerator` serves others of its kind.
        name: what clients call it; None: its path, or `tokenform-builtin`.
        tool_format: how the model writes calls of tools: a format's name or a `tf.tools.Format`; None: as its
            chat template shows.
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
        self.generator: Any = _opened(model, self.diffusion, options)
        if self.generator.tokenizer is None:
            raise OptionError("a server reads and writes text: give a model with its tokenizer.")
        self.name = name or (model if isinstance(model, str) else BUILTIN)
        self.scheduler: Scheduler | CanvasScheduler = (
            CanvasScheduler(self.generator, waiting=waiting)
            if self.diffusion
            else Scheduler(self.generator, batch_size=batch_size, waiting=waiting, jobs=jobs)
        )
        vocabulary = self.generator.vocabulary
        self.asked = GrammarCompiler(self.generator.tokenizer, size=vocabulary.size, eos=vocabulary.eos)
        self._compiling = asyncio.Semaphore(compilers)
        self.format = (
            _format_of(self.generator.tokenizer) if tool_format is None else find_format(tool_format)
        )
        if tool_format is not None and not self.diffusion:
            self.generator.thoughts.format = self.format

    @property
    def sampler(self) -> Any:
        """How texts are drawn where a request says nothing."""
        return Local(self.generator.temperature) if self.diffusion else self.generator.sampler

    def reader(self, key: Key) -> ConstraintReader:
        """Reads constraints within a caller's limits."""
        return ConstraintReader(self.asked, key.schema_bytes)

    def text(self, token: int) -> bytes:
        """The bytes of a token."""
        return bytes(self.generator.vocabulary.token(token))

    async def counted(self, read: Callable[[], Wanted]) -> int:
        """How many tokens the prompt of a request has; nothing is written.

        Args:
            read: reads it, in a thread.
        Raises:
            Refused, TokenformError.
        """

        def count() -> int:
            wanted = read()
            told: Any = {"chat_options": wanted.chat_options}
            if not self.diffusion:
                told["thinking"] = wanted.asked.thinking
            with self._prompt_of(wanted):
                return len(self.generator.prompt_ids(self._shown(wanted), wanted.grammar, **told))

        async with self._compiling:
            return await asyncio.to_thread(count)

    async def begin(
        self, read: Callable[[], Wanted], key: Key, listener: Callable[[Piece], None]
    ) -> tuple[Wanted, Job]:
        """Starts what a request wants.

        Args:
            read: reads it, in a thread.
            listener: is told the pieces, in the event loop.
        Raises:
            Refused, TokenformError.
        """
        loop = asyncio.get_running_loop()

        def tell(piece: Piece) -> None:
            loop.call_soon_threadsafe(listener, piece)

        def start() -> tuple[Wanted, Job]:
            wanted = read()
            if self.diffusion:
                check(wanted)
            return wanted, self._submit(wanted, key, tell)

        async with self._compiling:
            # not cancelled in the middle: a job that was begun is always known, and can be cancelled
            begun = asyncio.ensure_future(asyncio.to_thread(start))
            try:
                return await asyncio.shield(begun)
            except asyncio.CancelledError:
                begun.add_done_callback(_drop)
                raise

    def _submit(self, wanted: Wanted, key: Key, tell: Callable[[Piece], None]) -> Job:
        with self._prompt_of(wanted):
            return self._begun(wanted, key, tell)

    @contextlib.contextmanager
    def _prompt_of(self, wanted: Wanted) -> Iterator[None]:
        """Says of what is wrong with a prompt where it stands in the request."""
        try:
            yield
        except NoThought as error:
            raise Refused(str(error), code="unsupported_parameter", param=wanted.asked.place) from error
        except DrafterError as error:
            raise Refused(str(error), code="drafter_error", param="/drafter") from error
        except ModelError as error:  # nothing has run: the model's template refuses these messages
            raise Refused(str(error), code="unreadable_prompt", param="/messages") from error

    def _shown(self, wanted: Wanted) -> Any:
        """The prompt, with the schema shown or not, as the request says."""
        (prompt,) = self.generator.framed([wanted.prompt], None, None, wanted.show_schema)
        return prompt

    def _begun(self, wanted: Wanted, key: Key, tell: Callable[[Piece], None]) -> Job:
        most = max(key.tokens // wanted.n, 1)
        told: dict[str, Any] = {
            "n": wanted.n,
            "seed": wanted.seed,
            "max_tokens": most if wanted.max_tokens is None else wanted.max_tokens,
            "sampler": wanted.sampler,
            "chat_options": wanted.chat_options,
            "limits": key.limits,
            "owner": key.name,
            "listener": tell,
        }
        if not self.diffusion:  # `check` has refused them
            told |= {
                "penalties": wanted.penalties,
                "transforms": wanted.transforms,
                "stop": list(wanted.stop),
                "alternatives": wanted.alternatives or 0,
                "logprobs": wanted.alternatives is not None or bool(wanted.confidence),
                "drafter": wanted.drafter,
                "thinking": wanted.asked.thinking,
            }
        return self.scheduler.submit(self._shown(wanted), wanted.grammar, **told)


def _opened(model: Any, diffusion: bool, options: Mapping[str, Any]) -> Any:
    """The generator of a model, by name or made already."""
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


def _drop(begun: asyncio.Future[tuple[Wanted, Job]]) -> None:
    """Cancels a job that nobody waits for any more."""
    if not begun.cancelled() and begun.exception() is None:
        begun.result()[1].cancel()


def _format_of(tokenizer: Any) -> Any:
    """The format of a model's tool calls, or why there is none."""
    try:
        return detect_format(tokenizer)
    except TokenformError as error:
        return error
