"""What happens to tasks whose actors die, without a cluster: Ray's part is played by a script."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tokenform.batch import cluster
from tokenform.batch.workers import TaskOutcome, WorkerStartError


class Died(Exception):
    """In place of Ray's error."""


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the numbers from 0 with two actors; `dies(task, beside)` and `starts(number)` are the script.

    Gives outcomes, (task, tasks beside it) in the order in which they were handed over, and pauses.
    """
    pauses: list[float] = []
    monkeypatch.setattr(cluster, "_connect", lambda *_: None)
    monkeypatch.setattr(cluster.time, "sleep", pauses.append)

    def run(
        count: int, dies: Callable[[int, list[int]], bool], starts: Callable[[int], bool] = lambda _: True
    ) -> tuple[dict[int, str], list[tuple[int, list[int]]], list[float]]:
        handed: list[tuple[int, list[int]]] = []
        flying: dict[int, Any] = {}
        actors: list[int] = []

        def call(answer: Callable[[], Any], task: int | None = None) -> int:
            number = len(handed) + len(actors) + 1000 * (task is None)
            if task is not None:
                handed.append((task, [one for one, _ in flying.values() if one is not None]))
            flying[number] = task, answer
            return number

        class Actor:
            def __init__(self) -> None:
                self.number = len(actors)
                actors.append(self.number)
                self.run, self.ready = SimpleNamespace(remote=self.start), SimpleNamespace(remote=self.begin)

            def start(self, task: int) -> int:
                def answer() -> TaskOutcome:
                    if dies(task, beside):
                        raise Died("the node is low on memory")
                    return TaskOutcome("ok")

                beside = [one for one, _ in flying.values() if one is not None]
                return call(answer, task)

            def begin(self) -> int:
                def answer() -> None:
                    if not starts(self.number):
                        raise Died("the node is low on memory")

                return call(answer)

        ray = ModuleType("ray")
        ray.__dict__.update(
            exceptions=SimpleNamespace(RayError=Died),
            cluster_resources=lambda: {"CPU": 2},
            remote=lambda **_: lambda _: SimpleNamespace(remote=lambda *_, **__: Actor()),
            wait=lambda refs, timeout: (sorted(refs, key=lambda ref: ref not in flying)[:1], []),
            get=lambda ref: flying.pop(ref)[1](),
        )
        monkeypatch.setitem(sys.modules, "ray", ray)
        ended = cluster.run_on_ray(
            iter(range(count)), lambda: None, (), "auto", workers=2, timeout=1.0, memory_bytes=None
        )
        return {task: outcome.status for task, outcome in ended}, handed, pauses

    return run


def test_what_an_actor_had_is_tried_again_and_the_last_time_alone(played: Any) -> None:
    ended, handed, _ = played(6, lambda task, _: task in (2, 4))
    assert ended == {0: "ok", 1: "ok", 3: "ok", 5: "ok", 2: "crash", 4: "crash"}
    tries = [task for task, _ in handed]
    assert [tries.count(task) for task in range(6)] == [1, 1, 3, 1, 3, 1]
    for task in (2, 4):
        assert [beside for one, beside in handed if one == task][-1] == []


def test_a_task_that_takes_others_with_it_costs_itself_alone(played: Any) -> None:
    ended, handed, _ = played(8, lambda task, beside: 3 in (task, *beside))
    assert ended == {**dict.fromkeys(range(8), "ok"), 3: "crash"}
    assert max([task for task, _ in handed].count(task) for task in range(8)) == 3


def test_actors_that_do_not_start_blame_no_task(played: Any) -> None:
    ended, handed, pauses = played(9, lambda *_: False, lambda number: number > 4)
    assert ended == dict.fromkeys(range(9), "ok") and len(handed) == 9
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_a_cluster_on_which_nothing_starts_is_said(played: Any) -> None:
    with pytest.raises(WorkerStartError, match=r"7 times .* low on memory"):
        played(3, lambda *_: False, lambda _: False)
