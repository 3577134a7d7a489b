"""The same work on a Ray cluster: actors, each with a worker process of its own behind it.

Purpose: yield (unit, outcome) as `run_tasks` does, with the units spread over the machines of a cluster.
Invariant: the limits on time and memory hold where the unit runs (the actor's own worker process is killed,
not the actor); a unit whose actor or node died is given to another one, up to `_ATTEMPTS` times, and then
counts as "crash".
Complexity: at most two units in flight for each actor, so that none waits for the driver.
Rejected: Ray tasks with their own retries (a unit that kills its node would take one node after the other);
Ray's restarts of actors (what is sent while one is restarting fails at once, three times in a moment).
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from tokenform.batch.workers import Outcome, run_tasks
from tokenform.bench.evaluate.plan import Options
from tokenform.bench.evaluate.store import Unit
from tokenform.bench.evaluate.units import unit_runner
from tokenform.errors import DataError, extras

_ATTEMPTS = 3
_REACH_SECONDS = 10.0
_FLIGHT = 2


class Host:
    """What an actor holds: a pool of one worker process, fed a unit at a time."""

    def __init__(self, options: Options, timeout: float, memory_bytes: int) -> None:
        self._units: deque[Unit] = deque()
        feed = iter(self._units.popleft, None)  # `run` appends before the pool asks
        self._stream = run_tasks(
            feed, unit_runner, (options,), workers=1, timeout=timeout, memory_bytes=memory_bytes
        )

    def run(self, unit: Unit) -> Outcome:
        self._units.append(unit)
        _, outcome = next(self._stream)
        return outcome


def run_on_ray(
    units: Iterable[Unit], options: Options, address: str, workers: int, timeout: float, memory_bytes: int
) -> Iterator[tuple[Unit, Outcome]]:
    """Run the units on the cluster at `address` ("auto": the running one, else a local one) with so many
    actors, at most one a processor.

    Raises:
        MissingExtra: Ray isn't installed.
        DataError: the cluster can't be reached.
    """
    with extras():
        import ray
    _connect(ray, address, workers)
    make: Any = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(Host)

    def room() -> int:
        return max(1, min(workers, int(ray.cluster_resources().get("CPU", 1))))  # an actor takes a processor

    load: dict[Any, int] = {make.remote(options, timeout, memory_bytes): 0 for _ in range(room())}
    source, again = iter(units), deque[Unit]()
    flying: dict[Any, tuple[Unit, Any]] = {}
    attempts: dict[tuple[str, str, str], int] = {}
    try:
        while True:
            while min(load.values()) < _FLIGHT:
                if not again:
                    again.extend(islice(source, 1))
                if not again:
                    break
                unit, actor = again.popleft(), min(load, key=load.__getitem__)
                flying[actor.run.remote(unit)] = unit, actor
                load[actor] += 1
            if not flying:
                return
            for reference in ray.wait(list(flying), num_returns=1)[0]:
                unit, actor = flying.pop(reference)
                try:
                    outcome = ray.get(reference)
                except ray.exceptions.RayActorError:
                    if load.pop(actor, None) is not None and (not load or len(load) < room()):
                        load[make.remote(options, timeout, memory_bytes)] = 0
                    attempts[unit.key] = attempts.get(unit.key, 0) + 1
                    if attempts[unit.key] < _ATTEMPTS:
                        again.append(unit)
                        continue
                    outcome = Outcome("crash", None, f"its actor died {_ATTEMPTS} times")
                except ray.exceptions.RayTaskError as error:
                    raise DataError(f"no worker could be started: {error.cause}") from error
                if actor in load:
                    load[actor] -= 1
                yield unit, outcome
    finally:
        for actor in load:
            ray.kill(actor)


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
