"""The application: routes, keys, errors, health, metrics and a graceful end.

from tokenform.server import create_app

app = create_app()  # the built-in model; run it with uvicorn, or `tokenform serve`
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenform.errors import extras
from tokenform.server import pages
from tokenform.server.answering import answer, count
from tokenform.server.endpoints import COUNTS, ENDPOINTS
from tokenform.server.engine import Engine
from tokenform.server.faults import Refused, closing, refused
from tokenform.server.guard import Guard, bearer
from tokenform.server.keys import Key, KeyFile
from tokenform.server.metrics import Metrics
from tokenform.server.origins import OwnPages
from tokenform.server.record import Recorded, traced

with extras():
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.requests import Request
    from starlette.responses import JSONResponse, RedirectResponse, Response
    from starlette.routing import Route

logger = logging.getLogger("tokenform.server")
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


@dataclass
class Server:
    """The state that requests share.

    Attributes:
        max_bytes: of a request's body.
        timeout: seconds that a request may take.
        patience: seconds that its body may take to come.
        grace: seconds for running requests when the server ends.
        closing: no request is taken any more.
        ended: those that run are over, too.
    """

    engine: Engine
    guard: Guard
    metrics: Metrics
    max_bytes: int
    timeout: float
    patience: float = 60.0
    grace: float = 30.0
    closing: bool = False
    ended: bool = False
    _pending: set[asyncio.Future[Any]] = field(default_factory=set)

    @contextlib.contextmanager
    def until_end(self, future: asyncio.Future[Any]) -> Iterator[None]:
        """Waits inside for a future that the server's end cancels.

        Raises:
            Refused: it did.
        """
        self._pending.add(future)
        try:
            yield
        except asyncio.CancelledError:
            if self.ended and future.cancelled():
                raise closing() from None
            raise
        finally:
            self._pending.discard(future)

    async def close(self) -> None:
        """Takes no more requests, and ends those that do not end within the grace."""
        self.closing = True
        until = time.monotonic() + self.grace
        while self.guard.in_use and time.monotonic() < until:
            await asyncio.sleep(0.05)
        self.ended = True
        for future in tuple(self._pending):
            future.cancel()
        await asyncio.to_thread(self.engine.scheduler.close, drain=False)

    def fault(self, error: Exception) -> Refused:
        """Any error as a refusal; what the server's end has broken off says so."""
        fault = refused(error)
        broken_off = fault.code == "busy" or (fault.code == "cancelled" and fault.status == 503)
        return closing() if self.closing and broken_off else fault


def create_app(
    engine: Engine | None = None,
    *,
    keys: Sequence[Key | str] = (),
    max_bytes: int = 4 << 20,
    timeout: float = 600.0,
    patience: float = 60.0,
    grace: float = 30.0,
    origins: Sequence[str] = (),
    hosts: Sequence[str] = (),
    playground: bool | None = None,
    key_file: KeyFile | None = None,
) -> Starlette:
    """The application that serves a model.

    Args:
        engine: the model; None: the built-in one.
        keys: callers: secrets, or `Key`s with their limits; none: anybody may call.
        max_bytes: of a request's body.
        timeout: seconds that a request may take.
        patience: seconds that its body may take to come.
        grace: seconds for running texts when the server ends.
        origins: web sites whose pages may call (CORS); none by default.
        hosts: names that a server without keys answers to, beside localhost and addresses.
        playground: serve the page; None: if there are no keys.  With keys the page asks for one.
        key_file: more keys, which may change while the server runs; with it every request needs a key.
    """
    engine = engine or Engine()
    named = [key if isinstance(key, Key) else Key(key, f"key-{i}") for i, key in enumerate(keys)]
    metrics = Metrics(lambda: engine.scheduler.load)
    server = Server(engine, Guard(named, key_file), metrics, max_bytes, timeout, patience, grace)

    @contextlib.asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        yield
        server.closing = True
        await asyncio.to_thread(engine.scheduler.close, timeout=grace)

    routes: list[Any] = [Route(one.path, _served(one, server), methods=["POST"]) for one in ENDPOINTS]
    routes += [Route(one.path, _served(one, server, count), methods=["POST"]) for one in COUNTS]
    routes += pages.routes(server)
    if server.guard.open if playground is None else playground:
        routes += _playground(server)
    middleware = [
        Middleware(Recorded, metrics=server.metrics),
        Middleware(OwnPages, origins=origins, hosts=list(hosts) if server.guard.open else None),
    ]
    if origins:
        allow_all: dict[str, Any] = {"allow_headers": ["*"], "allow_methods": ["*"]}
        exposed = ["X-Request-Id", "Retry-After"]
        cors = Middleware(CORSMiddleware, allow_origins=list(origins), expose_headers=exposed, **allow_all)
        middleware.append(cors)
    handlers: dict[Any, Any] = {404: _not_found, 405: _not_found}
    app = Starlette(routes=routes, lifespan=life, middleware=middleware, exception_handlers=handlers)
    app.state.server = server
    return app


def _playground(server: Server) -> list[Any]:
    """The page's routes, if it is installed."""
    try:
        from tokenform.server.playground import routes
    except ModuleNotFoundError:
        return []

    def admit(request: Request) -> None:
        request.state.record.key = server.guard.key(bearer(dict(request.headers))).name

    # origins and hosts are checked before (`origins.py`)
    options: dict[str, Any] = {
        "hosts": None,
        "admit": None if server.guard.open else admit,
        "served": server.engine.name,
    }
    page_routes = routes(server.engine.generator, path="/playground", **options)
    return [*page_routes, Route("/", _to_playground)]


async def _to_playground(_: Request) -> Response:
    return RedirectResponse("playground/")


def _served(endpoint: Any, server: Server, run: Callable[[Request, Any, Server], Any] = answer) -> Handler:
    """An endpoint, which `run` serves, with its errors and its span."""

    async def serve(request: Request) -> Response:
        record = request.state.record
        record.endpoint = endpoint.name
        with traced(endpoint.name) as span:
            span.set_attribute("tokenform.request", record.request)
            try:
                if server.closing:
                    raise closing()
                response: Response = await run(request, endpoint, server)
            except Exception as error:
                fault = server.fault(error)
                if fault.is_failure:
                    logger.error("request %s failed", record.request, exc_info=error)
                record.fail(fault.code)
                response = JSONResponse(endpoint.failure(fault), fault.status, headers=fault.headers)
            span.set_attribute("http.response.status_code", response.status_code)
        return response

    return serve


async def _not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    if status == 405:
        problem, code = "takes no such request", "method_not_allowed"
    else:
        problem, code = "is not served here", "not_found"
    fault = Refused(f"{request.method} {request.url.path} {problem}.", status=status, code=code)
    request.state.record.fail(fault.code)
    headers = getattr(error, "headers", None)  # of 405 the methods that are allowed
    return JSONResponse(fault.body(), status, headers=headers)
