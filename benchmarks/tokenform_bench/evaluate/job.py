"""Running an evaluation: plan, write, judge; stop and go on.

Purpose: `run(options, path)` brings the database to the state in which every unit has a result and every text
a verdict.
Invariant: a unit with a result is never run again, but for one that failed: every start tries it once more.
A unit without one is run by the next start, however this one ended.
Complexity: units in parallel in `workers` processes (or on a Ray cluster); one database writer, this process.
Rejected: writers in the workers (locks, and a killed worker in the middle of a transaction).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from tokenform.batch.cluster import run_on_ray
from tokenform.batch.progress import Meter
from tokenform.batch.workers import TaskOutcome, WorkerStartError, run_tasks
from tokenform.errors import DataError, OptionError
from tokenform_bench.evaluate.plan import Options, cases_of, units_left
from tokenform_bench.evaluate.store import Store, Unit, UnitResult, Verdict
from tokenform_bench.evaluate.units import JudgeTask, judge_runner, unit_runner
from tokenform_bench.measure import environment

_RETRIED = ("error", "crash")  # a limit of time or memory that was passed would be passed again


@dataclass(frozen=True)
class Limits:
    """How the work is done; may differ from start to start.

    Attributes:
        workers: processes (with Ray: actors).
        timeout: seconds for one unit.
        memory_mib: resident size at which a worker is ended.
        judge_timeout: seconds for one verdict.
        batch: cases whose texts are written together, with all engines; 0: each text alone. A group that
            fails as a whole is written again, each text alone.
        ray: address of a Ray cluster, "auto" for the running one or a local one; None for processes of this
        machine.
    """

    workers: int = 2
    timeout: float = 120.0
    memory_mib: int = 4096
    judge_timeout: float = 30.0
    ray: str | None = None
    batch: int = 0

    def __post_init__(self) -> None:
        for name in ("workers", "timeout", "memory_mib", "judge_timeout"):
            if not getattr(self, name) > 0:
                raise OptionError(f"{name} must be greater than 0, not {getattr(self, name)}")


def run(options: Options, path: str | Path, limits: Limits | None = None, *, quiet: bool = False) -> None:
    """Begin the evaluation in the database at `path`, or go on with it.

    Raises:
        OptionError: the database holds a run with other options.
        DataError: the data or an engine that was asked for can't be had.
    """
    limits = limits or Limits()
    options.check_engines()
    with Store(path) as store:
        store.fix_options(options.as_dict())
        if not store.planned():
            store.add_cases(cases_of(options))
        session = store.begin_session({**environment(), "limits": vars(limits)})
        _write_all(store, options, limits, session, quiet)
        _judge(store, limits, quiet)


def judge(path: str | Path, limits: Limits | None = None, *, quiet: bool = False) -> None:
    """Judge what was written so far, so that the report of an unfinished run has verdicts."""
    with Store(path) as store:
        _judge(store, limits or Limits(), quiet)


def _judge(store: Store, limits: Limits, quiet: bool) -> None:
    if store.options().get("job") == "masks":
        _judge_masks(store)
    else:
        _judge_all(store, limits, quiet)


def _outcomes(
    units: Iterable[tuple[Unit, ...]], options: Options, limits: Limits, log: Path
) -> Iterator[tuple[tuple[Unit, ...], TaskOutcome]]:
    memory, timeout = limits.memory_mib << 20, limits.timeout * max(limits.batch, 1)
    if limits.ray is not None:
        return run_on_ray(
            units,
            unit_runner,
            (options,),
            limits.ray,
            workers=limits.workers,
            timeout=timeout,
            memory_bytes=memory,
        )
    return run_tasks(
        units,
        unit_runner,
        (options, str(log)),
        workers=limits.workers,
        timeout=timeout,
        memory_bytes=memory,
    )


def _write_all(store: Store, options: Options, limits: Limits, session: float, quiet: bool) -> None:
    """Run what has no result; what failed, now or in an earlier start, is tried once more, each alone."""
    again = store.forget(_RETRIED)
    alone = replace(limits, batch=0)
    if limits.batch:
        _write_left(store, options, limits, session, quiet)
        again = store.forget(_RETRIED) or again
    _write_left(store, options, alone, session, quiet)
    if not again and store.forget(_RETRIED):
        _write_left(store, options, alone, session, quiet)


def _write_left(store: Store, options: Options, limits: Limits, session: float, quiet: bool) -> None:
    units = units_left(store, options)
    if not units:
        return
    groups = _grouped(units, limits.batch)
    total = store.case_count() * len(options.engines)
    log = store.path.with_name("workers.log")
    try:
        with Meter("units", total, total - len(units), quiet) as meter:
            for group, outcome in _outcomes(groups, options, limits, log):
                for unit, result in zip(group, _results(group, outcome), strict=False):
                    store.add_result(unit, result, session)
                    meter.step(result.status)
    except WorkerStartError as error:
        raise DataError(f"no worker could be started: {str(error).removeprefix('ModelError: ')}") from error


def _grouped(units: list[Unit], batch: int) -> list[tuple[Unit, ...]]:
    """The units of so many cases together, in order; each alone for 0."""
    if not batch:
        return [(unit,) for unit in units]
    cases = dict[tuple[str, str], list[Unit]]()
    for unit in units:
        cases.setdefault(unit.key[1:], []).append(unit)
    listed = list(cases.values())
    return [tuple(chain.from_iterable(listed[at : at + batch])) for at in range(0, len(listed), batch)]


def _results(group: tuple[Unit, ...], outcome: TaskOutcome) -> list[UnitResult]:
    """The units' results: the worker's own, or how the worker ended; none of a group that failed whole."""
    if outcome.status == "ok":
        results: list[UnitResult] = outcome.value
    elif len(group) > 1:
        return []
    else:
        ended = UnitResult(
            outcome.status, outcome.detail[:500], compile_s=outcome.noted, total_s=outcome.seconds
        )
        results = [ended]
    for result in results:
        result.peak_mib = outcome.peak_bytes / 2**20
    return results


def _judge_all(store: Store, limits: Limits, quiet: bool) -> None:
    """Judge every text that has no verdict; a judge that hangs leaves the text "not judged" (neither valid
    nor disputed)."""
    cases = {(case.kind, case.case_id): case for case in store.cases()}
    waiting = store.unjudged()

    def tasks() -> Iterator[JudgeTask]:
        for key, text in waiting:
            case = cases[key[1], key[2]]
            yield key, case.schema, text, case.task

    with Meter("verdicts", len(waiting), 0, quiet) as meter:
        stream = run_tasks(
            tasks(),
            judge_runner,
            workers=limits.workers,
            timeout=limits.judge_timeout,
            memory_bytes=limits.memory_mib << 20,
        )
        for task, outcome in stream:
            if outcome.status == "ok":
                verdict: Verdict = outcome.value
            else:
                verdict = Verdict(False, False, False, {"none": f"{outcome.status} {outcome.detail}"})
            store.add_verdict(task[0], verdict)
            meter.step("valid" if verdict.valid else "invalid")


def _judge_masks(store: Store) -> None:
    """Without a model, "valid" means that all documents of the schema were judged right."""
    for row in store.rows():
        if row["status"] == "ok" and row["valid"] is None:
            right = row["detail"] == "pass"
            detail: dict[str, Any] = {"documents": None if right else row["detail"]}
            store.add_verdict(
                (row["engine"], row["kind"], row["case_id"]), Verdict(True, right, False, detail)
            )
