"""A diffusion model behind the server: the scheduler's calls, answered by filling canvases.

Purpose: `CanvasScheduler` takes the calls of `Engine`, as `Scheduler` does.  A stream has the text up to the
first open position; positions after it come later.
Invariant: fields that such a model does not support are refused with their place, never ignored.
Threads: one, while there are jobs; they run in the order in which they came.
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
from tokenform.server.text_request import TextRequest


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
        **options: Any,
    ) -> Job:
        """Starts the texts of one prompt.

        Args:
            n, owner, listener: as for `Scheduler.submit`.
            max_tokens: most positions of the canvas, at most the generator's length.
            sampler: `Local`, of which only the temperature counts; others: the generator's temperature.
            options: of `DiffusionGenerator.generate`.
        Raises:
            Busy: too many jobs wait, or the scheduler is closed.
        """
        with self._changed:
            self._refuse(1)
        job = Job(grammar, owner, listener, n)
        chat_options = options.get("chat_options")
        job.prompt_tokens = len(self.generator.prompt_ids(prompt, grammar, chat_options=chat_options))
        watch = _Watch(self.generator, job, n)
        options |= {
            "n": n,
            "length": min(max_tokens, self.generator.length),
            "temperature": sampler.temperature if isinstance(sampler, Local) else None,
            "watch": watch,
        }

        def work() -> None:
            found = self.generator.generate(prompt, grammar, **options)
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


class _Watch:
    """Sends the known part of texts to a job, and ends the work when the job has ended."""

    def __init__(self, generator: DiffusionGenerator, job: Job, n: int) -> None:
        self._vocabulary, self._job = generator.vocabulary, job
        self._texts = [TextPieces(()) for _ in range(n)]
        self._tokens: list[list[int]] = [[] for _ in range(n)]

    def __call__(self, number: int, canvas: Known) -> None:
        if self._job.ended:
            raise Interrupted("nobody waits for the text.")
        prefix = (
            canvas[: list(canvas).index(None)] if None in canvas else ()
        )  # the whole comes with its result
        tokens = [token for token in prefix if token is not None]
        end = next((at for at, token in enumerate(tokens) if token in self._vocabulary.eos), len(tokens))
        text, new = self._read(number, tokens[:end])
        if new:
            self._job.tell(Piece(number, text, new, [], []))

    def last(self, number: int, result: Result) -> Piece:
        """The rest of a text, with its result."""
        text, new = self._read(number, result.tokens)
        return Piece(number, text + self._texts[number].finish(), new, [], [], result)

    def _read(self, number: int, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """The characters and tokens that were not sent yet."""
        new = list(tokens[len(self._tokens[number]) :])
        self._tokens[number] += new
        data = b"".join(self._vocabulary.token(token) for token in new)
        return self._texts[number].feed(data), new


def check(request: TextRequest) -> None:
    """Refuses fields for models that write token by token.

    Raises:
        Refused: `unsupported_parameter`, with its place.
    """
    sampler = request.sampler
    used = {
        "/sampler": sampler is not None and not isinstance(sampler, Local),
        "/top_p": isinstance(sampler, Local) and not sampler.truncation.off,
        "/frequency_penalty": request.penalties is not None,
        "/logit_bias": bool(request.transforms),
        "/stop": bool(request.stop),
        "/logprobs": request.alternatives is not None,
        "/drafter": request.drafter is not None,
        "/confidence": bool(request.confidence),
        request.thought.place: request.thought.thinking.enabled is True,
    }
    for place in (place for place, there in used.items() if there):
        raise Refused(
            f"{place} is for models that write one token after the other; this one fills a canvas in any "
            "order: leave it out.",
            code="unsupported_parameter",
            param=place,
        )
