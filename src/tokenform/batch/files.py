"""Tables in files: JSON Lines, CSV and Parquet, read row by row, and written whole or not at all.

Invariant: a file is read as it is asked for, line by line; what stands in a broken line is said, and the
lines behind it are read.  A written file appears under its name when it is complete.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tokenform.errors import DataError, OptionError, extras

KINDS = (".jsonl", ".csv", ".parquet")
_FIELD_CHARACTERS = 1 << 30
_GROUP_ROWS = 8192

Line = tuple[int, dict[str, Any] | str]
"""1-based number of a row (for JSON Lines and CSV of its line), and the row, or why it can't be read."""


def kind_of(path: Path) -> str:
    """The kind of a file, by its name.

    Raises:
        OptionError: no kind that is known.
    """
    kind = {".ndjson": ".jsonl", ".pq": ".parquet"}.get(path.suffix.lower(), path.suffix.lower())
    if kind not in KINDS:
        raise OptionError(f"{path} is no kind of table that is known; name it {', '.join(KINDS)}.")
    if kind == ".parquet":
        with extras():
            import pyarrow.parquet  # noqa: F401
    return kind


def read_table(path: Path) -> Iterator[Line]:
    """The rows of a file.

    Raises:
        DataError: it can't be read, or is not what its name says.
    """
    readers = {".jsonl": _read_jsonl, ".csv": _read_csv, ".parquet": _read_parquet}
    reader = readers[kind_of(path)]
    try:
        yield from reader(path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} can't be read: {error}.") from error


def _read_jsonl(path: Path) -> Iterator[Line]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if not text.strip():
                continue
            try:
                row = json.loads(text)
            except (ValueError, RecursionError) as error:  # of UTF-8, of JSON, or nested too deeply
                yield number, f"the line is not JSON: {error}"
                continue
            yield number, row if isinstance(row, dict) else f"the line is {type(row).__name__}, not an object"


def _read_csv(path: Path) -> Iterator[Line]:
    csv.field_size_limit(_FIELD_CHARACTERS)
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        for row in reader:
            if None in row or None in row.values():
                columns = len(reader.fieldnames or ())
                yield reader.line_num, f"the line has not {columns} fields, as the first line says"
            else:
                yield reader.line_num, dict(row)


def _read_parquet(path: Path) -> Iterator[Line]:
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        for group in pyarrow.parquet.ParquetFile(path).iter_batches(_GROUP_ROWS):
            for row in group.to_pylist():
                number += 1
                yield number, row
    except pyarrow.ArrowException as error:
        raise DataError(f"{path} can't be read: {error}.") from error


def write_table(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write a file under another name, then give it its own; returns the number of rows.

    Raises:
        DataError: it can't be written.
    """
    writers = {".jsonl": _write_jsonl, ".csv": _write_csv, ".parquet": _write_parquet}
    writer = writers[kind_of(path)]
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        count = writer(partial, rows)
        os.replace(partial, path)
    except OSError as error:
        raise DataError(f"{path} can't be written: {error.strerror or error}.") from error
    finally:
        partial.unlink(missing_ok=True)
    return count


def json_line(value: Any) -> bytes:
    """A value as a line of JSON, in readable letters where they are Unicode."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value, default=str).encode() + b"\n"


def _write_jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    count = 0
    with path.open("wb") as file:
        for row in rows:
            file.write(json_line(row))
            count += 1
        _settle(file)
    return count


def _write_csv(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    all_rows = list(rows)
    names = list(dict.fromkeys(name for row in all_rows for name in row))
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in all_rows)
        _settle(file)
    return len(all_rows)


def _write_parquet(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    import pyarrow
    import pyarrow.parquet

    all_rows = list(rows)
    names = list(dict.fromkeys(name for row in all_rows for name in row))
    try:
        table = pyarrow.table({name: [row.get(name) for row in all_rows] for name in names})
    except pyarrow.ArrowException as error:
        raise DataError(f"the rows are no table of Parquet: {error}; write .jsonl.") from error
    pyarrow.parquet.write_table(table, path)
    return len(all_rows)


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else value


def _settle(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
