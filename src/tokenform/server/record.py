"""The records of each request: a line of the log, its counts, its id in the answer, a span.

Purpose: `Recorded` is the outermost part of the app, so that requests refused by other parts are recorded,
too.

Invariant: a request is one line and one count, however it ends, and nothing of its texts or keys is in them.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from tokenform.decoding.results import Result
from tokenform.integrations.library_logs import join_logs
from tokenform.server.metrics import Metrics

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

try:
    from opentelemetry import trace
except ModuleNotFoundError:
    trace = None  # type: ignore[assignment]

logger = logging.getLogger("tokenform.server")
HEADER = b"x-request-id"
PLAIN = "%(levelname)s %(name)s %(message)s"
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
# requested every few seconds, or by the dozen when a page is opened: logged at level debug
_QUIET = frozenset({"health", "metrics", "playground"})


@dataclass
class Record:
    """One request.

    Attributes:
        request: its id: the client's, or a new one.
        endpoint: its name; "other" where there is none.
        status: of the answer; 499 where the client disconnected before it.
        key: the name of the caller's key.
        answer: the id of the answer.
        prompt_tokens, tokens: of the prompt, and of the texts with their thoughts.
        reason: how the texts ended ("end", "length"), or the code of the error.
        forwards, seconds_model, seconds_mask: the work behind the texts.
    """

    request: str
    endpoint: str = "other"
    status: int = 499
    key: str | None = None
    answer: str | None = None
    prompt_tokens: int = 0
    tokens: int = 0
    reason: str | None = None
    forwards: int = 0
    seconds_model: float = 0.0
    seconds_mask: float = 0.0
    failed: bool = False
    began: float = field(default_factory=time.monotonic)

    def complete(self, prompt_tokens: int, results: Sequence[Result]) -> None:
        """Records complete texts."""
        thoughts = [len(one.thought.tokens) for one in results if one.thought is not None]
        self.prompt_tokens = prompt_tokens
        self.tokens = sum(thoughts) + sum(len(one.tokens) for one in results)
        self.reason = ",".join(sorted({one.reason for one in results}))
        self.forwards = sum(one.stats.forwards for one in results)
        self.seconds_model = sum(one.stats.seconds_model for one in results)
        self.seconds_mask = sum(one.stats.seconds_mask for one in results)

    def fail(self, code: str) -> None:
        """Records that there is no answer, or no whole one."""
        self.reason, self.failed = code, True

    def fields(self) -> dict[str, Any]:
        """The fields of the line, without unknown ones."""
        line: dict[str, Any] = {"request": self.request, "endpoint": self.endpoint, "status": self.status}
        line |= {"key": self.key, "answer": self.answer, "reason": self.reason}
        line["ms"] = round(1000 * (time.monotonic() - self.began))
        if self.answer is not None:
            line |= {"prompt_tokens": self.prompt_tokens, "tokens": self.tokens, "forwards": self.forwards}
            line["model_ms"] = round(1000 * self.seconds_model, 1)
            line["mask_ms"] = round(1000 * self.seconds_mask, 1)
        return {name: value for name, value in line.items() if value is not None}


class Recorded:
    """The outermost part of the app.

    Args:
        metrics: counts the requests.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        page = scope["path"].startswith("/playground")
        record = Record(_id_of(scope), "playground" if page else "other")
        scope.setdefault("state", {})["record"] = record
        name = (HEADER, record.request.encode())

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), name]}
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except Exception:
            if record.reason is None:  # an error without a handler
                record.fail("failed")
            raise
        finally:
            quiet = scope["method"] == "GET" and record.endpoint in _QUIET and record.status < 400
            self._end(record, logging.DEBUG if quiet else logging.INFO)

    def _end(self, record: Record, level: int) -> None:
        if record.answer is not None and record.reason is None:  # a stream that was closed before its start
            record.fail("cancelled")
        self._metrics.count(record.endpoint, record.status, record.reason if record.failed else None)
        line = record.fields()
        logger.log(level, "%s", json.dumps(line), extra={"fields": line})


def _id_of(scope: Scope) -> str:
    """The client's id, if it is fit for a header and a line; else a new one."""
    for name, value in scope["headers"]:
        if name == HEADER and _REQUEST_ID.fullmatch(value.decode("latin-1")):
            return str(value.decode("latin-1"))
    return secrets.token_hex(12)


class Lines(logging.Formatter):
    """An object a line: `time`, `level`, `logger`, and a request's own fields or `message`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        fields = getattr(record, "fields", None)
        line |= fields if isinstance(fields, dict) else {"message": record.getMessage()}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def write_logs(form: str, level: str, *, libraries: bool = False) -> None:
    """Sends the process's log to stderr: "text" or "json", from a level on.

    Args:
        libraries: transformers is used, whose lines would go past this log.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(Lines() if form == "json" else logging.Formatter(PLAIN))
    logging.basicConfig(handlers=[handler])
    for name in ("tokenform", "uvicorn"):
        logging.getLogger(name).setLevel(level.upper())
    if form == "json":
        logging.captureWarnings(True)
    if libraries:
        join_logs()


class _NoSpan:
    def set_attribute(self, name: str, value: Any) -> None:
        """Nobody listens."""


@contextmanager
def traced(name: str) -> Iterator[Any]:
    """A span around a request; the process's provider says where it goes."""
    if trace is None:
        yield _NoSpan()
        return
    with trace.get_tracer("tokenform.server").start_as_current_span(name) as span:
        yield span
