"""A span of OpenTelemetry for each request, where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

try:
    from opentelemetry import trace
except ModuleNotFoundError:
    trace = None  # type: ignore[assignment]


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
