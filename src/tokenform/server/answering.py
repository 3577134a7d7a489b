"""One request, from its body to its answer: the common part of all endpoints.

Purpose: an endpoint reads its body (`ApiPath.request_of`) and writes its answer, whole (`whole`) or in events
(`events`); this runs it.
Invariant: the job is cancelled when nobody waits for it: the client has disconnected, the time is over, the
answer could not be written.  Errors before the first text are answers of their own; later ones are the last
event of a stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import re
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from tokenform.decoding.results import Result
from tokenform.decoding.scheduler import Job, Piece
from tokenform.errors import extras
from tokenform.frontends.garbage import collected_later
from tokenform.server.engine import Engine
from tokenform.server.faults import Refused, refused
from tokenform.server.guard import bearer
from tokenform.server.keys import Key
from tokenform.server.record import Record
from tokenform.server.text_request import TextRequest

with extras():
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, Response, StreamingResponse

logger = logging.getLogger("tokenform.server")
_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
WRITING = 5.0
"""Seconds that a client has for the last event of a stream, such as the one of a timeout."""
Event = tuple[str | None, dict[str, Any] | str]
"""Name (or None) and data of a server-sent event."""


@dataclass
class Work:
    """A running request.

    Attributes:
        id: of the answer.
        body: of the HTTP request, validated.
        request: what the body asks for.
        began: seconds since the epoch.
    """

    id: str
    body: Any
    request: TextRequest
    job: Job
    engine: Engine
    began: int = field(default_factory=lambda: int(time.time()))


class ApiPath(ABC):
    """One address of an API: how its bodies are read, and how answers are written."""

    name: str
    path: str
    prefix = ""
    reads: type[BaseModel]

    @abstractmethod
    def request_of(self, body: Any, engine: Engine, key: Key) -> TextRequest:
        """The text request of a body; called in a thread."""

    @abstractmethod
    def whole(self, work: Work, results: list[Result]) -> dict[str, Any]:
        """The answer's body."""

    @abstractmethod
    def events(self, work: Work, pieces: AsyncIterator[Piece]) -> AsyncIterator[Event]:
        """The answer as it comes."""

    def places(self, body: Any) -> dict[str, str]:
        """This API's own names of the places that errors of a request have."""
        return {}

    def failure(self, error: Refused) -> dict[str, Any]:
        return error.body()

    def fault(self, error: Refused, number: int) -> Event:
        """An error as the last event of a stream, after so many."""
        return None, error.body()


async def count(request: Request, endpoint: Any, server: Any) -> Response:
    """Serves a request that counts the tokens of its prompt.

    Raises:
        Refused
    """
    key = _caller(request, server)
    with server.guard.using(key):
        body: Any = endpoint.reads.model_validate(await _json(request, server))
        _check_model(body, server.engine)
        request_of = functools.partial(endpoint.request_of, body, server.engine, key)
        with _own_places(endpoint, body):
            tokens = await server.engine.count_tokens(request_of, key, body.binds())
        return JSONResponse(endpoint.body_of_count(tokens))


async def answer(request: Request, endpoint: ApiPath, server: Any) -> Response:
    """Serves one request.

    Raises:
        Refused: before any answer.
    """
    began = time.monotonic()
    key, record = _caller(request, server), request.state.record
    resources = contextlib.ExitStack()
    resources.enter_context(server.guard.using(key))
    try:
        body = endpoint.reads.model_validate(await _json(request, server))
        _check_model(body, server.engine)
        deadline = began + server.timeout
        beginning = asyncio.ensure_future(_begin(body, endpoint, server.engine, key, record))
        resources.callback(_cancel_begun, beginning)
        work, pieces = await _wait(beginning, deadline, request, server)
        if getattr(body, "stream", False):
            # before the stream, so that an error before the first piece is an answer and no event
            first = await _wait(asyncio.ensure_future(anext(pieces)), deadline, request, server)
            server.metrics.first.observe(time.monotonic() - began)
            events = _stream(endpoint, work, _chain(first, pieces), deadline, server, record)
            headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
            streamed = _Stream(events, media_type="text/event-stream", headers=headers)
            streamed.resources, streamed.until = resources.pop_all(), deadline + WRITING
            return streamed
        results = await _finished(work.job, deadline, request, server)
        server.metrics.whole.observe(time.monotonic() - began)
        record.complete(work.job.prompt_tokens, results)
        return JSONResponse(endpoint.whole(work, results))
    finally:
        resources.close()


