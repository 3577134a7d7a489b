"""What happens to tasks whose actors die, without a cluster: waves are played by a script."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tokenform.batch import cluster
from tokenform.batch.workers import TaskOutcome, WorkerStartError


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the numbers from 0 under `wave(tasks, number of the wave)`; gives outcomes, waves and pauses."""
    data = ModuleType("ray.data")
    ray = ModuleType("ray")
    ray.data = data  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.data", data)
    monkeypatch.setattr(cluster, "_connect", lambda *_: None)
    pauses: list[float] = []
    monkeypatch.setattr(cluster.time, "sleep", pauses.append)

    def run(count: int, wave: Any) -> tuple[dict[int, str], list[list[int]], list[float]]:
        waves: list[list[int]] = []

        def outcomes(_: Any, tasks: list[int], *__: Any) -> Iterator[tuple[int, TaskOutcome | str]]:
            waves.append(tasks)
            for place in wave(tasks, len(waves) - 1):
                yield place, TaskOutcome("ok")

        monkeypatch.setattr(cluster, "_outcomes", outcomes)
        ended = cluster.run_on_ray(
            iter(range(count)), lambda: None, (), "auto", workers=2, timeout=1.0, memory_bytes=None
        )
        return {task: outcome.status for task, outcome in ended}, waves, pauses

    return run


def test_what_an_actor_had_is_tried_again_and_the_last_time_alone(played: Any) -> None:
    ended, waves, _ = played(6, lambda tasks, _: [i for i, task in enumerate(tasks) if task not in (2, 4)])
    assert ended == {0: "ok", 1: "ok", 3: "ok", 5: "ok", 2: "crash", 4: "crash"}
    assert waves == [[0, 1, 2, 3, 4, 5], [2, 4], [2], [4]]


def test_actors_that_do_not_start_blame_no_task(played: Any) -> None:
    def wave(tasks: list[int], number: int) -> Iterator[int]:
        if number in (1, 2, 3, 4):
            raise cluster.PoolLost("the node is low on memory")
        yield from range(3 if number == 0 else len(tasks))
        if number == 0:
            raise cluster.PoolLost("the node is low on memory")

    ended, waves, pauses = played(9, wave)
    assert ended == dict.fromkeys(range(9), "ok")
    assert [len(tasks) for tasks in waves] == [9, 6, 6, 6, 6, 6]  # together, not one by one
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_a_cluster_on_which_nothing_starts_is_said(played: Any) -> None:
    def wave(tasks: list[int], number: int) -> Iterator[int]:
        raise cluster.PoolLost("the node is low on memory")

    with pytest.raises(WorkerStartError, match=r"7 times .* low on memory"):
        played(3, wave)


def test_more_tasks_than_a_wave_holds(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_WAVE", 4)
    ended, waves, _ = played(10, lambda tasks, number: range(1 if number == 0 else len(tasks)))
    assert sorted(ended) == list(range(10)) and set(ended.values()) == {"ok"}
    assert waves == [[0, 1, 2, 3], [1, 2, 3, 4, 5, 6, 7], [8, 9]]
