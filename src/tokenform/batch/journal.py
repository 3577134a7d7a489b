"""What a long job has done so far: an append-only file, so that any death loses the last record at most.

Purpose: a job that is killed goes on from here; what is in the journal is never done again.
Invariant: a record is on the disk before it is counted; a torn last line is cut off when the journal is
opened again; one process writes at a time; a journal belongs to one job (`check_job`).
Complexity: one write and one fsync a record, of a whole batch of rows; 100 bytes of memory a row.
Rejected: SQLite, which evaluations keep their results in (their report joins tables;
here each row is read once, in order); the output file itself (rows end out of order, and CSV and Parquet
can't be appended to safely).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from tokenform.batch.files import json_line
from tokenform.errors import DataError, OptionError

_FORMAT = "tokenform journal 1"
_BEGIN = json_line({"format": _FORMAT}).rstrip(b"}\n")


class Journal:
    """The journal in a file; a context manager.

    Raises:
        DataError: the file is no journal, can't be written, or another process writes it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._places = dict[str, tuple[int, int, str, bool]]()  # offset, number in it, digest, failed
        try:
            self._file: BinaryIO = path.open("a+b")
        except OSError as error:
            raise DataError(f"{path} can't be written: {error.strerror or error}.") from error
        try:
            self._lock()
            self._head = self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def check_job(self, job: dict[str, Any]) -> None:
        """Remember what the job is; refuse another one.

        Raises:
            OptionError: the journal is of a job with other options.
        """
        job = json.loads(json.dumps(job))
        if self._head != job and not self._places:  # nothing was done under another one
            self._file.truncate(0)
            self._append({"format": _FORMAT, "job": job})
            self._head = job
        recorded = self._head or {}
        differing = sorted(name for name in {*job, *recorded} if job.get(name) != recorded.get(name))
        if differing:
            raise OptionError(
                f"{self.path} is of a job with another {' and '.join(differing)}; repeat what was given "
                "then, name another output, or delete the journal to begin anew."
            )

    def done(self, key: str, digest: str, failures: bool = True) -> bool:
        """Whether the row with this key and digest has a record; failed ones count if `failures`."""
        found = self._places.get(key)
        return found is not None and found[2] == digest and (failures or not found[3])

    def add(self, records: Iterable[tuple[str, str, dict[str, Any]]]) -> None:
        """Append the records (key, digest, what was written) of one batch: all or none."""
        batch_records = list(records)
        self._index(self._append({"rows": batch_records}), batch_records)

    def read(self, key: str) -> dict[str, Any] | None:
        """What was written for a row; None where nothing was."""
        found = self._places.get(key)
        if found is None:
            return None
        self._file.seek(found[0])
        written: dict[str, Any] = json.loads(self._file.readline())["rows"][found[1]][2]
        return written

    def _append(self, record: dict[str, Any]) -> int:
        try:
            offset = self._file.seek(0, os.SEEK_END)
            self._file.write(json_line(record))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise DataError(f"{self.path} can't be written: {error.strerror or error}.") from error
        return offset

    def _index(self, offset: int, records: Iterable[tuple[str, str, dict[str, Any]]]) -> None:
        for number, (key, digest, written) in enumerate(records):
            self._places[key] = offset, number, digest, "error" in written

    def _read(self) -> dict[str, Any] | None:
        """Read what is there, and cut a torn end off; returns the job."""
        self._file.seek(0)
        if not _BEGIN.startswith(self._file.read(len(_BEGIN))):
            raise DataError(f"{self.path} is not the journal of a job; name another output.")
        self._file.seek(0)
        head, whole = None, 0
        while (line := self._file.readline()).endswith(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                break
            if head is None:
                head = record["job"]
            else:
                self._index(whole, record["rows"])
            whole += len(line)
        self._file.truncate(whole)
        return head

    def _lock(self) -> None:
        with suppress(ImportError):  # where there are no such locks, two writers are the caller's care
            import fcntl

            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise DataError(f"another process works on {self.path}; wait for it, or end it.") from None
