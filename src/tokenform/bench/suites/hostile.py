"""Hostile schemas: each must give a clear error or a working grammar within a second and a gigabyte.

Purpose: no input hangs or kills the process, and the engine works as before afterwards.
Invariant: after each schema the same process compiles and walks a small one.
Complexity: one worker; a schema that kills it, or goes over a limit, is named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tokenform.bench.hostile import hostile_schemas
from tokenform.bench.maskcheck import byte_vocabulary
from tokenform.bench.workers import run_tasks
from tokenform.errors import TokenformError

SECONDS = 1.0
MEMORY = 1 << 30


@dataclass(frozen=True)
class HostileVerdict:
    """`kind`: "refused" (a TokenformError), "works", "foreign error", "slow", "timeout", "memory", "crash",
    "error"."""

    name: str
    kind: str
    seconds: float
    detail: str = ""

    @property
    def harmless(self) -> bool:
        return self.kind in ("refused", "works")


def prober() -> Callable[[str], tuple[str, str]]:
    """Build, in a worker, the function that meets one hostile schema and then tries a small one."""
    import tokenform as tf

    vocabulary, schemas = byte_vocabulary(), hostile_schemas()

    def probe(name: str) -> tuple[str, str]:
        try:
            automaton = tf.json_schema(schemas[name]).compile(vocabulary)
            state = automaton.start
            for _ in range(60):  # a walk along the first allowed bytes
                allowed = automaton.allowed_tokens(state)
                if not len(allowed):
                    return "error", "dead end"
                state = automaton.advance(state, int(allowed[-1] if allowed[-1] < 256 else allowed[0]))
                if automaton.is_finished(state):
                    break
            kind, detail = "works", ""
        except TokenformError as error:
            kind, detail = "refused", f"{type(error).__name__}: {error}"
        except Exception as error:
            kind, detail = "foreign error", f"{type(error).__name__}: {error}"
        if not tf.json_schema({"type": "integer"}).compile(vocabulary).matches(b"17"):
            return "error", "the engine no longer works"
        return kind, detail

    return probe


def run(only: str | None = None, *, timeout: float = 10.0, workers: int = 2) -> list[HostileVerdict]:
    """Meet each hostile schema (whose name holds `only`)."""
    names = [name for name in hostile_schemas() if not only or only in name]
    verdicts = []
    for name, outcome in run_tasks(names, prober, workers=workers, timeout=timeout, memory_bytes=MEMORY):
        kind, detail = outcome.value if outcome.status == "ok" else (outcome.status, outcome.detail)
        if kind in ("works", "refused") and outcome.seconds > SECONDS:
            kind = "slow"
        verdicts.append(HostileVerdict(name, kind, outcome.seconds, detail))
    return verdicts
