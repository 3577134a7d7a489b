"""The same tasks on a Ray cluster: actors of Ray Data, each with a worker process of its own behind it.

Purpose: yield (task, outcome) as `workers.run_tasks` does, the tasks spread over the machines of a cluster.
Invariant: the limits on time and memory hold where a task runs (the actor's own worker process is ended, not
the actor).  What was on a node that died is lost and tried again; a task that is lost `_ATTEMPTS` times, the
last of them with nothing beside it, counts as "crash".  Where actors die before they have begun (a node whose
memory others fill), no task is to blame: the wave begins again after a pause, `_STARTS` times.
Complexity: tasks travel in waves, a dataset each, one task a block; what a wave lost is in the next.
Rejected: Ray's own restarts and retries (a task that ends its node would take one node after the other, and
an actor whose node is gone waits for room for ever, its tasks with it); actors placed by hand (Ray Data knows
how full each is).
"""

from __future__ import annotations

import logging
import pickle
import socket
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from tokenform.batch.workers import TaskOutcome, WorkerStartError, run_tasks
from tokenform.errors import DataError, extras

_ATTEMPTS = 3
_STARTS = 7
_PAUSE_SECONDS = 1.0  # doubled each time
_WAVE = 2048
_REACH_SECONDS = 10.0


class PoolLost(Exception):
    """The actors of a wave could not be started."""


class Host:
    """What an actor holds: a pool of one worker process, fed a task at a time."""

    def __init__(
        self,
        factory: Callable[..., Callable[[Any], Any]],
        arguments: tuple[Any, ...],
        timeout: float,
        memory_bytes: int | None,
    ) -> None:
        self._broken = ""
        self._tasks: deque[Any] = deque()
        feed = iter(self._tasks.popleft, None)  # a task is appended before the pool asks
        self._stream = run_tasks(
            feed, factory, arguments, workers=1, timeout=timeout, memory_bytes=memory_bytes
        )

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """The outcomes of the tasks of a batch: columns "place" and "task" give "place" and "outcome"."""
        return {
            "place": list(batch["place"]),
            "outcome": [pickle.dumps(self._run(pickle.loads(task))) for task in batch["task"]],
        }

    def _run(self, task: Any) -> TaskOutcome | str:
        self._tasks.append(task)
        try:
            return self._broken or next(self._stream)[1]
        except WorkerStartError as error:
            self._broken = str(error) or "no reason is known"
            return self._broken


def run_on_ray(
    tasks: Iterable[Any],
    factory: Callable[..., Callable[[Any], Any]],
    arguments: tuple[Any, ...],
    address: str,
    *,
    workers: int,
    timeout: float,
    memory_bytes: int | None,
) -> Iterator[tuple[Any, TaskOutcome]]:
    """Run the tasks on the cluster at `address` ("auto": the running one, else a local one) with so many
    actors, at most one a processor; the other arguments are those of `run_tasks`.

    Raises:
        MissingExtra: Ray isn't installed.
        DataError: the cluster can't be reached.
        WorkerStartError: the factory itself raised, or no actor can be started.
    """
    with extras():
        import ray
        import ray.data
    _connect(ray, address, workers)
    source, again = iter(tasks), list[tuple[Any, int]]()
    given, failed = (factory, arguments, timeout, memory_bytes), 0
    while True:
        alone = next((one for one in again if one[1] == _ATTEMPTS - 1), None)
        if alone is not None:
            again.remove(alone)
            wave = [alone]
        else:
            wave = [*again, *((task, 0) for task in islice(source, _WAVE))]
            again.clear()
        if not wave:
            return
        left, blamed = dict(enumerate(wave)), 1
        try:
            for place, outcome in _outcomes(ray, [task for task, _ in wave], given, workers):
                if isinstance(outcome, str):
                    raise WorkerStartError(outcome)
                failed = 0
                yield left.pop(place)[0], outcome
        except PoolLost as error:
            failed, blamed = failed + 1, 0
            if failed == _STARTS:
                raise WorkerStartError(f"{_STARTS} times an actor died at its start: {error}") from error
            time.sleep(_PAUSE_SECONDS * 2 ** (failed - 1))
        for task, attempts in left.values():
            if attempts + blamed < _ATTEMPTS:
                again.append((task, attempts + blamed))
            else:
                yield task, TaskOutcome("crash", None, f"its actor died {_ATTEMPTS} times")


def _outcomes(
    ray: Any, tasks: list[Any], given: tuple[Any, ...], workers: int
) -> Iterator[tuple[int, TaskOutcome | str]]:
    """(place, outcome) of the tasks of a wave, without those that were lost.

    Raises:
        PoolLost: an actor died at its start, and the wave with it; the tasks that are left are not to blame.
    """
    room = max(1, min(workers, len(tasks), int(ray.cluster_resources().get("CPU", 1))))
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.max_errored_blocks = -1  # what dies with its actor is lost, and the others go on
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    rows = [{"place": place, "task": pickle.dumps(task)} for place, task in enumerate(tasks)]
    blocks = ray.data.from_items(rows, override_num_blocks=len(rows))
    with warnings.catch_warnings():  # what says that an actor does not come back has no other name yet
        warnings.filterwarnings("ignore", "`ray_remote_args` is deprecated")
        outcomes = blocks.map_batches(
            Host,
            batch_size=1,
            fn_constructor_args=given,
            compute=ray.data.ActorPoolStrategy(size=room),
            num_cpus=1,
            max_restarts=0,
            max_task_retries=0,
        )
    try:
        for batch in outcomes.iter_batches(batch_size=None, prefetch_batches=0):
            for place, outcome in zip(batch["place"], batch["outcome"]):
                yield int(place), pickle.loads(outcome)
    except ray.exceptions.RayError as error:  # a block that dies is lost by itself, see above
        reason = next((line for line in str(error).splitlines() if "memory" in line), str(error))
        logging.getLogger("tokenform").warning("a part of the cluster was lost: %s", reason)
        raise PoolLost(reason) from error


def _connect(ray: Any, address: str, workers: int) -> None:
    if ray.is_initialized():
        return
    if address != "auto":
        _reach(address)
    try:
        ray.init(address=address, log_to_driver=False)
    except ConnectionError as error:
        if address != "auto":
            raise DataError(f"no Ray cluster at {address}: {error}") from error
        ray.init(num_cpus=workers, log_to_driver=False, include_dashboard=False)


def _reach(address: str) -> None:
    """DataError where nothing listens at HOST:PORT or ray://HOST:PORT (Ray itself waits for minutes)."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise DataError(f"no Ray cluster at {address!r}: give auto, HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise DataError(f"no Ray cluster at {address}: {error}; start one with `ray start`") from error
