"""Handlers for the tests of the worker pool: each does what its task says."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tokenform.batch.workers import note, untimed
from tokenform_bench.evaluate.store import Unit, UnitResult


def behave(scale: int) -> Callable[[tuple[str, Any]], Any]:
    kept = []

    def handle(task: tuple[str, Any]) -> Any:
        what, argument = task
        if what == "double":
            return scale * argument
        if what == "sleep":
            time.sleep(argument)
        if what == "prepare and sleep":
            with untimed():
                time.sleep(argument[0])
            note("prepared")
            time.sleep(argument[1])
        if what == "raise":
            raise ValueError(argument)
        if what == "die":
            os._exit(argument)
        if what == "eat":
            kept.append(bytearray(os.urandom(1024)) * (argument << 10))
            time.sleep(30)
        if what == "pid":
            return os.getpid()
        return None

    return handle


def broken() -> Callable[[Any], Any]:
    raise RuntimeError("no engine here")


def run_unit(_: Any = None, log: str = "") -> Callable[[Sequence[Unit]], list[UnitResult]]:
    """In place of `unit_runner`: cases named for it hang, die, eat memory, fail, or fail the first time; the
    others write `1`."""
    behaviour = behave(1)

    def handle(unit: Unit) -> UnitResult:
        what = unit.case.case_id.partition("-")[0]
        tried = Path(log).with_name("-".join(unit.key))
        if what == "fail" or (what == "flaky" and not tried.exists()):
            tried.touch()
            return UnitResult("error", "no luck")
        if what in ("sleep", "die", "eat"):
            behaviour((what, {"sleep": 60, "die": 3, "eat": 400}[what]))
        times: dict[str, Any] = {"compile_s": 0.1, "first_token_s": 0.2, "model_s": 0.1, "mask_s": 0.1}
        return UnitResult("ok", **times, tokens=1, forwards=1, finished=True, text="1")

    return lambda group: [handle(unit) for unit in group]
