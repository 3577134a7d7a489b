"""A task that hangs, dies or eats memory costs that task alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tokenform.batch.workers import WorkerStartError, run_tasks

sys.path.insert(0, str(Path(__file__).parent))
from worker_handlers import behave, broken


def test_each_task_ends_once_and_the_others_go_on() -> None:
    tasks = [
        ("double", 1),
        ("die", 3),
        ("raise", "oh"),
        ("sleep", 30),
        ("double", 2),
        ("eat", 400),
        ("double", 3),
    ]
    outcomes = dict(run_tasks(tasks, behave, (2,), workers=2, timeout=10, memory_bytes=300 << 20))
    assert {task: outcome.status for task, outcome in outcomes.items()} == {
        ("double", 1): "ok",
        ("die", 3): "crash",
        ("raise", "oh"): "error",
        ("sleep", 30): "timeout",
        ("double", 2): "ok",
        ("eat", 400): "memory",
        ("double", 3): "ok",
    }
    assert [outcomes["double", n].value for n in (1, 2, 3)] == [2, 4, 6]
    assert outcomes["die", 3].detail == "exit code 3"
    assert outcomes["raise", "oh"].detail == "ValueError: oh"


def test_setting_up_is_not_the_tasks_time_and_notes_outlive_the_worker() -> None:
    tasks = [("prepare and sleep", (3.0, 0.0)), ("prepare and sleep", (0.0, 60.0))]
    outcomes = dict(run_tasks(tasks, behave, (1,), workers=2, timeout=2.5))
    assert [(o.status, o.noted) for o in map(outcomes.get, tasks)] == [
        ("ok", "prepared"),
        ("timeout", "prepared"),
    ]


def test_fresh_processes_and_kept_ones() -> None:
    tasks = [("pid", n) for n in range(3)]
    kept = {outcome.value for _, outcome in run_tasks(tasks, behave, (1,), workers=1)}
    fresh = {outcome.value for _, outcome in run_tasks(tasks, behave, (1,), workers=1, fresh=True)}
    assert len(kept) == 1
    assert len(fresh) == 3


def test_a_handler_that_can_not_be_built_is_an_error_of_the_run() -> None:
    with pytest.raises(WorkerStartError, match="no engine here"):
        list(run_tasks([1], broken))
