"""The database of an evaluation: every result is in it as soon as it is known, and none is in it twice.

Purpose: a run that is killed at any moment goes on from here; the report is computed from here alone.
Invariant: a unit (engine, kind, case) has at most one result and one verdict; a result is committed before
the next is asked for; the options of the run are fixed by the first start.
Complexity: one small transaction a result.
Source: SQLite's write-ahead log, which survives the death of the process at any instruction.
Rejected: a file of JSON lines (a torn last line, and resuming reads all of it); DuckDB (built for reading,
one more dependency).
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tokenform.errors import DataError, OptionError

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (started REAL PRIMARY KEY, last REAL NOT NULL, environment TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cases (
    kind TEXT, case_id TEXT, subset TEXT, schema TEXT, keywords TEXT, task TEXT, documents TEXT, place
    INTEGER, PRIMARY KEY (kind, case_id));
CREATE TABLE IF NOT EXISTS results (
    engine TEXT, kind TEXT, case_id TEXT, status TEXT NOT NULL, detail TEXT, compile_s REAL, first_token_s
    REAL, model_s REAL, mask_s REAL, total_s REAL, prompt_tokens INTEGER, tokens INTEGER, forwards INTEGER,
    finished INTEGER, text TEXT, mask_us TEXT, peak_mib REAL, worker TEXT, nats REAL,
    mass REAL, draws INTEGER, cpu_s REAL,
    PRIMARY KEY (engine, kind, case_id));
CREATE TABLE IF NOT EXISTS verdicts (
    engine TEXT, kind TEXT, case_id TEXT, parses INTEGER, valid INTEGER, disputed INTEGER, judges TEXT,
    correct INTEGER, fields_right INTEGER, fields INTEGER, PRIMARY KEY (engine, kind, case_id));
"""

_ADDED = {  # since the first databases; those are read as well
    "results": ("nats REAL", "mass REAL", "draws INTEGER", "cpu_s REAL"),
    "verdicts": ("fields_right INTEGER", "fields INTEGER"),
}


@dataclass(frozen=True)
class StoredCase:
    """One schema of the run.

    Attributes:
        kind: "coverage", "quality", "board" or "masks".
        keywords: the schema's keywords, sorted.
        task: for quality and board: {"prompt", "text", "answer", "family", "max_tokens"}.
        documents: for masks: [[data, valid], ...].
    """

    kind: str
    case_id: str
    subset: str
    schema: Any
    keywords: list[str]
    task: dict[str, Any] | None = None
    documents: list[list[Any]] | None = None


@dataclass(frozen=True)
class Unit:
    """One engine on one case."""

    engine: str
    case: StoredCase

    @property
    def key(self) -> tuple[str, str, str]:
        return self.engine, self.case.kind, self.case.case_id


@dataclass
class UnitResult:
    """What a worker found out about a unit.

    Attributes:
        status: "ok", "refused", or how its worker ended ("error", "timeout", "memory", "crash").
        compile_s: seconds until the constraint was compiled.
        first_token_s: seconds from the beginning (compile, prompt, first mask) to the first token; to the
        first mask for "masks".
        model_s, mask_s: seconds in the model, and in masks and advancing, in total.
        finished: whether the text was ended by the model or the grammar, not cut by the limit.
        mask_us: microseconds of mask + advance for each token.
        nats: minus the text's log-probability under the model without a constraint, EOS included.
        mass: log of the probability that the masks allowed, summed over the steps.
        draws: the steps of these two sums.
        cpu_s: the processor's seconds, compiling included.
    """

    status: str
    detail: str = ""
    compile_s: float | None = None
    first_token_s: float | None = None
    model_s: float | None = None
    mask_s: float | None = None
    total_s: float | None = None
    prompt_tokens: int | None = None
    tokens: int | None = None
    forwards: int | None = None
    finished: bool | None = None
    text: str | None = None
    mask_us: list[float] | None = None
    peak_mib: float | None = None
    worker: str = ""
    nats: float | None = None
    mass: float | None = None
    draws: int | None = None
    cpu_s: float | None = None

    @classmethod
    def failed(cls, error: Exception) -> UnitResult:
        """What is kept of an engine's own error."""
        return cls("error", f"{type(error).__name__}: {error}"[:500])


@dataclass(frozen=True)
class Verdict:
    """What the judges say: `correct` and the fields are the marks of a task, None elsewhere."""

    parses: bool
    valid: bool
    disputed: bool
    judges: dict[str, str | None]
    correct: bool | None = None
    fields_right: int | None = None
    fields: int | None = None


_RESULT = [f.name for f in fields(UnitResult)]


