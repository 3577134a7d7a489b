"""Worker processes with limits: a task that hangs, crashes or eats memory costs that task alone.

Invariant: every task gets exactly one `TaskOutcome`; a worker that was killed is replaced; when the parent
dies, its workers die with it (even in the middle of a call that never returns).
Complexity: one pipe round trip (about 0.1 ms) a task; a killed worker costs the start of a new one.
Rejected: `concurrent.futures` (one dead worker breaks the pool, no timeouts that end anything); RLIMIT_AS (it
counts address space, so that an engine with a large reservation dies without need, and a failed allocation
aborts without a word).
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal

Status = Literal["ok", "error", "timeout", "memory", "crash"]
_POLL_SECONDS = 0.05
_EXIT_SECONDS = 2.0
SETUP_SECONDS = 600.0
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """How a task ended.

    Attributes:
        status: "ok", "error" (the handler raised), "timeout", "memory" (over the limit), "crash" (the process
        died).
        value: what the handler returned, for "ok".
        detail: the error, signal or limit in words, for the others.
        noted: the last value that the handler passed to `note`, None without one.
        seconds: wall-clock seconds from hand-over to answer.
        peak_bytes: largest resident size that was seen while the task ran (0 where /proc is missing).
    """

    status: Status
    value: Any = None
    detail: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    noted: Any = None


_parent: Connection | None = None  # in a worker: its end of the pipe


def _tell(kind: str, value: Any) -> None:
    if _parent is not None:
        with contextlib.suppress(BrokenPipeError, OSError):
            _parent.send((kind, value))


def note(value: Any) -> None:
    """Tell the parent, from inside a handler, how far the task is: it is kept in the task's outcome, even
    if the task hangs or kills its process later.  Outside a worker nothing happens."""
    _tell("note", value)


@contextlib.contextmanager
def untimed() -> Iterator[None]:
    """Inside a handler: what is done here is the worker's own setting up, and not part of the task's time;
    the task's limit counts from the end on.  It has `SETUP_SECONDS` itself."""
    _tell("setup", True)
    try:
        yield
    finally:
        _tell("setup", False)


def _serve(
    pipe: Connection, factory: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...]
) -> None:
    """The worker's loop: build the handler, then answer tasks until the pipe closes."""
    global _parent
    _parent = pipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        handler = factory(*arguments)
    except BaseException as error:
        pipe.send(("failed", f"{type(error).__name__}: {error}"))
        return
    pipe.send(("ready", os.getpid()))
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answer = ("ok", handler(task))
        except BaseException as error:  # a Rust panic is a BaseException; it must not end the worker
            answer = ("error", f"{type(error).__name__}: {error}"[:2000])
        try:
            pipe.send(answer)
        except (BrokenPipeError, OSError):
            return


class _Worker:
    """One process, its pipe, and the task that it has in hand."""

    def __init__(self, factory: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, far = context.Pipe()
        self._process = context.Process(target=_serve, args=(far, factory, arguments), daemon=True)
        self._process.start()
        far.close()
        self.ready = self.busy = self._setting_up = False
        self.task: Any = None
        self._noted: Any = None
        self._since, self._peak = 0.0, 0

    def give(self, task: Any) -> bool:
        """Hand a task over; False where the process died while it was idle."""
        self.task, self.busy, self._since, self._peak = task, True, time.monotonic(), 0
        self._noted, self._setting_up = None, False
        try:
            self.pipe.send(task)
        except (BrokenPipeError, OSError):
            self.busy = False
        return self.busy

    def outcome(self, timeout: float, memory_bytes: int | None) -> TaskOutcome | None:
        """How its task ended; None while it has not."""
        if self.busy:
            resident = self._resident_bytes()
            self._peak = max(self._peak, resident)
            if memory_bytes is not None and resident > memory_bytes:
                return self._ended("memory", f"over {memory_bytes >> 20} MiB")
        if self.pipe.poll():
            try:
                return self._heard(*self.pipe.recv())
            except (EOFError, OSError):
                return self._died()
        if self.busy and not self._process.is_alive():
            return self._died()
        limit = SETUP_SECONDS if self._setting_up else timeout
        if self.busy and time.monotonic() - self._since > limit:
            return self._ended("timeout", f"over {limit:g} s")
        return None

    def end(self) -> None:
        """End it: an idle one by itself, so that it gives back what it holds; a busy one at once."""
        self.pipe.close()
        if self.ready and not self.busy:
            self._process.join(_EXIT_SECONDS)
        self._process.kill()
        self._process.join()

    def _heard(self, kind: Any, value: Any) -> TaskOutcome | None:
        if kind == "ok":
            return self._ended("ok", value=value)
        if kind == "error":
            return self._ended("error", value)
        if kind == "failed":
            raise WorkerStartError(value)
        if kind == "ready":
            self.ready = True
        elif kind == "note":
            self._noted = value
        else:
            self._setting_up, self._since = value, time.monotonic()
        return None

    def _ended(self, status: Status, detail: str = "", value: Any = None) -> TaskOutcome:
        seconds = time.monotonic() - self._since
        return TaskOutcome(status, value, detail, seconds, self._peak, self._noted)

    def _died(self) -> TaskOutcome | None:
        self._process.join(1.0)
        code = self._process.exitcode
        if not self.busy:
            if not self.ready:
                raise WorkerStartError(
                    f"the worker process ended with code {code} before it was ready; its error stands above"
                )
            time.sleep(_POLL_SECONDS)  # it is replaced when it is given a task
            return None
        name = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
        return self._ended("crash", name)

    def _resident_bytes(self) -> int:
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")


class WorkerStartError(RuntimeError):
    """The handler could not be built in the worker process."""


def run_tasks(
    tasks: Iterable[Any],
    factory: Callable[..., Callable[[Any], Any]],
    arguments: tuple[Any, ...] = (),
    *,
    workers: int = 2,
    timeout: float = 60.0,
    memory_bytes: int | None = None,
    fresh: bool = False,
) -> Iterator[tuple[Any, TaskOutcome]]:
    """Run `factory(*arguments)(task)` for each task and yield (task, outcome) as they end, in any order.

    Args:
        factory: importable function that builds the handler inside the worker.
        timeout: seconds a task may take before its worker is killed.
        memory_bytes: resident size at which a worker is killed; None is no limit.
        fresh: a new process for each task.

    Raises:
        WorkerStartError: the factory itself raised.
    """
    source = iter(tasks)
    waiting: deque[Any] = deque(islice(source, workers))  # read ahead; no more workers than there are tasks
    pool = [_Worker(factory, arguments) for _ in waiting]
    try:
        while True:
            for index, worker in enumerate(pool):
                if not worker.ready or worker.busy:
                    continue
                waiting.extend(islice(source, 0 if waiting else 1))
                if not waiting:
                    break
                if worker.give(waiting[0]):
                    waiting.popleft()
                else:  # the task is not to blame
                    worker.end()
                    pool[index] = _Worker(factory, arguments)
            if not any(worker.busy for worker in pool):
                waiting.extend(islice(source, 0 if waiting else 1))
                if not waiting:
                    return
            wait([worker.pipe for worker in pool], _POLL_SECONDS)
            for index, worker in enumerate(pool):
                outcome = worker.outcome(timeout, memory_bytes)
                if outcome is None:
                    continue
                if fresh or outcome.status not in ("ok", "error"):
                    worker.end()
                    pool[index] = _Worker(factory, arguments)
                worker.busy = False
                yield worker.task, outcome
    finally:
        for worker in pool:
            worker.end()
