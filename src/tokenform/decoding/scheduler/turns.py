"""Whose text is next: the owners of waiting texts take turns, so that nobody's many hold up another's one.

Threads: none of its own; the batch asks under its lock.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from tokenform.decoding.pieces import TextPieces
from tokenform.decoding.row import Row
from tokenform.decoding.scheduler.jobs import Job


@dataclass(eq=False)
class JobText:
    """One row on its way: waiting without a number, running with one.

    Attributes:
        pieces: turns its bytes into whole characters.
    """

    job: Job
    row: Row
    pieces: TextPieces
    number: int | None = None


class Turns:
    """The texts that wait."""

    def __init__(self) -> None:
        self._queues: OrderedDict[Hashable, deque[JobText]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def __iter__(self) -> Iterator[JobText]:
        return (text for queue in self._queues.values() for text in queue)

    def add(self, owner: Hashable, texts: Sequence[JobText]) -> None:
        """Puts texts behind their owner's others."""
        self._queues.setdefault(owner, deque()).extend(texts)

    def next(self) -> JobText | None:
        """The text whose owner's turn it is, of jobs that still want theirs; None: no text waits."""
        while self._queues:
            owner, queue = next(iter(self._queues.items()))
            text = queue.popleft()
            if queue:
                self._queues.move_to_end(owner)
            else:
                del self._queues[owner]
            if not text.job.ended:
                return text
        return None
