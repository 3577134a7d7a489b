"""Places that callers share fairly.

Purpose: few constraints are read at once, and one caller's many do not keep those of the others waiting.
Invariant: callers that wait are served in turns, each its own requests in order; where there are several
places, no caller has all of them, so that another finds one at once.
Rejected: one queue for all callers (a caller's hundred slow constraints went before everybody's next).
Threads: those of one event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque


class Turns:
    """Args:
    places: how many may be taken at once.
    """

    def __init__(self, places: int) -> None:
        self._free, self._share = places, max(places - 1, 1)
        self._taken: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def take(self, owner: str) -> None:
        """Waits for a place; `give_back` frees it."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(owner, turn)
            else:  # the place came in the same moment
                self.give_back(owner)
            raise

    def give_back(self, owner: str) -> None:
        """Frees a place for the next."""
        self._free += 1
        self._taken[owner] -= 1
        if not self._taken[owner]:
            del self._taken[owner]
        self._serve()

    def _serve(self) -> None:
        while self._free:
            owner = next((one for one in self._waiting if self._taken[one] < self._share), None)
            if owner is None:
                return
            turns = self._waiting.pop(owner)
            turn = turns.popleft()
            if turns:  # after all others
                self._waiting[owner] = turns
            if not turn.done():
                self._free -= 1
                self._taken[owner] += 1
                turn.set_result(None)

    def _leave(self, owner: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(owner, deque())
        if turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[owner]
