"""What takes calls from any thread: those that wait are counted, and what is too much is refused.

Purpose: `Scheduler` and the server's `CanvasScheduler` differ in what they run; this is what they share.
Threads: those of `Wholes`, while there is work.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TypeVar

from tokenform.decoding.calls import check_counts
from tokenform.decoding.scheduler.jobs import Job, Load
from tokenform.decoding.scheduler.whole import Wholes
from tokenform.errors import Busy

Self = TypeVar("Self", bound="JobQueue")


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

    def __enter__(self: Self) -> Self:
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
