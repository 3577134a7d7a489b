"""The playground's addresses: the page's files, and JSON for what they ask."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from tokenform.decoding.diffusion import DiffusionGenerator
from tokenform.decoding.generator import Generator
from tokenform.errors import OptionError, TokenformError
from tokenform.server.faults import Refused
from tokenform.server.origins import foreign
from tokenform.server.playground.comparing import CompareQuery, compare
from tokenform.server.playground.filling import FillQuery, fill
from tokenform.server.playground.inspecting import following, inspect, reach
from tokenform.server.playground.queries import BODY, Query, ReachQuery, error_fields, read
from tokenform.server.playground.running import QueueFull, Workers
from tokenform.server.playground.writing import WriteQuery, write

MEDIA = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def page_files() -> dict[str, bytes]:
    folder = files("tokenform.server.playground") / "page"
    return {
        file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in MEDIA
    }


def routes(
    generator: Generator | DiffusionGenerator,
    *,
    path: str = "/playground",
    hosts: Collection[str] | None = (),
    admit: Callable[[Request], None] | None = None,
    served: str | None = None,
) -> list[BaseRoute]:
    """The playground of a model, for the routes of an app.

    Args:
        generator: runs the model, with a tokenizer; one that fills canvases does that alone.
        path: where it is; the page itself is at `path` and a slash.
        hosts: names that the app is asked by, beside localhost and addresses.  Others are refused: a site
            whose name is made to point here would else be this one to a browser.  None: the app judges
            hosts and origins itself.
        admit: raises a `Refused` for a request without a key; the page asks for one then.
        served: what requests to the app's API call the model.
    """
    workers, pages = Workers(), page_files()

    async def asset(request: Request) -> Response:
        name = request.path_params.get("name") or "index.html"
        if name not in pages:
            return JSONResponse({"error": {"message": "no such page."}}, 404)
        return Response(pages[name], media_type=MEDIA[name.rpartition(".")[2]], headers=HEADERS)

    async def config(request: Request) -> Response:
        return JSONResponse(
            {
                "engine": "server",
                "model": _name(generator),
                "served": served,
                "keys": admit is not None,
                "vocabulary": generator.vocabulary.size,
                "fills": isinstance(generator, DiffusionGenerator),
            }
        )

    async def to_page(request: Request) -> Response:
        return RedirectResponse(path.rpartition("/")[2] + "/")

    def endpoint(name: str, kind: type[Query], respond: Callable[[Any], Any]) -> Route:
        async def answered(request: Request) -> Response:
            return await _answered(request, hosts, admit, kind, respond)

        return Route(f"/{name}", answered, methods=["POST"])

    def answer(name: str, work: Callable[[Any], Any], kind: type[Query] = Query) -> Route:
        async def respond(query: Query) -> Response:
            return JSONResponse(await workers.run(partial(work, query)))

        return endpoint(name, kind, respond)

    def stream(work: Callable[..., None], kind: type[Query], of: Callable[[Any], Any] = causal) -> Route:
        async def respond(query: Query) -> Response:
            return workers.stream(lambda channel: work(query, of(generator), channel))

        return endpoint(work.__name__, kind, respond)

    api = [
        answer("inspect", lambda query: inspect(query, generator.vocabulary)),
        answer("reach", reach, ReachQuery),
        answer("next", lambda query: following(query, causal(generator))),
        stream(write, WriteQuery),
        stream(fill, FillQuery, lambda own: own),
        stream(compare, CompareQuery),
    ]
    inner: list[BaseRoute] = [
        Route("/config.json", config),
        Mount("/api", routes=api),
        Route("/", asset),
        Route("/{name}", asset),
    ]
    return [Route(path, to_page), Mount(path, routes=inner)]


def causal(generator: Generator | DiffusionGenerator) -> Generator:
    """The generator, where it writes from left to right.

    Raises:
        OptionError: it fills canvases.
    """
    if isinstance(generator, DiffusionGenerator):
        raise OptionError("the model here fills canvases, and writes nothing from left to right: ask /fill.")
    return generator


async def _answered(
    request: Request,
    hosts: Collection[str] | None,
    admit: Callable[[Request], None] | None,
    kind: type[Query],
    respond: Callable[[Any], Any],
) -> Response:
    """The answer, or an error as JSON."""
    try:
        _from_the_page(request, hosts)
        if admit is not None:
            admit(request)
        response: Response = await respond(read(await _body(request), kind))
    except Refused as fault:
        return JSONResponse({"error": {"kind": fault.code, "message": str(fault)}}, fault.status)
    except TokenformError as error:
        return JSONResponse({"error": error_fields(error)}, 400)
    except QueueFull:
        fault_fields = {"kind": "Busy", "message": "too many requests wait; come again in a second."}
        return JSONResponse({"error": fault_fields}, 429, {"Retry-After": "1"})
    return response


def _from_the_page(request: Request, hosts: Collection[str] | None) -> None:
    """Pages of other sites may not ask: they send no JSON unasked, and browsers say where they are from."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise OptionError("send application/json.")
    fault = None if hosts is None else foreign(request.headers, request.url.scheme, (), hosts)
    if fault is not None:
        raise OptionError(str(fault))


async def _body(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > BODY:
            raise OptionError(f"the body is larger than {BODY} bytes.")
        parts.append(part)
    return b"".join(parts)


def _name(generator: Generator | DiffusionGenerator) -> str:
    config: Any = getattr(generator.model, "config", None)
    name = str(getattr(config, "_name_or_path", "") or type(generator.model).__name__)
    built_in = "tokenform/builtin" in name.replace("\\", "/")
    return "The built-in model" if built_in else name.rpartition("/")[2]
