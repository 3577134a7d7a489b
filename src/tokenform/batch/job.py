"""A whole file through `Generate`: begun, killed, gone on with, finished.

Purpose: `run` brings the output to the state in which each row of the input has its text there, or its
reason in the file of errors.
Invariant: a row with a record in the journal is not written again while it asks for the same; batches are
made of the input's order alone, so that neither workers nor kills change what is written together.  A batch
whose worker died is tried once more, then row by row; a row that ends its worker twice is put aside.
Rejected: batches of whatever is ready (a model rounds otherwise in another batch, so a run that was killed
would differ from one that was not).
Complexity: the input is read twice, once to write the rows and once to lay the output out in its order.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tokenform.batch.cluster import run_on_ray
from tokenform.batch.files import kind_of, read_table, write_table
from tokenform.batch.generate import COLUMNS, Generate
from tokenform.batch.journal import Journal
from tokenform.batch.progress import Meter
from tokenform.batch.workers import TaskOutcome, WorkerStartError, run_tasks
from tokenform.errors import DataError, ModelError, OptionError

_TRIES = 2


@dataclass(frozen=True)
class Limits:
    """How the work is done; may differ from start to start.

    Attributes:
        workers: processes, each with a model (with Ray: actors).
        timeout: seconds for one batch.
        memory_mib: resident size at which a worker is ended; None is no limit.
        ray: address of a Ray cluster, "auto" for the running one or a local one; None for processes of this
            machine.
    """

    workers: int = 1
    timeout: float = 600.0
    memory_mib: int | None = None
    ray: str | None = None

    def __post_init__(self) -> None:
        for name in ("workers", "timeout"):
            if not getattr(self, name) > 0:
                raise OptionError(f"{name} must be greater than 0, not {getattr(self, name)}")


@dataclass(frozen=True)
class Summary:
    """What a job came to.

    Attributes:
        rows: of the input.
        written, refused: rows with a text, and rows that were put aside.
        before: rows that earlier starts did.
        errors: the file of rows that were put aside; None without any.
    """

    rows: int
    written: int
    refused: int
    before: int
    errors: Path | None


class InputRow(NamedTuple):
    """A row of the input.

    Attributes:
        key: its id, or the number of its line.
        digest: of what it asks for.
        row: its columns.
        fault: why it can't be read; empty where it can.
    """

    key: str
    digest: str
    row: dict[str, Any]
    fault: str = ""


@dataclass(frozen=True)
class Task:
    """Rows that are written together, and how many workers ended under them."""

    rows: list[InputRow]
    tried: int = 0


class TaskQueue:
    """Tasks in order, and those that come back; an iterator that may go on after it has ended."""

    def __init__(self, tasks: Iterator[Task]) -> None:
        self._tasks = tasks
        self._again: deque[Task] = deque()

    def __iter__(self) -> TaskQueue:
        return self

    def __next__(self) -> Task:
        return self._again.popleft() if self._again else next(self._tasks)

    def collect(self, task: Task, outcome: TaskOutcome) -> list[dict[str, Any]] | None:
        """What the rows came to; None where they are tried again.

        Raises:
            ModelError: the rows are not to blame: nothing can be written here.
        """
        if outcome.status == "ok":
            written: list[dict[str, Any]] = outcome.value
            return written
        if outcome.status == "error" and outcome.detail.startswith("ModelError: "):
            raise ModelError(outcome.detail.removeprefix("ModelError: "))
        if outcome.status == "crash" and task.tried + 1 < _TRIES:
            self._again.append(Task(task.rows, task.tried + 1))
        elif len(task.rows) > 1:
            self._again.extend(Task([row]) for row in task.rows)
        else:
            return [{"error": outcome.status, "reason": outcome.detail}]
        return None


def run(
    generate: Generate,
    source: str | Path,
    output: str | Path,
    limits: Limits | None = None,
    *,
    retry: bool = False,
    quiet: bool = False,
) -> Summary:
    """Write a text for each row of a file, or go on with that.

    Args:
        generate: what writes.
        source: the rows: .jsonl, .csv or .parquet.  A row without an id has the number of its line.
        output: the rows with their texts, in the same order; a file of any of these kinds.  Beside it stand
            `<output>.journal`, by which the same call goes on after it was killed, and
            `<stem>.errors.jsonl` with the rows that were put aside and why.
        retry: try those again that were put aside before.
        quiet: show nothing.
    Raises:
        DataError: a file can't be read or written, or no worker can be started.
        ModelError: the model or the endpoint fails; what was written before stays in the journal.
        OptionError: the journal is of a job with other options; or a script calls it outside of
            `if __name__ == "__main__":`, so that its workers would, too.
    """
    _check_main()
    limits = limits or Limits()
    source, output = Path(source), Path(output)
    kind_of(source), kind_of(output)
    if source.resolve() == output.resolve():
        raise OptionError("the output is the input; name another file.")
    with Journal(output.with_name(f"{output.name}.journal")) as journal:
        journal.check_job(generate.fingerprint())
        rows = before = 0
        for row in _readable(source, generate):
            rows, before = rows + 1, before + journal.done(row.key, row.digest, not retry)
        with Meter("rows", rows, before, quiet) as meter:
            for task, written in _outcomes_of(_remaining(source, generate, journal, retry), generate, limits):
                journal.add(zip((row.key for row in task.rows), (row.digest for row in task.rows), written))
                for record in written:
                    meter.step(record.get("error", "written"))
        return _lay_out(source, journal, generate, output, before)


def _check_main() -> None:
    """Refuses a call by a script that a worker process imports while it starts."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # the mark of such an import
        raise OptionError(
            "each worker imports the script that started it, and so ran batch.run again: put the script's "
            'own calls under `if __name__ == "__main__":`.'
        )


