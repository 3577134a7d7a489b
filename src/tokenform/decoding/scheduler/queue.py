"""A queue that takes calls from any thread, and refuses those beyond its bound.

Purpose: what `Scheduler` and the server's `CanvasScheduler` share.  It runs whole calls, each in one thread:
those of faithful samplers, which need distributions of many prefixes at once, and of canvases.
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
        jobs: most whole calls that run at once.
    Raises:
        OptionError: a number is below 1.
    """

    def __init__(self, *, waiting: int, jobs: int) -> None:
        check_counts(waiting=waiting, jobs=jobs)
        self.waiting = waiting
        self._changed = threading.Condition()
        self._most_threads, self._threads, self._closed = jobs, 0, False  # threads run calls as wholes
        self._calls: deque[tuple[Job, Callable[[], None]]] = deque()  # that wait
        self._running_jobs = set[Job]()

    @property
    def load(self) -> Load:
        """The work that waits, runs and is done."""
        with self._changed:
            load, waiting = self._texts_load(), len(self._calls)
            load.waiting += waiting
            load.jobs = waiting + self._threads
            return load

    def close(self, *, drain: bool = True, timeout: float | None = None) -> bool:
        """Takes no more calls.

        Args:
            drain: finish what has begun; False cancels it.
            timeout: seconds to wait; what is not finished then is cancelled.
        Returns:
            Whether everything was finished.
        """
        with self._changed:
            self._closed = True
            jobs = self._active_jobs()
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
        """The load without the whole calls."""

    def _free_places(self) -> int:
        """How many texts would begin at once."""
        return 0

    def _active_jobs(self) -> set[Job]:
        """The jobs that run or wait."""
        return {*self._running_jobs, *(job for job, _ in self._calls)}

    def _idle(self) -> bool:
        return not (self._calls or self._threads)

    def _refuse(self, count: int) -> None:
        """Refuses `count` more texts if they are too many."""
        waiting = self._texts_load().waiting + len(self._calls)
        if not self._closed and waiting + count <= self.waiting + self._free_places():
            return
        error = Busy(
            "the scheduler is closed; nothing more is taken."
            if self._closed
            else f"{waiting} texts wait already, and at most {self.waiting} may; try again later."
        )
        error.waiting = waiting
        raise error

    def _start(self, job: Job, work: Callable[[], None]) -> None:
        """Starts a call, or queues it.

        Args:
            work: hands the results to the job; an exception other than `Interrupted` fails the job.
        """
        if self._threads < self._most_threads:
            # before any state changes: it raises when memory is short
            threading.Thread(target=self._run, name="tokenform-sampler", daemon=True).start()
            self._threads += 1
        self._calls.append((job, work))

    # -- in a thread of its own

    def _run(self) -> None:
        """Runs calls, one after the other, until none waits."""
        done = set[Job]()
        while True:
            with self._changed:
                self._running_jobs -= done
                if not self._calls:
                    self._threads -= 1
                    self._changed.notify_all()
                    return
                job, work = self._calls.popleft()
                self._running_jobs.add(job)
                done = {job}
            if job.ended:
                continue
            try:
                work()
            except Interrupted:  # nobody waits for it any more
                pass
            except Exception as error:
                job.fail(own_error(error, FAILED))
