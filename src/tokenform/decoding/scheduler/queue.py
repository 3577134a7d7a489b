"""What takes calls from any thread: those that wait are counted, and what is too much is refused.

Purpose: `Scheduler` and the server's `CanvasScheduler` differ in what they run; this is what they share.
It runs calls as wholes: those of faithful samplers, which ask the model for distributions of many prefixes at
once, and of canvases.
Threads: at most `jobs`, each with caches of its own, while calls wait.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

from typing_extensions import Self

from tokenform.decoding.calls import check_counts
from tokenform.decoding.scheduler.jobs import FAILED, Job, Load
from tokenform.errors import Busy, Interrupted, own_error


class JobQueue(ABC):
    """Args:
        waiting: most texts that wait.
        jobs: calls that run at once as wholes.
    Raises:
        OptionError: a number is below 1.
    """

    def __init__(self, *, waiting: int, jobs: int) -> None:
        check_counts(waiting=waiting, jobs=jobs)
        self.waiting = waiting
        self._changed = threading.Condition()
        self._most, self._threads, self._closed = jobs, 0, False  # threads run calls as wholes
        self._wholes: deque[tuple[Job, Callable[[], None]]] = deque()  # that wait
        self._now = set[Job]()

    @property
    def load(self) -> Load:
        """What there is to do, and what was done."""
        with self._changed:
            load, waiting = self._texts_load(), len(self._wholes)
            load.waiting += waiting
            load.jobs = waiting + self._threads
            return load

    def close(self, *, drain: bool = True, timeout: float | None = None) -> bool:
        """Takes nothing more.

        Args:
            drain: write what was begun; False cancels it.
            timeout: seconds to wait; what is not written then is cancelled.
        Returns:
            Whether everything was written.
        """
        with self._changed:
            self._closed = True
            jobs = self._begun()
            idle = self._changed.wait_for(self._idle, timeout) if drain else self._idle()
        if not idle:
            for job in jobs:
                job.cancel()
            with self._changed:
                self._changed.wait_for(self._idle, 60.0)
        return idle

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(drain=False)

    # -- under the lock

    @abstractmethod
    def _texts_load(self) -> Load:
        """The load without the calls that run as wholes."""

    def _room(self) -> int:
        """How many texts would begin at once."""
        return 0

    def _begun(self) -> set[Job]:
        """The jobs that run or wait."""
        return {*self._now, *(job for job, _ in self._wholes)}

    def _idle(self) -> bool:
        return not (self._wholes or self._threads)

    def _refuse(self, count: int) -> None:
        """Refuses so many texts more, where they are too many."""
        waiting = self._texts_load().waiting + len(self._wholes)
        if not self._closed and waiting + count <= self.waiting + self._room():
            return
        error = Busy(
            "the scheduler is closed; nothing more is taken."
            if self._closed
            else f"{waiting} texts wait already, and at most {self.waiting} may; try again later."
        )
        error.waiting = waiting
        raise error

    def _enter(self, job: Job, work: Callable[[], None]) -> None:
        """Starts a call, or lets it wait.

        Args:
            work: tells the job its results; what it raises fails the job, but for `Interrupted`.
        """
        if self._threads < self._most:
            # before anything is kept: without memory it raises
            threading.Thread(target=self._run, name="tokenform-sampler", daemon=True).start()
            self._threads += 1
        self._wholes.append((job, work))

    # -- in a thread of its own

    def _run(self) -> None:
        """Runs calls, one after the other, until none waits."""
        done = set[Job]()
        while True:
            with self._changed:
                self._now -= done
                if not self._wholes:
                    self._threads -= 1
                    self._changed.notify_all()
                    return
                job, work = self._wholes.popleft()
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