class Store:
    """An evaluation's database; a context manager.

    Raises:
        DataError: the file is not such a database.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = sqlite3.connect(self.path, isolation_level=None, timeout=30.0)
            self._db.row_factory = sqlite3.Row
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_TABLES)
            for table, columns in _ADDED.items():
                held = {row["name"] for row in self._db.execute(f"PRAGMA table_info({table})")}
                for column in columns:
                    if column.split()[0] not in held:
                        self._db.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
        except sqlite3.DatabaseError as error:
            raise DataError(f"{self.path} is not a database of an evaluation: {error}") from error

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def fix_options(self, options: dict[str, Any]) -> None:
        """Remember the options; refuse others as soon as there is a result.

        Raises:
            OptionError: the database holds a run with other options.
        """
        self._db.execute(
            "INSERT OR IGNORE INTO meta VALUES ('options', ?)", (json.dumps(options, sort_keys=True),)
        )
        held = self.options()
        if held != json.loads(json.dumps(options)) and not self.done():  # nothing was done under them
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM cases")
            self._db.execute("DELETE FROM meta")
            self._db.execute("INSERT INTO meta VALUES ('options', ?)", (json.dumps(options, sort_keys=True),))
            self._db.execute("COMMIT")
            return
        if held != json.loads(json.dumps(options)):
            differing = sorted(k for k in {*held, *options} if held.get(k) != options.get(k))
            raise OptionError(
                f"{self.path} has a run with other options ({', '.join(differing)}); repeat them, or "
                "use another --out"
            )

    def options(self) -> dict[str, Any]:
        row = self._db.execute("SELECT value FROM meta WHERE key = 'options'").fetchone()
        return json.loads(row["value"]) if row else {}

    def begin_session(self, environment: dict[str, Any]) -> float:
        """Note that the run was started (again); returns the session's key."""
        started = time.time()
        self._db.execute("INSERT INTO sessions VALUES (?, ?, ?)", (started, started, json.dumps(environment)))
        return started

    def sessions(self) -> list[dict[str, Any]]:
        rows = self._db.execute("SELECT * FROM sessions ORDER BY started")
        return [{**dict(row), "environment": json.loads(row["environment"])} for row in rows]

    def add_cases(self, cases: Iterable[StoredCase]) -> None:
        """Add the run's cases, all or none.

        Raises:
            DataError: two cases have the same id.
        """
        rows = [
            (
                c.kind,
                c.case_id,
                c.subset,
                json.dumps(c.schema),
                json.dumps(c.keywords),
                json.dumps(c.task),
                json.dumps(c.documents),
                place,
            )
            for place, c in enumerate(cases)
        ]
        keys = Counter(row[:2] for row in rows)
        if len(keys) < len(rows):
            (kind, name), count = keys.most_common(1)[0]
            raise DataError(f"the data has {count} {kind} cases named {name!r}: give each an id of its own")
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT OR IGNORE INTO cases VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self._db.execute("INSERT OR REPLACE INTO meta VALUES ('planned', 'true')")
        self._db.execute("COMMIT")

    def planned(self) -> bool:
        """Whether all cases of the run are in the database."""
        return self._db.execute("SELECT 1 FROM meta WHERE key = 'planned'").fetchone() is not None

    def cases(self) -> Iterator[StoredCase]:
        for row in self._db.execute("SELECT * FROM cases ORDER BY place"):
            loaded = {name: json.loads(row[name]) for name in ("schema", "keywords", "task", "documents")}
            yield StoredCase(row["kind"], row["case_id"], row["subset"], **loaded)

    def case_count(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM cases").fetchone()[0])

    def done(self) -> set[tuple[str, str, str]]:
        """Keys of the units that have a result."""
        return {tuple(row) for row in self._db.execute("SELECT engine, kind, case_id FROM results")}

    def statuses(self) -> list[tuple[str, str, str, str]]:
        """(engine, kind, case, status) of every result."""
        return [tuple(row) for row in self._db.execute("SELECT engine, kind, case_id, status FROM results")]

    def add_result(self, unit: Unit, result: UnitResult, session: float) -> bool:
        """Write a result; False where the unit had one."""
        values = asdict(result)
        values["mask_us"] = None if result.mask_us is None else json.dumps(result.mask_us)
        marks = ", ".join("?" * (3 + len(_RESULT)))
        self._db.execute("BEGIN IMMEDIATE")
        columns = (
            f"INSERT OR IGNORE INTO results (engine, kind, case_id, {', '.join(_RESULT)}) VALUES ({marks})"
        )
        added = self._db.execute(columns, (*unit.key, *(values[name] for name in _RESULT))).rowcount
        self._db.execute("UPDATE sessions SET last = ? WHERE started = ?", (time.time(), session))
        self._db.execute("COMMIT")
        return bool(added)

    def forget(self, statuses: Iterable[str]) -> int:
        """Take back the results that ended so; how many there were."""
        marks = list(statuses)
        query = f"DELETE FROM results WHERE status IN ({', '.join('?' * len(marks))})"
        return self._db.execute(query, marks).rowcount

    def unjudged(self) -> list[tuple[tuple[str, str, str], str]]:
        """(key, text) of results with a text and no verdict."""
        query = (
            "SELECT engine, kind, case_id, text FROM results LEFT JOIN verdicts USING (engine, kind, case_id)"
        )
        rows = self._db.execute(
            query + " WHERE text IS NOT NULL AND valid IS NULL ORDER BY kind, case_id, engine"
        )
        return [((row[0], row[1], row[2]), row[3]) for row in rows]

    def add_verdict(self, key: tuple[str, str, str], verdict: Verdict) -> None:
        row = (
            *key,
            verdict.parses,
            verdict.valid,
            verdict.disputed,
            json.dumps(verdict.judges),
            verdict.correct,
            verdict.fields_right,
            verdict.fields,
        )
        self._db.execute(f"INSERT OR IGNORE INTO verdicts VALUES ({', '.join('?' * len(row))})", row)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every result with its case and verdict; the JSON columns parsed."""
        query = (
            "SELECT results.*, cases.subset, cases.keywords, cases.task, verdicts.parses, verdicts.valid, "
            "verdicts.disputed, verdicts.judges, verdicts.correct, verdicts.fields_right, verdicts.fields "
            "FROM results "
            "JOIN cases USING (kind, case_id) LEFT JOIN verdicts USING (engine, kind, case_id) "
            "ORDER BY cases.place, engine"
        )
        for row in self._db.execute(query):
            record = dict(row)
            for name in ("keywords", "task", "mask_us", "judges"):
                record[name] = None if record[name] is None else json.loads(record[name])
            yield record
