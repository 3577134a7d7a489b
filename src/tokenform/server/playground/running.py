"""Work off the event loop: a few threads, a bounded queue before them, and streams of events out of them.

Invariant: at most `THREADS` jobs run and `WAITING` wait; more are refused.  A job whose reader is gone ends
at its next event, or at the model's next pass.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.responses import StreamingResponse

from tokenform.errors import Interrupted, TokenformError
from tokenform.server.playground.queries import error_fields

THREADS = 2
WAITING = 30
BEAT = 2.0
"""Seconds after which a stream without news sends a sign, which fails where nobody reads."""
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class QueueFull(Exception):
    """Too many jobs wait."""


class Workers:
    """The threads of one app's playground."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, "playground")
        self._slots = threading.BoundedSemaphore(THREADS + WAITING)

    async def run(self, job: Callable[[], _T]) -> _T:
        """The result or error of a job; `QueueFull` where too many wait."""
        return await asyncio.wrap_future(self._submit(job))

    def _submit(self, job: Callable[[], _T]) -> Any:
        if not self._slots.acquire(blocking=False):
            raise QueueFull
        future = self._pool.submit(job)
        future.add_done_callback(lambda _: self._slots.release())
        return future

    def stream(self, job: Callable[[Channel], None]) -> StreamingResponse:
        """The events that the job sends, as server-sent events."""
        channel = Channel(asyncio.get_running_loop())
        future = self._submit(lambda: channel.serve(job))
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(channel.events(future), media_type="text/event-stream", headers=headers)


class Channel:
    """A queue of events from a job to its reader."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._queue, self._gone = loop, asyncio.Queue[Any](), threading.Event()

    def check(self) -> None:
        """Raises `Interrupted` where nobody reads any more."""
        if self._gone.is_set():
            raise Interrupted("the reader is gone.")

    def send(self, kind: str, event: Mapping[str, Any]) -> None:
        """Sends an event; raises `Interrupted` where nobody reads any more."""
        self.check()
        self._put({"type": kind, **event})

    def _put(self, event: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, event)
        except RuntimeError:  # the loop is closed
            self._gone.set()

    def serve(self, job: Callable[[Channel], None]) -> None:
        """Runs the job; its error is the last event."""
        try:
            self.check()
            job(self)
        except Interrupted:
            pass
        except TokenformError as error:
            self._put({"type": "error", **error_fields(error)})
        except Exception:
            _log.exception("a job of the playground failed")
            self._put({"type": "error", "kind": "EngineError", "message": "the server made a mistake."})
        finally:
            self._put(None)

    async def events(self, future: Any) -> AsyncIterator[str]:
        """The text of the stream."""
        try:
            while True:
                try:
                    event = await asyncio.wait_for(self._queue.get(), BEAT)
                except asyncio.TimeoutError:  # another class before Python 3.11
                    yield ": still at work\n\n"
                    continue
                if event is None:
                    return
                yield f"data: {json.dumps(event)}\n\n"
        finally:
            self._gone.set()
            future.cancel()
