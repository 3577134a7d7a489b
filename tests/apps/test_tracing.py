"""Spans of calls, as OpenTelemetry's own interface gets them; and what happened at each token."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from pydantic import BaseModel

import tokenform as tf
from tokenform import errors
from tokenform.decoding.scheduler import Scheduler

trace = pytest.importorskip("opentelemetry.trace", reason="pip install opentelemetry-api")
SCHEMA = {"type": "object", "properties": {"n": {"enum": [1, 22]}}, "required": ["n"]}
SCHEMA["additionalProperties"] = False
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class Number(BaseModel):
    n: int


class Recorded(trace.NonRecordingSpan):
    """A span that keeps what it is told."""

    def __init__(self, name: str) -> None:
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.name, self.ended = name, 0
        self.attributes: dict[str, Any] = {}
        self.status: Any = None

    def is_recording(self) -> bool:
        return True

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def set_attributes(self, attributes: Any) -> None:
        self.attributes.update(attributes)

    def set_status(self, status: Any, description: str | None = None) -> None:
        self.status = status

    def end(self, end_time: int | None = None) -> None:
        self.ended += 1


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> list[Recorded]:
    found: list[Recorded] = []

    class Tracer(trace.NoOpTracer):
        def start_span(self, name: str, *args: Any, **options: Any) -> Any:
            found.append(Recorded(name))
            return found[-1]

    monkeypatch.setattr(trace, "get_tracer", lambda *args, **options: Tracer())
    monkeypatch.delenv(CONTENT, raising=False)
    return found


def test_a_call_has_one_span(small: tf.Generator, spans: list[Recorded]) -> None:
    results = small.sample("secret", SCHEMA, n=2, seed=7, max_tokens=90, sampler=tf.Local(0.5))
    (span,) = spans
    assert span.name == "generate LlamaForCausalLM" and span.ended == 1 and span.status is None
    assert span.attributes == {
        "gen_ai.operation.name": "generate",
        "gen_ai.provider.name": "tokenform",
        "gen_ai.request.model": "LlamaForCausalLM",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 90,
        "gen_ai.request.seed": 7,
        "gen_ai.request.choice.count": 2,
        "tokenform.constraint": "schema",
        "tokenform.sampler": "Local",
        "gen_ai.usage.output_tokens": sum(len(one.tokens) for one in results),
        "gen_ai.response.finish_reasons": ["stop" if one.reason == "end" else one.reason for one in results],
        "tokenform.forwards": sum(one.stats.forwards for one in results),
        "tokenform.drafts_accepted": 0,
    }


@pytest.mark.parametrize(
    ("grammar", "kind"),
    [
        (None, "text"),
        (Number, "type"),
        (tf.from_type(Number), "type"),
        (tf.json_schema(SCHEMA), "schema"),
        (tf.regex("a"), "pattern"),
    ],
    ids=str,
)
def test_kinds_of_constraints(small: tf.Generator, spans: list[Recorded], grammar: Any, kind: str) -> None:
    small.sample("x", grammar, max_tokens=30)
    assert spans[0].attributes["tokenform.constraint"] == kind


def test_texts_are_told_only_where_they_are_asked_for(
    small: tf.Generator, spans: list[Recorded], monkeypatch: pytest.MonkeyPatch
) -> None:
    small.sample("secret", tf.choice(["abc"]))
    assert "secret" not in str(spans[0].attributes) and "abc" not in str(spans[0].attributes)
    monkeypatch.setenv(CONTENT, "true")
    small.sample("secret", tf.choice(["abc"]))
    assert spans[1].attributes["gen_ai.input.messages"] == "secret"
    assert spans[1].attributes["gen_ai.output.messages"] == ["abc"]


def test_streams_and_event_loops(small: tf.Generator, spans: list[Recorded]) -> None:
    "".join(small.stream("x", tf.choice(["abc"])))
    assert spans[0].ended == 1 and spans[0].attributes["gen_ai.usage.output_tokens"] > 0
    stream = small.stream("x", tf.regex("[a-z]{50}"))
    next(stream)
    stream.close()
    assert spans[1].ended == 1 and spans[1].status is None

    async def work() -> None:
        async with tf.AsyncGenerator(small) as generator:
            await asyncio.gather(*(generator.sample("x", tf.choice(["abc"])) for _ in range(3)))

    asyncio.run(work())
    assert len(spans) == 5 and all(span.ended == 1 for span in spans)


def test_an_async_stream_has_one_span(small: tf.Generator, spans: list[Recorded]) -> None:
    async def work() -> None:
        async with tf.AsyncGenerator(small) as generator:
            async for _ in generator.stream("x", tf.choice(["abc"]), seed=1):
                pass
            with pytest.raises(errors.BudgetTooSmall):
                async for _ in generator.stream("x", tf.regex("a{90}"), max_tokens=5):
                    pass
            async with generator.stream("x", tf.regex("[ab]{400}"), max_tokens=500) as stream:
                await anext(stream)  # and no more

    asyncio.run(work())
    written, failed, left = spans
    assert [span.ended for span in spans] == [1, 1, 1]
    assert written.attributes["gen_ai.usage.output_tokens"] > 0 and written.status is None
    assert failed.attributes["error.type"] == "BudgetTooSmall"
    assert left.status is None and "gen_ai.usage.output_tokens" not in left.attributes


def test_a_job_of_a_scheduler_has_a_span(small: tf.Generator, spans: list[Recorded]) -> None:
    with Scheduler(small) as scheduler:
        results = scheduler.submit("x", tf.choice(["abc"]), n=2, seed=3, max_tokens=20).result()
        with pytest.raises(errors.BudgetTooSmall):
            scheduler.submit("x", tf.regex("a{90}"), max_tokens=5)
        left = scheduler.submit("x", tf.regex("[ab]{400}"), max_tokens=500)
        assert left.cancel()

        def broken(piece: Any) -> None:
            raise ValueError("the listener's own")

        failed = scheduler.submit("x", tf.choice(["abc"]), listener=broken)
        with pytest.raises(ValueError, match="own"):
            failed.result()
        faithful = scheduler.submit("x", tf.choice(["abc"]), sampler=tf.CARS(), seed=0).result()
    assert [span.ended for span in spans] == [1] * 5
    written, refused, cancelled, told, whole = [span.attributes for span in spans]
    assert written["gen_ai.usage.output_tokens"] == sum(len(one.tokens) for one in results)
    assert written["gen_ai.request.choice.count"] == 2 and written["tokenform.sampler"] == "Local"
    assert refused["error.type"] == "BudgetTooSmall" and told["error.type"] == "ValueError"
    assert spans[2].status is None and "gen_ai.usage.output_tokens" not in cancelled
    assert whole["tokenform.sampler"] == "CARS" and faithful[0].text == "abc"
    assert whole["gen_ai.response.finish_reasons"] == ["stop"]


def test_each_generation_of_a_program_has_a_span(small: tf.Generator, spans: list[Recorded]) -> None:
    program = tf.Program(small, seed=4) + "A: " + tf.select(["yes", "no"], "first") + ", then "
    program += tf.gen(regex="[a-c]{3}", max_tokens=9, temperature=1.0)
    first, second = [span.attributes for span in spans]
    assert [span.ended for span in spans] == [1, 1] and "yes" not in str([first, second])
    assert first["tokenform.name"] == "first" and "tokenform.name" not in second
    assert (first["tokenform.sampler"], second["tokenform.sampler"]) == ("Local", "Local")
    assert second["gen_ai.request.max_tokens"] == 9
    assert [one["gen_ai.request.temperature"] for one in (first, second)] == [0.0, 1.0]
    assert second["gen_ai.request.seed"] == 4 and second["tokenform.forwards"] > 0
    tokens = [one["gen_ai.usage.output_tokens"] for one in (first, second)]
    assert min(tokens) > 0 and sum(tokens) == program.tokens
    with pytest.raises(errors.BudgetTooSmall):
        program + tf.gen(regex="a{90}", max_tokens=5)
    assert spans[2].ended == 1 and spans[2].attributes["error.type"] == "BudgetTooSmall"


def test_what_fails_is_told_without_its_text(small: tf.Generator, spans: list[Recorded]) -> None:
    with pytest.raises(errors.BudgetTooSmall):
        small.sample("secret", tf.regex("a{90}"), max_tokens=5)
    assert spans[0].ended == 1 and spans[0].status.status_code == trace.StatusCode.ERROR
    assert spans[0].attributes["error.type"] == "BudgetTooSmall"


def test_what_happened_at_each_token(small: tf.Generator) -> None:
    result = small.sample("x", tf.json_schema(SCHEMA, whitespace="compact", strings="canonical"), seed=0)[0]
    steps = tf.debug(result)
    assert "".join(step.text for step in steps) == result.text
    assert math.isclose(sum(math.log(step.probability) for step in steps), result.logprob)
    assert steps[0].forced and any(not step.forced for step in steps)
    state = result.automaton.start
    for step, token in zip(steps, result.tokens, strict=True):
        allowed = set(result.automaton.allowed_tokens(state).tolist())
        texts = {small.vocabulary.tokens[one].decode("utf-8", "replace") for one in allowed}
        assert step.allowed == len(allowed) and set(step.others) <= texts
        state = result.automaton.advance(state, token)
    shown = str(steps).splitlines()
    assert len(shown) == len(steps) + 2 and "forced" in shown[1] and "<span" in steps._repr_html_()
    with pytest.raises(errors.OptionError):
        tf.debug(small.sample("x", tf.choice(["a"]), sampler=tf.CARS(), seed=0)[0])
