"""Calls of faithful samplers, which ask the model for distributions of many prefixes at once and so run as
wholes.

Threads: at most `jobs`, each with caches of its own, while calls wait.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from tokenform.decoding.aligned.protocols import Float, LanguageModel, Tokens
from tokenform.decoding.aligned.wrapped import WrappedModel
from tokenform.decoding.generator import Generator
from tokenform.decoding.results import Result
from tokenform.decoding.scheduler.jobs import FAILED, Job, Piece
from tokenform.errors import Interrupted, own_error

Work = Callable[[LanguageModel], list[Result]]


class Wholes:
    """Args:
    jobs: calls that run at once.
    changed: the scheduler's lock, told whenever there is less to do.
    """

    def __init__(self, jobs: int, changed: threading.Condition) -> None:
        self._most, self._changed = jobs, changed
        self._waiting: deque[tuple[Job, Callable[[], None]]] = deque()
        self._threads, self._now = 0, set[Job]()

    @property
    def waiting(self) -> int:
        """How many calls wait; asked under the lock, as the two below."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """How many threads run calls."""
        return self._threads

    @property
    def jobs(self) -> list[Job]:
        """All calls that run or wait."""
        return [*self._now, *(job for job, _ in self._waiting)]

    def enter(self, job: Job, work: Callable[[], None]) -> None:
        """Starts a call, or lets it wait; under the lock.

        Args:
            work: tells the job its results; what it raises fails the job, but for `Interrupted`.
        """
        if self._threads < self._most:
            # before anything is kept: without memory it raises
            threading.Thread(target=self._run, name="tokenform-sampler", daemon=True).start()
            self._threads += 1
        self._waiting.append((job, work))

    def _run(self) -> None:
        """Runs calls, one after the other, until none waits."""
        done = set[Job]()
        while True:
            with self._changed:
                self._now -= done
                if not self._waiting:
                    self._threads -= 1
                    self._changed.notify_all()
                    return
                job, work = self._waiting.popleft()
                self._now.add(job)
                done = {job}
            if job.ended:
                continue
            try:
                work()
            except Interrupted:  # nobody waits for it any more
                pass
            except Exception as error:
                job.fail(own_error(error, FAILED))


def drawn(generator: Generator, job: Job, work: Work) -> None:
    """Runs a call of a faithful sampler and tells its job."""
    results = work(_Asked(generator.language_model(), job.future))
    job.expected = len(results)
    for number, one in enumerate(results):
        if one.thought is not None:
            job.tell(Piece(number, one.thought.text, one.thought.tokens, [], [], thought=True))
        job.tell(Piece(number, one.text, list(one.tokens), [], [], one, cut=one.cut_at))


class _Asked(WrappedModel):
    """A language model that is not asked any more once nobody wants the answer."""

    def __init__(self, model: LanguageModel, future: Future[list[Result]]) -> None:
        super().__init__(model)
        self._future = future

    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        if self._future.done():
            raise Interrupted("the job was cancelled.")
        return super().logprobs(prefixes)
