"""What takes calls from any thread: those that wait are counted, and what is too much is refused.

Purpose: `Scheduler` and the server's `CanvasScheduler` differ in what they run; this is what they share.
`Wholes` runs calls of faithful samplers, which ask the model for distributions of many prefixes at once.
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
        self._wholes = Wholes(jobs, self._changed)
        self._closed = False

    @property
    def load(self) -> Load:
        """What there is to do, and what was done."""
        with self._changed:
            load, waiting = self._texts_load(), self._wholes.waiting
            load.waiting += waiting
            load.jobs = waiting + self._wholes.running
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
        return set(self._wholes.jobs)

    def _idle(self) -> bool:
        return not (self._wholes.waiting or self._wholes.running)

    def _refuse(self, count: int) -> None:
        """Refuses so many texts more, where they are too many."""
        waiting = self._texts_load().waiting + self._wholes.waiting
        if not self._closed and waiting + count <= self.waiting + self._room():
            return
        error = Busy(
            "the scheduler is closed; nothing more is taken."
            if self._closed
            else f"{waiting} texts wait already, and at most {self.waiting} may; try again later."
        )
        error.waiting = waiting
        raise error
