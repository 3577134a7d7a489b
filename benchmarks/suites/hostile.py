"""Hostile inputs: each entry gives a clear error or an answer within two seconds and half a gigabyte.

Purpose: no input hangs or kills the process whatever is asked of it, no text ends in a dead end, and the
engine works as before afterwards.
Invariant: after each input the same process compiles and walks a small schema.
Complexity: one worker; an input that kills it, or goes over a limit, is named with the entry it did it in.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tokenform.batch.workers import note, run_tasks
from tokenform.errors import TokenformError

from .hostile_inputs import hostile_cases
from .maskcheck import byte_vocabulary

SECONDS = 2.0
MEMORY = 512 << 20
BUDGET = 256
WALKS = 3
STEPS = 60
WALK_SECONDS = 5.0  # of processor time: no step is begun after it, each is judged by itself
DOCUMENT = b'{"a": [1, 2, {"k0": "aaa", "k1": null}], "k0": 3, "k1": "b", "": -1.5e3}'


@dataclass(frozen=True)
class HostileVerdict:
    """`kind`: "refused" (a TokenformError), "works", "foreign error", "slow", "timeout", "memory", "crash",
    "error"; `seconds` of processor time of the slowest entry."""

    name: str
    kind: str
    seconds: float
    detail: str = ""

    @property
    def harmless(self) -> bool:
        return self.kind in ("refused", "works")


class _Asked:
    """The entries that were asked, and how long each took."""

    def __init__(self) -> None:
        self.slowest = ("", 0.0)
        self.refused = ""
        self.noted = ""

    def ask(self, entry: str, call: Callable[[], Any]) -> Any:
        """The answer, or None where it is refused."""
        if entry != self.noted:
            note(entry)
            self.noted = entry
        began = time.process_time()
        try:
            return call()
        except TokenformError as error:
            self.refused = self.refused or f"{entry}: {type(error).__name__}: {error}"
            return None
        finally:
            took = time.process_time() - began
            if took > self.slowest[1]:
                self.slowest = (entry, took)


def _walk(asked: _Asked, automaton: Any, rng: random.Random, until: float) -> bool:
    """Some allowed bytes one after the other; whether there was always one."""
    state = automaton.start
    for _ in range(STEPS):
        if automaton.is_finished(state) or time.process_time() > until:
            break
        allowed = asked.ask("walk", partial(automaton.allowed_tokens, state))
        if allowed is None:
            break
        if not len(allowed):
            return False
        following = asked.ask("walk", partial(automaton.advance, state, int(rng.choice(allowed))))
        if following is None:
            break
        state = following
    return True


def _entries(asked: _Asked, make: Callable[[], Any], vocabulary: Any) -> bool:
    """Ask every entry of one input; False where a text came to a dead end."""
    grammar = asked.ask("make", make)
    automaton = grammar and asked.ask("compile", lambda: grammar.compile(vocabulary))
    if not automaton:
        return True
    start = automaton.start
    asked.ask("mask", lambda: automaton.mask(start))
    asked.ask("forced", lambda: automaton.forced(start))
    asked.ask("distance within a budget", lambda: automaton.distance(start, BUDGET))
    asked.ask("mask within a budget", lambda: automaton.mask_within(start, BUDGET))
    until = time.process_time() + WALK_SECONDS
    walks = [_walk(asked, automaton, random.Random(i), until) for i in range(WALKS)]
    asked.ask("expected", lambda: automaton.expected(start))
    asked.ask("check", lambda: automaton.check(DOCUMENT))
    asked.ask("distance", lambda: automaton.distance(start))
    return False not in walks


def prober() -> Callable[[str], tuple[str, str, float]]:
    """Build, in a worker, the function that meets one hostile input and then tries a small schema."""
    import tokenform as tf

    vocabulary, cases = byte_vocabulary(), hostile_cases()

    def probe(name: str) -> tuple[str, str, float]:
        asked = _Asked()
        try:
            alive = _entries(asked, cases[name], vocabulary)
            kind, detail = ("refused", asked.refused) if asked.refused else ("works", "")
            if not alive:
                kind, detail = "error", "dead end"
        except Exception as error:
            kind, detail = "foreign error", f"{type(error).__name__}: {error}"
        if not tf.json_schema({"type": "integer"}).compile(vocabulary).matches(b"17"):
            return "error", "the engine no longer works", 0.0
        entry, seconds = asked.slowest
        if kind in ("works", "refused") and seconds > SECONDS:
            return "slow", f"{entry} {seconds:.1f} s; {detail}", seconds
        return kind, detail, seconds

    return probe


def run(
    only: str | None = None, *, timeout: float = 10.0, workers: int = 2, every: int = 1
) -> list[HostileVerdict]:
    """Meet each hostile input (whose name holds `only`), or one in `every`; of keywords of the wrong type,
    which are answered at once, one in four."""
    names = [name for name in hostile_cases() if not only or only in name]
    brief = [name for name in names if name.startswith("wrong type")]
    names = brief[:: min(every, 4)] + [name for name in names if name not in set(brief)][::every]
    verdicts = []
    for name, outcome in run_tasks(names, prober, workers=workers, timeout=timeout, memory_bytes=MEMORY):
        if outcome.status == "ok":
            kind, detail, seconds = outcome.value
        else:
            kind, detail, seconds = outcome.status, f"{outcome.noted}: {outcome.detail}", outcome.seconds
        verdicts.append(HostileVerdict(name, kind, seconds, detail))
    return verdicts
