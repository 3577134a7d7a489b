"""Metrics of the server for Prometheus; each app has a registry of its own."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from tokenform.decoding.scheduler import Load
from tokenform.errors import extras

with extras():
    from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120)


class Metrics:
    """Args:
    load: gives the scheduler's load.
    """

    def __init__(self, load: Callable[[], Load]) -> None:
        self._registry = CollectorRegistry()
        self._load = load
        registry: dict[str, Any] = {"registry": self._registry}
        self._requests = Counter(
            "tokenform_requests", "Requests by endpoint and status.", ["endpoint", "status"], **registry
        )
        self._refusals = Counter(
            "tokenform_refusals", "Requests without a whole answer, by reason.", ["reason"], **registry
        )
        self._cancelled = Counter("tokenform_cancelled", "Requests whose client went away.", **registry)
        self.first = Histogram(
            "tokenform_first_token_seconds", "Request to first text.", buckets=_SECONDS, **registry
        )
        self.whole = Histogram(
            "tokenform_request_seconds", "Request to last text.", buckets=_SECONDS, **registry
        )
        self._registry.register(self)
        ProcessCollector(registry=self._registry)  # memory, time of the processor, open files; on Linux

    def count(self, endpoint: str, status: int, refusal: str | None) -> None:
        """Counts a finished request; `refusal` is why it has no whole answer."""
        self._requests.labels(endpoint, str(status)).inc()
        if refusal is not None:
            self._refusals.labels(refusal).inc()
            if refusal == "cancelled":
                self._cancelled.inc()

    def collect(self) -> Any:
        """The scheduler's numbers, when Prometheus asks."""
        load = self._load()
        for name, value, help in (
            ("running_texts", load.running, "Texts in the batch."),
            ("waiting_texts", load.waiting, "Texts that wait."),
            ("threads", threading.active_count(), "Threads of Python."),
            ("device_memory_bytes", _device_memory(), "Memory of the GPU that torch holds; 0 without one."),
            ("sampler_jobs", load.jobs, "Calls of faithful samplers that run or wait."),
            (
                "tokens_per_forward",
                load.tokens / max(load.forwards, 1),
                "Tokens a forward pass, since the start.",
            ),
        ):
            yield GaugeMetricFamily(f"tokenform_{name}", help, value=value)
        for name, value, help in (
            ("tokens", load.tokens, "Tokens written."),
            ("steps", load.steps, "Steps of the batch."),
            ("forwards", load.forwards, "Forward passes of the model."),
            ("drafted", load.drafted, "Drafted tokens."),
            ("accepted", load.accepted, "Drafted tokens that were kept."),
            ("model_seconds", load.seconds_model, "Time in the model, of texts that have ended."),
            ("mask_seconds", load.seconds_mask, "Time in masks, of texts that have ended."),
        ):
            yield CounterMetricFamily(f"tokenform_{name}", help, value=value)

    def text(self) -> bytes:
        """All metrics in Prometheus's format."""
        written: bytes = generate_latest(self._registry)
        return written


def _device_memory() -> int:
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    return sum(torch.cuda.memory_reserved(number) for number in range(torch.cuda.device_count()))
