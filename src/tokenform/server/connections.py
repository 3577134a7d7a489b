"""Connections that send at once, and are closed where a client sends nothing, or a byte now and then.

Purpose: an event is sent when it is written.  asyncio sees to that only for sockets that name their protocol,
which those of `uvicorn.Config.bind_socket` do not: the first event of a stream waited 40 ms, until the client
acknowledged the headers.
A silent client occupies a descriptor of the process for at most `PATIENCE` seconds; uvicorn waits without end
for the first request, and for the rest of one that has begun.
Invariant: a connection that waits for an answer is never closed here; bodies have their own timeout
(`answering.py`).
"""

from __future__ import annotations

import asyncio
import math
import socket
from typing import TYPE_CHECKING, Any

from tokenform.errors import extras

# uvicorn is an extra: type checkers take its classes for anything, hence the two ignores below
if TYPE_CHECKING:
    _Protocol: Any = asyncio.Protocol
    _Server: Any = object
else:
    with extras():
        from uvicorn import Server as _Server
        from uvicorn.protocols.http.auto import AutoHTTPProtocol as _Protocol

PATIENCE = 60.0
"""Seconds from a connection's beginning, or the end of an answer, to the last line of the next headers."""
LAST_WORDS = 4.0
"""Seconds for the answers of requests that the server's end has broken off."""


class Connection(_Protocol):  # type: ignore[misc]
    """A uvicorn connection for streams and strangers: `uvicorn.Config(http=Connection)`."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        connected = transport.get_extra_info("socket")
        if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """See uvicorn."""
        super().on_response_complete()
        self._wait()

    def _wait(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = self.loop.call_later(PATIENCE, self._give_up)

    def _give_up(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


class ClosingServer(_Server):  # type: ignore[misc]
    """A uvicorn server that tells its app of the end when it begins, so that requests that outlive the app's
    grace are answered; uvicorn alone cancels them, without a word to their clients.

    Args:
        config: of an app by `create_app`; its `timeout_graceful_shutdown` is set here.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._app = config.app.state.server
        config.timeout_graceful_shutdown = math.ceil(self._app.grace + LAST_WORDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        closing = asyncio.ensure_future(self._app.close())
        try:
            await super().shutdown(sockets)
        finally:
            closing.cancel()