class _Stream(StreamingResponse):
    """A stream that frees its resources however it ends.  If the client disconnects before the first event,
    the generator never starts and runs no `finally`; if it reads nothing, the stream ends at `until`.
    """

    resources: contextlib.ExitStack
    until: float

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        with self.resources, contextlib.suppress(asyncio.TimeoutError):
            sending = super().__call__(scope, receive, send)
            await asyncio.wait_for(sending, max(self.until - time.monotonic(), 0.001))


async def _begin(
    body: Any, endpoint: ApiPath, engine: Engine, key: Key, record: Record
) -> tuple[Work, AsyncIterator[Piece]]:
    queue: asyncio.Queue[Piece | None] = asyncio.Queue()

    def hear(piece: Piece) -> None:
        record.tokens += len(piece.tokens)  # so far, for texts that are cancelled
        queue.put_nowait(piece)

    read = functools.partial(_checked_request, endpoint, body, engine, key)
    with _own_places(endpoint, body):
        request, job = await engine.begin(read, key, hear, body.binds())
    loop = asyncio.get_running_loop()

    def over(_: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
            loop.call_soon_threadsafe(queue.put_nowait, None)

    job.future.add_done_callback(over)
    work = Work(f"{endpoint.prefix}{secrets.token_hex(12)}", body, request, job, engine)
    record.answer, record.prompt_tokens = work.id, job.prompt_tokens
    return work, _pieces_of(queue, job)


@contextlib.contextmanager
def _own_places(endpoint: ApiPath, body: Any) -> Iterator[None]:
    """Gives errors the places that the API has for them."""
    try:
        yield
    except Exception as error:
        fault, own = refused(error), endpoint.places(body)
        for place in own:
            if fault.param is not None and f"{fault.param}/".startswith(f"{place}/"):
                fault.param = own[place] + fault.param[len(place) :]
                break
        raise fault from error


def _cancel_begun(beginning: asyncio.Future[tuple[Work, AsyncIterator[Piece]]]) -> None:
    if beginning.done() and not beginning.cancelled() and beginning.exception() is None:
        beginning.result()[0].job.cancel()


def _checked_request(endpoint: ApiPath, body: Any, engine: Engine, key: Key) -> TextRequest:
    request = endpoint.request_of(body, engine, key)
    tokens = request.texts * (request.max_tokens or 1)
    if tokens > key.tokens:
        raise Refused(
            f"{request.texts} texts of {request.max_tokens} tokens are {tokens}; "
            f"a request may have {key.tokens} here.",
            code="too_many_tokens",
            param="/max_tokens",
        )
    return request


async def _pieces_of(queue: asyncio.Queue[Piece | None], job: Job) -> AsyncIterator[Piece]:
    while (piece := await queue.get()) is not None:
        yield piece
    if job.future.cancelled():
        raise _ended()
    error = job.future.exception()
    if error is not None:
        raise error


async def _chain(first: Piece, rest: AsyncIterator[Piece]) -> AsyncIterator[Piece]:
    yield first
    async for piece in rest:
        yield piece


async def _finished(job: Job, deadline: float, request: Request, server: Any) -> list[Result]:
    try:
        results: list[Result] = await _wait(asyncio.wrap_future(job.future), deadline, request, server)
        return results
    except asyncio.CancelledError:
        if job.future.cancelled():
            raise _ended() from None
        raise


async def _wait(future: asyncio.Future[Any], deadline: float, request: Request, server: Any) -> Any:
    """The result, unless the time is over, the client goes away, or the server ends."""
    disconnected = asyncio.ensure_future(_disconnected(request))
    try:
        remaining = max(deadline - time.monotonic(), 0.001)
        with server.until_end(future):
            waited = {future, disconnected}
            await asyncio.wait(waited, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                return future.result()
        if disconnected.done():
            raise _client_closed()
        raise _timed_out()
    finally:
        disconnected.cancel()
        future.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _ended() -> Refused:
    return Refused("the request was cancelled.", status=503, code="cancelled")


def _client_closed() -> Refused:
    return Refused("the client went away.", status=499, code="cancelled")


def _timed_out() -> Refused:
    return Refused(
        "the answer was not written within the server's time; ask for fewer tokens.",
        status=504,
        code="timeout",
    )


async def _stream(
    endpoint: ApiPath,
    work: Work,
    pieces: AsyncIterator[Piece],
    deadline: float,
    server: Any,
    record: Record,
) -> AsyncIterator[str]:
    events, told = endpoint.events(work, pieces), 0
    try:
        while True:
            remaining = max(deadline - time.monotonic(), 0.001)
            try:
                event = await asyncio.wait_for(anext(events), remaining)
            except StopAsyncIteration:
                break
            except asyncio.TimeoutError:
                raise _timed_out() from None
            told += 1
            yield event_text(event)
        server.metrics.whole.observe(time.monotonic() - record.began)
        record.complete(work.job.prompt_tokens, work.job.result(0))
    except (asyncio.CancelledError, GeneratorExit):
        record.fail("cancelled")
        raise
    except Exception as error:
        fault = server.fault(error)
        if fault.is_failure:
            logger.exception("a stream failed", extra={"request": work.id})
        record.fail(fault.code)
        yield event_text(endpoint.fault(fault, told))


def event_text(event: Event) -> str:
    """The bytes of an event, as text."""
    name, data = event
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return (f"event: {name}\n" if name else "") + f"data: {text}\n\n"


async def _json(request: Request, server: Any) -> Any:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # other types a page may send to any site without a preflight
        raise Refused(
            f"the body is to be application/json, not {kind!r}.", status=415, code="invalid_content_type"
        )
    try:
        reading = asyncio.ensure_future(_bytes(request, server.max_bytes))
        with server.until_end(reading):
            data = await asyncio.wait_for(reading, server.patience)
    except ClientDisconnect:
        raise _client_closed() from None
    except asyncio.TimeoutError:
        options: dict[str, Any] = {"status": 408, "code": "slow_body", "headers": {"Connection": "close"}}
        raise Refused(f"the body did not come within {server.patience:g} seconds.", **options) from None
    try:
        text = data.decode(json.detect_encoding(data))
        with collected_later():  # hundreds of tools are thousands of objects, none of them garbage
            body = json.loads(text, parse_constant=_no_number)
        if _ESCAPED.search(text):  # half a character can come as an escape alone
            json.dumps(body, ensure_ascii=False).encode()
        return body
    except (ValueError, RecursionError) as error:
        raise Refused(f"the body is no JSON: {error}.", code="invalid_json") from None


async def _bytes(request: Request, most: int) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > most:
        raise _too_large(most)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
    return b"".join(parts)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _too_large(most: int) -> Refused:
    return Refused(f"the body is larger than {most} bytes.", status=413, code="too_large")


def _check_model(body: Any, engine: Engine) -> None:
    if body.model not in ("", engine.name):
        raise Refused(
            f"there is no model {body.model!r} here; there is {engine.name!r}.",
            status=404,
            code="model_not_found",
            param="/model",
        )


def _caller(request: Request, server: Any) -> Key:
    key: Key = server.guard.key(bearer(dict(request.headers)))
    request.state.record.key = key.name
    return key
