"""The application: routes, keys, errors, health, metrics and a graceful end.

from tokenform.server import create_app

app = create_app()  # the built-in model; run it with uvicorn, or `tokenform serve`
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from tokenform.errors import extras
from tokenform.server.answering import answer, count
from tokenform.server.endpoints import COUNTS, ENDPOINTS
from tokenform.server.engine import Engine
from tokenform.server.faults import Refused, refused
from tokenform.server.guard import Guard, Key
from tokenform.server.metrics import CONTENT_TYPE, Metrics
from tokenform.server.origins import OwnPages
from tokenform.server.tracing import traced

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
    """What requests share.

    Attributes:
        max_bytes: of a request's body.
        timeout: seconds that a request may take.
    """

    engine: Engine
    guard: Guard
    metrics: Metrics
    max_bytes: int
    timeout: float
    closing: bool = False


def create_app(
    engine: Engine | None = None,
    *,
    keys: Sequence[Key | str] = (),
    max_bytes: int = 4 << 20,
    timeout: float = 600.0,
    grace: float = 30.0,
    origins: Sequence[str] = (),
    hosts: Sequence[str] = (),
    playground: bool = True,
) -> Starlette:
    """The application that serves a model.

    Args:
        engine: the model; None: the built-in one.
        keys: who may ask: secrets, or `Key`s with their limits; none: anybody.
        max_bytes: of a request's body.
        timeout: seconds that a request may take.
        grace: seconds that texts under way have when the server ends.
        origins: web sites whose pages may ask (CORS); none by default.
        hosts: names that a server without keys answers to, beside localhost and addresses.
        playground: serve the page, where no keys are asked for.
    """
    engine = engine or Engine()
    named = [key if isinstance(key, Key) else Key(key, f"key-{i}") for i, key in enumerate(keys)]
    server = Server(engine, Guard(named), Metrics(lambda: engine.scheduler.load), max_bytes, timeout)

    @contextlib.asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        import asyncio

        yield
        server.closing = True
        await asyncio.to_thread(engine.scheduler.close, timeout=grace)

    routes: list[Any] = [Route(one.path, _served(one, server), methods=["POST"]) for one in ENDPOINTS]
    routes += [Route(one.path, _served(one, server, count), methods=["POST"]) for one in COUNTS]
    routes += [
        Route("/v1/models", _guarded(_models, server)),
        Route("/v1/models/{name:path}", _guarded(_model, server)),
        Route("/health", _plain(_health, server)),
        Route("/metrics", _guarded(_metrics, server)),
    ]
    if playground and server.guard.open:  # its own requests have no key
        routes += _playground(engine)
    own = Middleware(OwnPages, origins=origins, hosts=list(hosts) if server.guard.open else None)
    cors = Middleware(CORSMiddleware, allow_origins=list(origins), allow_headers=["*"], allow_methods=["*"])
    handlers: dict[Any, Any] = {404: _not_found, 405: _not_found}
    middleware = [own, cors] if origins else [own]
    app = Starlette(routes=routes, lifespan=life, middleware=middleware, exception_handlers=handlers)
    app.state.server = server
    return app


def _playground(engine: Engine) -> list[Any]:
    """The page's routes, where it is part of the installation."""
    try:
        from tokenform.server.playground import routes
    except ModuleNotFoundError:
        return []
    return [*routes(engine.generator, path="/playground"), Route("/", _to_playground)]


async def _to_playground(_: Request) -> Response:
    return RedirectResponse("/playground/")


def _served(endpoint: Any, server: Server, run: Callable[[Request, Any, Server], Any] = answer) -> Handler:
    """An endpoint, which `run` serves, with its errors, its metrics, its line in the log and its span."""

    async def serve(request: Request) -> Response:
        began = time.monotonic()
        with traced(endpoint.name) as span:
            try:
                if server.closing:
                    raise Refused(
                        "the server is closing.", status=503, code="closing", headers={"Retry-After": "5"}
                    )
                response: Response = await run(request, endpoint, server)
            except Exception as error:
                fault = refused(error)
                if fault.status >= 500 and fault.status not in (503, 504):
                    logger.error("a request failed", exc_info=error, extra={"endpoint": endpoint.name})
                server.metrics.refusals.labels(fault.code).inc()
                response = JSONResponse(endpoint.failure(fault), fault.status, headers=fault.headers)
            span.set_attribute("http.response.status_code", response.status_code)
        server.metrics.requests.labels(endpoint.name, str(response.status_code)).inc()
        said = {
            "endpoint": endpoint.name,
            "status": response.status_code,
            "ms": round(1000 * (time.monotonic() - began)),
        }
        logger.info("%s", json.dumps(said), extra=said)
        return response

    return serve


def _guarded(handler: Callable[[Request, Server], Response], server: Server) -> Handler:
    """A page that wants a key, where the server has keys."""

    async def serve(request: Request) -> Response:
        from tokenform.server.guard import bearer

        try:
            server.guard.key(bearer(dict(request.headers)))
            return handler(request, server)
        except Refused as fault:
            return JSONResponse(fault.body(), fault.status, headers=fault.headers)

    return serve


def _plain(handler: Callable[[Request, Server], Response], server: Server) -> Handler:
    async def serve(request: Request) -> Response:
        return handler(request, server)

    return serve


def _described(server: Server) -> dict[str, Any]:
    return {"id": server.engine.name, "object": "model", "created": 0, "owned_by": "tokenform"}


def _models(_: Request, server: Server) -> Response:
    return JSONResponse({"object": "list", "data": [_described(server)]})


def _model(request: Request, server: Server) -> Response:
    name = request.path_params["name"]
    if name != server.engine.name:
        raise Refused(f"there is no model {name!r} here.", status=404, code="model_not_found")
    return JSONResponse(_described(server))


def _health(_: Request, server: Server) -> Response:
    load = server.engine.scheduler.load
    state = {"running": load.running, "waiting": load.waiting, "requests": server.guard.in_use}
    status = "closing" if server.closing else "ok"
    return JSONResponse({"status": status, **state}, 503 if server.closing else 200)


def _metrics(_: Request, server: Server) -> Response:
    return Response(server.metrics.text(), media_type=CONTENT_TYPE)


async def _not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    what = "takes no such request" if status == 405 else "is not served here"
    fault = Refused(f"{request.method} {request.url.path} {what}.", status=status, code="not_found")
    return JSONResponse(fault.body(), status)