def _read(source: Path, generate: Generate) -> Iterator[InputRow]:
    seen: set[str] = set()
    for number, row in read_table(source):
        line, key_column = f"line {number}", generate.key
        if isinstance(row, str):
            yield InputRow(line, "", {}, f"{line}: {row}")
            continue
        generate.check(row)
        own = row.get(key_column)
        key = str(number) if own is None or own == "" else str(own)
        if key in seen:
            yield InputRow(line, "", {}, f"{line}: the id {key!r} was there before")
            continue
        seen.add(key)
        yield InputRow(key, generate.row_digest(row), {**row, key_column: key if own is None else own})


def _readable(source: Path, generate: Generate) -> Iterator[InputRow]:
    return (row for row in _read(source, generate) if not row.fault)


def _remaining(source: Path, generate: Generate, journal: Journal, retry: bool) -> Iterator[Task]:
    """The batches that are left; what is left of a batch that was done in part, row by row."""
    rows = _readable(source, generate)
    while batch := list(islice(rows, generate.batch_size)):
        left = [row for row in batch if not journal.done(row.key, row.digest, not retry)]
        yield from [Task(left)] if len(left) == len(batch) else [Task([row]) for row in left]


def _outcomes_of(
    tasks: Iterator[Task], generate: Generate, limits: Limits
) -> Iterator[tuple[Task, list[dict[str, Any]]]]:
    """Each task with what its rows came to."""
    if hasattr(generate.model, "open_writer") and limits.ray is None:
        yield from _ask_endpoint(tasks, generate)
        return
    queue = TaskQueue(tasks)
    try:
        for task, outcome in _outcomes(queue, generate, limits):
            written = queue.collect(task, outcome)
            if written is not None:
                yield task, written
    except WorkerStartError as error:
        raise DataError(f"no worker could be started: {error}") from error


def _outcomes(queue: TaskQueue, generate: Generate, limits: Limits) -> Iterator[tuple[Task, TaskOutcome]]:
    memory = None if limits.memory_mib is None else limits.memory_mib << 20
    bounds: Any = {"workers": limits.workers, "timeout": limits.timeout, "memory_bytes": memory}
    if limits.ray is not None:
        return run_on_ray(queue, open_worker, (generate,), limits.ray, **bounds)
    return run_tasks(queue, open_worker, (generate,), **bounds)


def _ask_endpoint(tasks: Iterator[Task], generate: Generate) -> Iterator[tuple[Task, list[dict[str, Any]]]]:
    """The same by a server: threads of this process that wait, each for one row."""
    single = (Task([row]) for task in tasks for row in task.rows)
    most_at_once = generate.model.concurrency
    with ThreadPoolExecutor(most_at_once) as pool:
        flying: dict[Future[list[dict[str, Any]]], Task] = {}
        try:
            while True:
                for task in islice(single, most_at_once - len(flying)):
                    flying[pool.submit(generate.rows, [task.rows[0].row])] = task
                if not flying:
                    return
                for done in wait(flying, return_when=FIRST_COMPLETED).done:
                    yield flying.pop(done), done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def open_worker(generate: Generate) -> Callable[[Task], list[dict[str, Any]]]:
    """Build, in a worker process, the function that writes a task's rows."""
    generate.open()
    torch = sys.modules.get("torch")  # a function may make a model without it
    if torch is not None:
        torch.set_num_threads(generate.threads)

    def write(task: Task) -> list[dict[str, Any]]:
        return generate.rows([row.row for row in task.rows])

    return write


def _lay_out(source: Path, journal: Journal, generate: Generate, output: Path, before: int) -> Summary:
    """Write the output and the file of errors from the journal, in the input's order."""
    aside: list[dict[str, Any]] = []
    written = [column for column in COLUMNS if column.member != "error"]

    def rows() -> Iterator[dict[str, Any]]:
        for key, _, row, fault in _read(source, generate):
            if fault:
                aside.append({"id": None, "error": "DataError", "reason": fault})
                continue
            record = journal.read(key) or {
                "error": "missing",
                "reason": "the input changed while it was read",
            }
            if "error" in record:
                aside.append({"id": key, **record, "row": row})
                continue
            yield {
                **row,
                **{f"{generate.output}{column.suffix}": record.get(column.member) for column in written},
            }

    count = write_table(output, rows())
    errors = output.with_name(f"{output.stem}.errors.jsonl")
    if aside:
        write_table(errors, aside)
    else:
        errors.unlink(missing_ok=True)
    return Summary(count + len(aside), count, len(aside), before, errors if aside else None)
