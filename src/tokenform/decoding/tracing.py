"""OpenTelemetry spans of calls, where the program has loaded OpenTelemetry; else nothing, at no cost.

Purpose: one span a call of `Generator.sample` or `stream` and of their async forms, a job of a `Scheduler`,
and a generation of a `Program`.
Invariant: a span has the model, the kind of constraint, the limits, the numbers of tokens and passes, and the
reason to end.  Prompts and texts are in it only where the variable `CONTENT` is "true".
Source: OpenTelemetry's semantic conventions for generative AI; this library's own attributes are
`tokenform.*`.
Rejected: an extra of its own (programs with spans have the package, and set up its exporter).
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from tokenform.decoding.results import Result
from tokenform.errors import TokenformError
from tokenform.frontends import Condition, Grammar

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_REQUEST_NAMES = {"max_tokens": "max_tokens", "seed": "seed", "n": "choice.count"}
_KINDS = {"language": "pattern"}
Submit = TypeVar("Submit", bound=Callable[..., Any])
_MOST_CHARACTERS = 8192  # characters of a prompt or text
_API = "opentelemetry.trace"
_within: ContextVar[bool] = ContextVar("_within", default=False)  # a call that has a span


def traced_job(method: Submit) -> Submit:
    """`Scheduler.submit`, with a span from the call until the job has ended; the jobs of a call that has a
    span are parts of that one."""

    @functools.wraps(method)
    def submitted(self: Any, prompt: Any, grammar: Any = None, **options: Any) -> Any:
        if _API not in sys.modules or _within.get():
            return method(self, prompt, grammar, **options)
        span = span_of(self.generator, prompt, grammar, options, current=False)
        ended = span.__enter__()
        try:
            job = method(self, prompt, grammar, **options)
        except BaseException as error:
            span.__exit__(type(error), error, error.__traceback__)
            raise

        def close(future: Future[list[Result]]) -> None:
            error = None if future.cancelled() else future.exception()
            if error is None and not future.cancelled():
                ended(future.result())
            span.__exit__(None if error is None else type(error), error, None)

        job.future.add_done_callback(close)
        return job

    return cast(Submit, submitted)


@contextmanager
def span_of(
    generator: Any, prompt: Any, grammar: Any, options: Mapping[str, Any], *, current: bool = True
) -> Iterator[Callable[[Any], Any]]:
    """A span; its function is called with the results, and returns them.

    Args:
        current: spans that begin meanwhile are its children; not for streams, whose steps alternate with the
            caller's own.
    """
    api: Any = sys.modules.get(_API)
    if api is None:
        yield lambda results: results
        return
    name = _model(generator)
    tracer = api.get_tracer("tokenform")
    span = tracer.start_span(f"generate {name}", kind=api.SpanKind.INTERNAL)
    try:
        if span.is_recording():
            span.set_attributes(_request_attributes(generator, name, prompt, grammar, options))

        def ended(results: Any) -> Any:
            if span.is_recording():
                span.set_attributes(_response_attributes(results))
            return results

        if current:
            before = _within.set(True)
            try:
                with api.use_span(span, record_exception=False, set_status_on_exception=False):
                    yield ended
            finally:
                _within.reset(before)
        else:
            yield ended
    except BaseException as error:
        if not isinstance(error, GeneratorExit):
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(api.Status(api.StatusCode.ERROR, type(error).__name__))
        raise
    finally:
        span.end()


def kind_of(grammar: Any) -> str:
    """The kind of a constraint, in a word."""

    if grammar is None:
        return "text"
    if isinstance(grammar, list | tuple):
        return "list"
    if isinstance(grammar, Condition):
        return "predicate" if grammar.tests else "grammar"
    if isinstance(grammar, Grammar):
        if grammar.shapes is not None:
            return "type"
        kind = next(iter(grammar.form), "grammar")
        return "tools" if grammar.tools else _KINDS.get(kind, kind)
    return "schema" if isinstance(grammar, dict | bool | str) else "type"


def _request_attributes(
    generator: Any, name: str, prompt: Any, grammar: Any, options: Mapping[str, Any]
) -> dict[str, str | int | float]:
    sampler = options.get("sampler") or generator.sampler
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "generate",
        "gen_ai.provider.name": "tokenform",
        "gen_ai.request.model": name,
        "tokenform.constraint": kind_of(grammar),
        "tokenform.sampler": type(sampler).__name__,
    }
    local = getattr(sampler, "transforms", sampler)  # a faithful sampler's are in there
    temperature = options.get("temperature", getattr(local, "temperature", None))
    if isinstance(temperature, int | float):
        attributes["gen_ai.request.temperature"] = float(temperature)
    for option, attribute in _REQUEST_NAMES.items():
        if isinstance(options.get(option), int):
            attributes[f"gen_ai.request.{attribute}"] = options[option]
    if options.get("name"):
        attributes["tokenform.name"] = options["name"]
    if _captures_content():
        attributes["gen_ai.input.messages"] = str(prompt)[:_MOST_CHARACTERS]
    return attributes


def _response_attributes(results: Any) -> dict[str, Any]:
    results_written = [one for one in _flattened(results) if isinstance(one, Result)]
    attributes: dict[str, Any] = {
        "gen_ai.usage.output_tokens": sum(one.stats.tokens for one in results_written),
        "gen_ai.response.finish_reasons": [_reason(one) for one in _flattened(results)],
        "tokenform.forwards": sum(one.stats.forwards for one in results_written),
        "tokenform.drafts_accepted": sum(one.stats.accepted for one in results_written),
    }
    if _captures_content():
        attributes["gen_ai.output.messages"] = [one.text[:_MOST_CHARACTERS] for one in results_written]
    return attributes


def _reason(result: Any) -> str:
    return (
        "error" if isinstance(result, TokenformError) else {"end": "stop"}.get(result.reason, result.reason)
    )


def _flattened(results: Any) -> list[Any]:
    if isinstance(results, list):
        return [one for part in results for one in _flattened(part)]
    return [] if results is None else [results]


def _captures_content() -> bool:
    return os.environ.get(CONTENT, "").lower() == "true"


def _model(generator: Any) -> str:
    config = getattr(generator.model, "config", None)
    return str(getattr(config, "_name_or_path", "") or type(generator.model).__name__)
