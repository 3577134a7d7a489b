"""The same tasks on a Ray cluster: actors, with a worker process of its own behind each.

Purpose: yield (task, outcome) as `workers.run_tasks` does, the tasks spread over the machines of a cluster.
Invariant: the limits on time and memory hold where a task runs (the actor's own worker process is ended, not
the actor).  What was on a node that died is tried again; a task that is lost `_ATTEMPTS` times, the last of
them with nothing beside it, counts as "crash".  An actor that can't be started (a node whose memory others
fill) blames no task: another one is started after a pause, `_STARTS` times in a row.
Rejected: Ray's own restarts and retries (a task that ends its node would take one node after the other, and
an actor whose node is gone waits for room for ever, its tasks with it); Ray Data (a block that is lost is
lost with all blocks of its stage).
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from tokenform.batch.workers import TaskOutcome, WorkerStartError, run_tasks
from tokenform.errors import DataError, extras

_ATTEMPTS = 3
_STARTS = 7
_PAUSE_SECONDS = 1.0  # doubled each time
_ROOM_SECONDS = 120.0
_REACH_SECONDS = 10.0


class Host:
    """What an actor holds: a pool of one worker process, fed a task at a time."""

    def __init__(self, factory: Callable[..., Any], arguments: tuple[Any, ...], **bounds: Any) -> None:
        self._tasks: deque[Any] = deque()
        feed = iter(self._tasks.popleft, None)  # a task is appended before the pool asks
        self._stream = run_tasks(feed, factory, arguments, workers=1, **bounds)

    def run(self, task: Any) -> TaskOutcome | str:
        """How the task ended, or why nothing can be run here."""
        self._tasks.append(task)
        try:
            return next(self._stream)[1]
        except WorkerStartError as error:
            return str(error) or "no reason is known"

    def ready(self) -> None:
        """Answers when the actor has started."""


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
    _connect(ray, address, workers)
    actor = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(Host)
    source, waiting = iter(tasks), deque[tuple[Any, int]]()
    starting, idle, busy = dict[Any, Any](), list[Any](), dict[Any, tuple[Any, Any, int]]()
    failed = 0
    while True:
        worker_count = max(1, min(workers, int(ray.cluster_resources().get("CPU", 1))))
        waiting.extend((task, 0) for task in islice(source, max(worker_count - len(waiting), 0)))
        if not waiting and not busy:
            return
        alone = bool(waiting) and waiting[0][1] == _ATTEMPTS - 1
        if waiting and idle and not (alone and busy):
            host, (task, attempts) = idle.pop(), waiting.popleft()
            busy[host.run.remote(task)] = host, task, attempts
            continue
        if not idle and len(starting) < len(waiting) and len(busy) + len(starting) < worker_count:
            host = actor.remote(factory, arguments, timeout=timeout, memory_bytes=memory_bytes)
            starting[host.ready.remote()] = host
            continue
        ended = ray.wait([*busy, *starting], timeout=None if busy else _ROOM_SECONDS)[0]
        if not ended:
            raise WorkerStartError(f"no actor has started in {_ROOM_SECONDS:g} s: the cluster has no room")
        if ended[0] in starting:
            host, failed = starting.pop(ended[0]), _started(ray, ended[0], failed)
            idle += [host] if failed == 0 else []
            continue
        host, task, attempts = busy.pop(ended[0])
        try:
            outcome = ray.get(ended[0])
        except ray.exceptions.RayError:  # the actor died, or its node
            if attempts + 1 < _ATTEMPTS:
                waiting.append((task, attempts + 1))
            else:
                yield task, TaskOutcome("crash", None, f"its actor died {_ATTEMPTS} times")
            continue
        if isinstance(outcome, str):
            raise WorkerStartError(outcome)
        idle.append(host)
        yield task, outcome


def _started(ray: Any, answer: Any, failed: int) -> int:
    """How many starts in a row have failed, with this one; waits a while after one that has.

    Raises:
        WorkerStartError: too many.
    """
    try:
        ray.get(answer)
    except ray.exceptions.RayError as error:
        if failed + 1 == _STARTS:
            raise WorkerStartError(f"{_STARTS} times an actor died at its start: {error}") from error
        time.sleep(_PAUSE_SECONDS * 2**failed)
        return failed + 1
    return 0


def _connect(ray: Any, address: str, workers: int) -> None:
    """DataError where no cluster is at HOST:PORT or ray://HOST:PORT (Ray itself waits for minutes)."""
    if ray.is_initialized():
        return
    try:
        if address != "auto":
            host, _, port = address.removeprefix("ray://").rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS).close()
        ray.init(address=address, log_to_driver=False)
    except (ConnectionError, OSError, OverflowError, ValueError) as error:
        if address == "auto" and isinstance(error, ConnectionError):
            ray.init(num_cpus=workers, log_to_driver=False, include_dashboard=False)
            return
        raise DataError(
            f"no Ray cluster at {address!r}: {error}; give auto, HOST:PORT or ray://HOST:PORT of one that "
            "`ray start` has started"
        ) from error
