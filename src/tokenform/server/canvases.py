"""A diffusion model behind the server: the scheduler's calls, answered by filling canvases.

Purpose: `CanvasScheduler` takes the calls of `Engine`, as `Scheduler` does.  A text is streamed as far as its
first positions are known; positions behind an open one are filled before it, and come later.
Invariant: what such a model can't do (`unsupported`) is refused with its place, never left out.
Threads: one, while there are jobs; they wait in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from tokenform.decoding.diffusion import DiffusionGenerator
from tokenform.decoding.diffusion.denoisers import Known
from tokenform.decoding.pieces import TextPieces
from tokenform.decoding.results import Result
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.scheduler import Job, JobQueue, Listener, Load, Piece
from tokenform.decoding.tracing import traced_job
from tokenform.errors import Interrupted
from tokenform.server.faults import Refused
from tokenform.server.wanted import Wanted


class CanvasScheduler(JobQueue):
    """Args:
    waiting: most jobs that wait.
    """

    def __init__(self, generator: DiffusionGenerator, *, waiting: int = 256) -> None:
        super().__init__(waiting=waiting, jobs=1)
        self.generator, self._done = generator, Load()

    @traced_job
    def submit(
        self,
        prompt: Any,
        grammar: Any = None,
        *,
        n: int,
        max_tokens: int,
        sampler: Any,
        owner: Hashable,
        listener: Listener,
        **told: Any,
    ) -> Job:
        """Starts the texts of one prompt.

        Args:
            n, owner, listener: as for `Scheduler.submit`.
            max_tokens: most positions of the canvas, which has the generator's length where that is less.
            sampler: `Local`, of which the temperature counts; others: the generator's temperature.
            told: of `DiffusionGenerator.generate`.
        Raises:
            Busy: too many jobs wait, or the scheduler is closed.
        """
        with self._changed:
            self._refuse(1)
        job = Job(grammar, (), owner, listener, n)
        chat_options = told.get("chat_options")
        job.prompt_tokens = len(self.generator.prompt_ids(prompt, grammar, chat_options=chat_options))
        watch = _Told(self.generator, job, n)
        told |= {
            "n": n,
            "length": min(max_tokens, self.generator.length),
            "temperature": sampler.temperature if isinstance(sampler, Local) else None,
            "watch": watch,
        }

        def work() -> None:
            found = self.generator.generate(prompt, grammar, **told)
            results: list[Result] = found if n > 1 else [found]
            self._count(results)
            for number, result in enumerate(results):
                job.tell(watch.last(number, result))

        with self._changed:
            self._refuse(1)
            self._start(job, work)
        return job

    def _count(self, results: Sequence[Result]) -> None:
        with self._changed:
            for stats in (result.stats for result in results):
                self._done.tokens += stats.tokens
                self._done.seconds_model += stats.seconds_model
                self._done.seconds_mask += stats.seconds_mask
            passes = max(result.stats.forwards for result in results)  # which the texts share
            self._done.steps, self._done.forwards = self._done.steps + passes, self._done.forwards + passes

    def _texts_load(self) -> Load:
        return Load(**{**vars(self._done), "running": self._threads})


class _Told:
    """Tells a job what is known of its texts, and ends the work when nobody waits for them."""

    def __init__(self, generator: DiffusionGenerator, job: Job, n: int) -> None:
        self._vocabulary, self._job = generator.vocabulary, job
        self._texts = [TextPieces(()) for _ in range(n)]
        self._tokens: list[list[int]] = [[] for _ in range(n)]

    def __call__(self, number: int, canvas: Known) -> None:
        if self._job.ended:
            raise Interrupted("nobody waits for the text.")
        known = (
            canvas[: list(canvas).index(None)] if None in canvas else ()
        )  # the whole comes with its result
        tokens = [token for token in known if token is not None]
        end = next((at for at, token in enumerate(tokens) if token in self._vocabulary.eos), len(tokens))
        written, new = self._read(number, tokens[:end])
        if new:
            self._job.tell(Piece(number, written, new, [], []))

    def last(self, number: int, result: Result) -> Piece:
        """The rest of a text, with its result."""
        written, new = self._read(number, result.tokens)
        return Piece(number, written + self._texts[number].finish(), new, [], [], result)

    def _read(self, number: int, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """The characters and tokens that were not told yet."""
        new = list(tokens[len(self._tokens[number]) :])
        self._tokens[number] += new
        data = b"".join(self._vocabulary.token(token) for token in new)
        return self._texts[number].feed(data), new


def check(wanted: Wanted) -> None:
    """Refuses what is of models that write token by token.

    Raises:
        Refused: `unsupported_parameter`, with its place.
    """
    sampler = wanted.sampler
    asked = {
        "/sampler": sampler is not None and not isinstance(sampler, Local),
        "/top_p": isinstance(sampler, Local) and not sampler.truncation.off,
        "/frequency_penalty": wanted.penalties is not None,
        "/logit_bias": bool(wanted.transforms),
        "/stop": bool(wanted.stop),
        "/logprobs": wanted.alternatives is not None,
        "/drafter": wanted.drafter is not None,
        "/confidence": bool(wanted.confidence),
        wanted.asked.place: wanted.asked.thinking.enabled is True,
    }
    for place in (place for place, there in asked.items() if there):
        raise Refused(
            f"{place} is for models that write one token after the other; this one fills a canvas in any "
            "order: leave it out.",
            code="unsupported_parameter",
            param=place,
        )
