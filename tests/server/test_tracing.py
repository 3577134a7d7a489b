"""A span for each request, where OpenTelemetry is installed, and none of its words where it is not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from tokenform.server import record

CHAT = "/v1/chat/completions"
BODY = {"messages": [{"role": "user", "content": "a secret"}], "guided_regex": "[ab]{2}"}


class Spans:
    """A tracer that keeps what it is told."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, dict[str, Any]]] = []

    def get_tracer(self, name: str) -> Spans:
        assert name == "tokenform.server"
        return self

    @contextlib.contextmanager
    def start_as_current_span(self, name: str) -> Iterator[Any]:
        attributes: dict[str, Any] = {}

        class Span:
            def set_attribute(self, key: str, value: Any) -> None:
                attributes[key] = value

        yield Span()
        self.ended.append((name, attributes))


def test_a_request_is_a_span(client, monkeypatch: pytest.MonkeyPatch) -> None:
    spans = Spans()
    monkeypatch.setattr(record, "trace", spans)
    answer = client.post(CHAT, json=BODY)
    assert answer.status_code == 200
    assert client.post("/v1/completions", json={"prompt": "a", "guided_regex": "("}).status_code == 400
    status = "http.response.status_code"
    assert [(name, told[status]) for name, told in spans.ended] == [("chat", 200), ("completions", 400)]
    assert answer.headers["x-request-id"] == spans.ended[0][1]["tokenform.request"]


def test_without_it_requests_are_served_alike(client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "trace", None)
    assert client.post(CHAT, json=BODY).status_code == 200
