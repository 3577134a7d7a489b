"""Load on an OpenAI-compatible server: what random requests waited for, and whether answers are valid.

Purpose: `tokenform bench serve`.  Arrivals are open-loop (a Poisson process): a request is sent when its time
has come, however many still wait, so that a slow server shows as latency and not as fewer requests.
Invariant: the same seed gives the same requests at the same times; every answer to a schema is judged by
`jsonschema`; an answer that is cut, refused or lost is counted and never left out of the validity.
Measured: "first": from sending to the first text.  "between": from one chunk with text to the next (a chunk
may have several tokens where a server drafts).  "a token": from the first text to the last, by its tokens but
the first.  Modes of one run share the load in turns, so that their figures stand side by side.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import jsonschema

from tokenform.errors import DataError, OptionError, extras

if TYPE_CHECKING:
    import httpx

MODES = ("schema", "free")
PROMPTS = (
    "The order has the number A-2041 and was placed by Maria Rossi on 2024-03-17; it ships to Lisbon.",
    "Ada Lovelace, born 1815 in London, wrote the first program.",
    "The parcel has the number 4821, weighs 12 kg and has been paid.",
    "The meeting is on 2025-06-02 at 14:30 in Porto with Peter Novak and Ana Silva.",
)
SCHEMAS: tuple[dict[str, Any], ...] = (
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 40},
            "born": {"type": "integer", "minimum": 1000},
        },
        "required": ["name", "born"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {
            "number": {"type": "string", "pattern": "^[A-Z0-9-]{2,12}$"},
            "date": {"type": "string", "format": "date"},
            "status": {"enum": ["new", "paid", "shipped"]},
            "city": {"type": "string", "maxLength": 30},
        },
        "required": ["number", "date", "status"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {
            "people": {
                "type": "array",
                "items": {"type": "string", "maxLength": 30},
                "maxItems": 4,
                "uniqueItems": True,
            },
            "kilograms": {"type": "number", "minimum": 0, "maximum": 1000},
            "paid": {"type": "boolean"},
        },
        "required": ["people", "paid"],
        "additionalProperties": False,
    },
)
"""What is asked for where no schemas are given."""


@dataclass(frozen=True)
class Load:
    """What is sent.

    Attributes:
        url: the server, with or without /v1 at its end.
        model: its name there.
        rate: requests a second, on average.
        requests: how many, all modes together.
        schemas: JSON Schemas, taken in turn.
        prompts: texts of the user, taken in turn.
        modes: "schema" asks for a document of a schema, "free" for any text; taken in turn.
        max_tokens: most tokens of an answer.
        temperature: of the draws.
        seed: of the times, and of the requests.
        timeout: seconds after which a request counts as lost.
        key: sent as a bearer's.
    """

    url: str
    model: str
    rate: float = 4.0
    requests: int = 100
    schemas: Sequence[Mapping[str, Any]] = SCHEMAS
    prompts: Sequence[str] = PROMPTS
    modes: Sequence[str] = ("schema",)
    max_tokens: int = 128
    temperature: float = 0.0
    seed: int = 0
    timeout: float = 120.0
    key: str | None = None

    def __post_init__(self) -> None:
        if not (self.rate > 0 and math.isfinite(self.rate)) or self.requests < 1:
            raise OptionError(f"rate={self.rate} and requests={self.requests} must be above 0.")
        if not self.modes or set(self.modes) - set(MODES):
            raise OptionError(f"modes={list(self.modes)!r} is not possible; choose of {', '.join(MODES)}.")
        if not self.schemas or not self.prompts:
            raise OptionError("give at least one schema and one prompt.")

    def times(self) -> list[float]:
        """Seconds from the start at which requests are sent."""
        drawn, at, times = random.Random(self.seed), 0.0, []
        for _ in range(self.requests):
            times.append(at)
            at += drawn.expovariate(self.rate)
        return times

    def body(self, number: int) -> dict[str, Any]:
        """A request's body."""
        turn = number // len(self.modes)
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": self.prompts[turn % len(self.prompts)]}],
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "seed": self.seed + number,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self.mode(number) == "schema":
            named = {"name": "document", "schema": self.schema(number), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        return body

    def mode(self, number: int) -> str:
        """A request's mode."""
        return self.modes[number % len(self.modes)]

    def schema(self, number: int) -> Mapping[str, Any]:
        """The schema that a request asks for."""
        return self.schemas[number // len(self.modes) % len(self.schemas)]

    @property
    def address(self) -> str:
        """Of chat completions."""
        return f"{base_of(self.url)}/chat/completions"


@dataclass
class Answer:
    """One request's fate.

    Attributes:
        mode: of the request.
        sent: seconds from the start of the run.
        chunks: seconds from sending at which text came.
        tokens: as the server counts them, else its chunks.
        text: all of it.
        finish: why it ended, in the server's word.
        valid: judged by `jsonschema`; None where no schema was asked for.
        error: why there is none.
    """

    mode: str
    sent: float
    chunks: list[float] = field(default_factory=list)
    tokens: int = 0
    text: str = ""
    finish: str | None = None
    valid: bool | None = None
    error: str | None = None
    ended: float = 0.0


@dataclass(frozen=True)
class Figures:
    """One mode's figures; latencies are (p50, p99) in milliseconds, nan where there are none."""

    mode: str
    requests: int
    failed: int
    valid: int | None
    first: tuple[float, float]
    between: tuple[float, float]
    a_token: tuple[float, float]
    whole: tuple[float, float]
    tokens: int
    tokens_per_second: float


def run(load: Load, report: Callable[[Answer], None] = lambda answer: None) -> list[Answer]:
    """Sends the requests; returns when all have ended and are judged; `report` is told each as it ends."""
    with extras():
        import httpx  # noqa: F401 - whether it is there
    return asyncio.run(_run(load, report))


def first_model(url: str, key: str | None = None) -> str:
    """What a server calls its model, the first where it has several.

    Raises:
        DataError: the server does not say.
    """
    with extras():
        import httpx
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    try:
        return str(httpx.get(f"{base_of(url)}/models", headers=headers, timeout=30).json()["data"][0]["id"])
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
        raise DataError(f"{url} names no model ({type(error).__name__}: {error}); give --model.") from None


def base_of(url: str) -> str:
    """A server's address with /v1 at its end."""
    base = url.rstrip("/")
    return base if base.endswith("/v1") else f"{base}/v1"


async def _run(load: Load, report: Callable[[Answer], None]) -> list[Answer]:
    import httpx

    headers = {} if load.key is None else {"Authorization": f"Bearer {load.key}"}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
    async with httpx.AsyncClient(timeout=load.timeout, limits=limits, headers=headers) as client:
        start = time.perf_counter()

        async def one(number: int, at: float) -> Answer:
            await asyncio.sleep(max(0.0, at - (time.perf_counter() - start)))
            answer = Answer(load.mode(number), time.perf_counter() - start)
            try:
                await _ask(client, load, number, answer)
            except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
                answer.error = f"{type(error).__name__}: {error}"
            answer.ended = time.perf_counter() - start
            report(answer)
            return answer

        answers = list(await asyncio.gather(*(one(n, at) for n, at in enumerate(load.times()))))
    for number, answer in enumerate(answers):  # now that nobody waits for a chunk meanwhile
        if answer.mode == "schema":
            answer.valid = answer.error is None and is_valid(answer.text, load.schema(number))
    return answers


async def _ask(client: httpx.AsyncClient, load: Load, number: int, answer: Answer) -> None:
    sent = time.perf_counter()
    async with client.stream("POST", load.address, json=load.body(number)) as response:
        if response.status_code != 200:
            said = (await response.aread()).decode("utf-8", "replace")
            answer.error = f"{response.status_code}: {said[:500]}"
            return
        counted = None
        async for line in response.aiter_lines():
            if not line.startswith("data:") or line[5:].strip() == "[DONE]":
                continue
            event = json.loads(line[5:])
            if "error" in event:
                raise ValueError(event["error"])
            counted = (event.get("usage") or {}).get("completion_tokens", counted)
            for choice in event.get("choices", ()):
                text = (choice.get("delta") or {}).get("content")
                if text:
                    answer.chunks.append(time.perf_counter() - sent)
                    answer.text += text
                answer.finish = choice.get("finish_reason") or answer.finish
        answer.tokens = len(answer.chunks) if counted is None else int(counted)
    if answer.finish is None:
        answer.error = "the stream ended without a reason"


def is_valid(text: str, schema: Mapping[str, Any]) -> bool:
    """Whether a text is a document of a schema."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return bool(kind(schema, format_checker=kind.FORMAT_CHECKER).is_valid(value))


def figures(answers: Sequence[Answer]) -> list[Figures]:
    """The figures of each mode."""
    return [
        _figures(mode, [a for a in answers if a.mode == mode])
        for mode in dict.fromkeys(a.mode for a in answers)
    ]


def _figures(mode: str, answers: Sequence[Answer]) -> Figures:
    done = [answer for answer in answers if answer.error is None]
    spoken = [answer for answer in done if answer.chunks]
    gaps = [b - a for answer in spoken for a, b in zip(answer.chunks, answer.chunks[1:])]
    per_token = [
        (answer.chunks[-1] - answer.chunks[0]) / (answer.tokens - 1)
        for answer in spoken
        if answer.tokens > 1 and len(answer.chunks) > 1
    ]
    tokens = sum(answer.tokens for answer in done)
    span = max(a.ended for a in answers) - min(a.sent for a in answers)
    return Figures(
        mode,
        len(answers),
        len(answers) - len(done),
        sum(bool(answer.valid) for answer in answers) if mode == "schema" else None,
        _both([answer.chunks[0] for answer in spoken]),
        _both(gaps),
        _both(per_token),
        _both([answer.ended - answer.sent for answer in done]),
        tokens,
        tokens / span if span > 0 else math.nan,
    )


def _both(seconds: Sequence[float]) -> tuple[float, float]:
    """p50 and p99 in milliseconds, by the nearest rank."""
    if not seconds:
        return math.nan, math.nan
    ordered = sorted(seconds)
    p50, p99 = (ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] for share in (0.5, 0.99))
    return 1000 * p50, 1000 * p99


def as_json(load: Load, answers: Sequence[Answer]) -> dict[str, Any]:
    """The run for a file; what was not measured is null."""
    told = {k: v for k, v in asdict(load).items() if k not in ("key", "schemas", "prompts")}
    found = [asdict(one) for one in figures(answers)]
    errors = sorted({answer.error for answer in answers if answer.error is not None})
    made: dict[str, Any] = _finite(
        {"load": told, "figures": found, "errors": errors, "answers": [asdict(a) for a in answers]}
    )
    return made


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_schemas(text: str, name: str) -> list[dict[str, Any]]:
    """Schemas of a file: one, a JSON array of them, or one a line; `{"schema": ...}` counts as its schema.

    Raises:
        DataError: it is none of these.
    """
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise DataError(f"{name} is neither JSON nor JSON lines: {error}.") from None
    listed = found if isinstance(found, list) else [found]
    schemas = [one.get("schema", one) if isinstance(one, dict) else one for one in listed]
    if not schemas or not all(isinstance(schema, dict) for schema in schemas):
        raise DataError(f"{name} has no schemas, or something else among them.")
    return schemas
