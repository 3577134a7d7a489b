"""The server's own pages: its model, its state, its metrics, its version, its API."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from tokenform.errors import extras
from tokenform.server.described import HEADERS, openapi, page
from tokenform.server.faults import Refused
from tokenform.server.guard import bearer
from tokenform.server.metrics import CONTENT_TYPE
from tokenform.version import __version__

with extras():
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def routes(server: Any) -> list[Route]:
    """Their addresses; `server` is the app's state."""
    return [
        Route("/v1/models", _served("models", _guarded(_models), server)),
        Route("/v1/models/{name:path}", _served("models", _guarded(_model), server)),
        Route("/metrics", _served("metrics", _guarded(_metrics), server)),
        Route("/health", _served("health", _health, server)),
        Route("/version", _served("version", _version, server)),
        Route("/openapi.json", _served("docs", _openapi, server)),
        Route("/docs", _served("docs", _docs, server)),
    ]


def _served(name: str, handler: Callable[[Request, Any], Response], server: Any) -> Handler:
    async def serve(request: Request) -> Response:
        record = request.state.record
        record.endpoint = name
        try:
            return handler(request, server)
        except Refused as fault:
            record.fail(fault.code)
            return JSONResponse(fault.body(), fault.status, headers=fault.headers)

    return serve


def _guarded(handler: Callable[[Request, Any], Response]) -> Callable[[Request, Any], Response]:
    """A page that needs a key, where the server has keys."""

    def serve(request: Request, server: Any) -> Response:
        request.state.record.key = server.guard.key(bearer(dict(request.headers))).name
        return handler(request, server)

    return serve


def _described(server: Any) -> dict[str, Any]:
    return {"id": server.engine.name, "object": "model", "created": 0, "owned_by": "tokenform"}


def _models(_: Request, server: Any) -> Response:
    return JSONResponse({"object": "list", "data": [_described(server)]})


def _model(request: Request, server: Any) -> Response:
    name = request.path_params["name"]
    if name != server.engine.name:
        raise Refused(f"there is no model {name!r} here.", status=404, code="model_not_found")
    return JSONResponse(_described(server))


def _health(_: Request, server: Any) -> Response:
    load = server.engine.scheduler.load
    state = {"running": load.running, "waiting": load.waiting, "requests": server.guard.in_use}
    status = "closing" if server.closing else "ok"
    return JSONResponse({"status": status, **state}, 503 if server.closing else 200)


def _metrics(_: Request, server: Any) -> Response:
    return Response(server.metrics.text(), media_type=CONTENT_TYPE)


def _version(_: Request, server: Any) -> Response:
    return JSONResponse({"version": __version__})


def _openapi(_: Request, server: Any) -> Response:
    return JSONResponse(openapi())


def _docs(_: Request, server: Any) -> Response:
    return HTMLResponse(page(), headers=HEADERS)
