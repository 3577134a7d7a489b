"""What a database has: its tables, their columns, and the keys along which they are joined.

Invariant: a `Catalog` names only what is there; every key stands between columns that it lists.
Complexity: two statements a table for SQLite, two in all for `information_schema`; keys that are guessed are
found by name, linear in the columns.
Rejected: reading CREATE TABLE with a grammar of our own (SQLite knows its language).
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tokenform.errors import InvalidGrammar, LimitExceeded, OptionError
from tokenform.frontends.catalog.dialects import Dialect
from tokenform.frontends.unicode import check_text

Fold = Callable[[str], str]

STEPS = 1_000_000
"""Of SQLite's machine, for the statements of a text."""
_PLAIN = {"id", "name"}
"""Columns that many tables have and that say nothing of a join."""
_SHARED = ("id", "code", "key")


@dataclass(frozen=True)
class ForeignKey:
    """Columns of one table that are those of another, as many."""

    table: str
    columns: tuple[str, ...]
    to: str
    to_columns: tuple[str, ...]


@dataclass(frozen=True)
class Catalog:
    """Tables in order, each with its columns and what is known of their types ("" where nothing is)."""

    tables: dict[str, dict[str, str]]
    keys: tuple[ForeignKey, ...]


def read_catalog(
    source: Any, dialect: Dialect, keys: Iterable[Any] | None, chosen: Iterable[str] | None = None
) -> Catalog:
    """The catalog of a mapping, a connection or CREATE statements; `keys` and `chosen` as `tf.sql` takes
    them.

    Raises:
        OptionError: it is none of these, has no table, a table without columns, or a name twice.
        InvalidGrammar: SQLite can't read the statements.
    """
    declared: list[tuple[str, list[str], str, list[str]]] = []
    if isinstance(source, str):
        tables = _of_statements(source, declared)
    elif isinstance(source, Mapping):
        tables = {table: _columns(table, columns) for table, columns in source.items()}
    elif isinstance(source, sqlite3.Connection):
        tables = read_tables(source, declared)
    elif callable(getattr(source, "cursor", None)):
        tables = _of_information_schema(source, dialect.title, declared)
    else:
        raise OptionError(
            "a catalog is a mapping of tables to columns, a DB-API connection or the text of CREATE TABLE "
            f"statements, not {type(source).__name__}."
        )
    if chosen is not None:
        names = [chosen] if isinstance(chosen, str) else list(chosen)
        absent = [name for name in names if name not in tables]
        if absent:
            raise OptionError(
                f"the catalog has no table {absent[0]!r}; it has {', '.join(map(repr, tables))}."
            )
        tables = {name: tables[name] for name in names}
    _check(tables, dialect.folded)
    if keys is not None:
        declared = _key_pairs(tables, keys)
    found = (
        _declared_keys(tables, declared, dialect.folded)
        if declared or keys is not None
        else _guess_keys(tables)
    )
    return Catalog(tables, tuple(dict.fromkeys(found)))


def _columns(table: Any, columns: Any) -> dict[str, str]:
    if isinstance(columns, Mapping):
        return {
            name: "" if kind is None else str(getattr(kind, "__name__", kind))
            for name, kind in columns.items()
        }
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise OptionError(f"the columns of {table!r} are a list or a mapping, not {type(columns).__name__}.")
    listed = list(columns)
    if len(set(listed)) < len(listed):
        raise OptionError(f"the table {table!r} has a column twice.")
    return dict.fromkeys(listed, "")


def _check(tables: Mapping[Any, Mapping[Any, str]], fold: Fold) -> None:
    if not tables:
        raise OptionError("the catalog has no table.")
    _check_names("the catalog", tables, fold)
    for table, columns in tables.items():
        if not columns:
            raise OptionError(f"the table {table!r} has no columns.")
        _check_names(f"the table {table!r}", columns, fold)


def _check_names(place: str, names: Iterable[Any], fold: Fold) -> None:
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name or "\0" in name:
            raise OptionError(f"{place} has the name {name!r}; a name is a text, not empty, without NUL.")
        check_text(name, OptionError)
        same = fold(name)
        if same in seen:
            raise OptionError(f"{place} has the name {name!r} twice.")
        seen.add(same)


def read_tables(
    connection: sqlite3.Connection, declared: list[Any] | None = None
) -> dict[str, dict[str, str]]:
    """The tables and views of a connection to SQLite, each with its columns and their types.

    Args:
        declared: gets the keys.
    Raises:
        OptionError: it is closed, of another thread, or its file is no database.
    """
    declared = [] if declared is None else declared
    try:
        return _of_sqlite(connection, declared)
    except sqlite3.Error as error:
        raise OptionError(f"the connection can't be read: {error}") from None


def _of_statements(text: str, declared: list[Any]) -> dict[str, dict[str, str]]:
    check_text(text, InvalidGrammar)
    connection = sqlite3.connect(":memory:")
    try:
        attach = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_DENY if action in attach else sqlite3.SQLITE_OK
        )
        connection.set_progress_handler(lambda: 1, STEPS)
        connection.executescript(text)
        connection.set_progress_handler(None, 0)
        return _of_sqlite(connection, declared)
    except sqlite3.Error as error:
        if "interrupted" in str(error):
            raise LimitExceeded(f"the CREATE TABLE statements take SQLite more than {STEPS} steps.") from None
        raise InvalidGrammar(f"SQLite can't read the CREATE TABLE statements: {error}.") from None
    finally:
        connection.close()


def _of_sqlite(connection: sqlite3.Connection, declared: list[Any]) -> dict[str, dict[str, str]]:
    """Tables and views that can be asked: without SQLite's own, and without views that name what is not
    there."""
    tables: dict[str, dict[str, str]] = {}
    cursor = connection.cursor()
    cursor.row_factory = None
    listed = cursor.execute(
        "SELECT name, type FROM (SELECT name, type FROM sqlite_temp_master UNION ALL "
        "SELECT name, type FROM sqlite_master) WHERE type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    ).fetchall()
    for name, kind in listed:
        quoted = '"' + name.replace('"', '""') + '"'
        try:
            rows = cursor.execute(f"PRAGMA table_xinfo({quoted})").fetchall()
        except sqlite3.Error:
            if kind == "view":
                continue
            raise
        tables.setdefault(name, {row[1]: row[2] for row in rows if row[6] != 1})
        grouped: dict[int, list[Any]] = defaultdict(list)
        for row in cursor.execute(f"PRAGMA foreign_key_list({quoted})").fetchall():
            grouped[row[0]].append(row)
        for rows in grouped.values():
            rows.sort(key=lambda row: row[1])
            to = [row[4] for row in rows]
            if None in to:  # the other's primary key
                other = '"' + rows[0][2].replace('"', '""') + '"'
                own = [row for row in cursor.execute(f"PRAGMA table_info({other})") if row[5]]
                to = [row[1] for row in sorted(own, key=lambda row: row[5])]
            declared.append((name, [row[3] for row in rows], rows[0][2], to))
    return tables


def _of_information_schema(connection: Any, dialect: str, declared: list[Any]) -> dict[str, dict[str, str]]:
    if dialect == "SQLite":
        raise OptionError(f"a connection of {type(connection).__module__} is none of SQLite; say dialect=.")
    tables: dict[str, dict[str, str]] = defaultdict(dict)
    cursor = connection.cursor()
    cursor.execute(
        "SELECT table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position"
    )
    for table, column, kind in cursor.fetchall():
        tables[table][column] = str(kind or "")
    cursor.execute(
        "SELECT k.constraint_name, k.table_name, k.column_name, u.table_name, u.column_name "
        "FROM information_schema.key_column_usage k JOIN information_schema.referential_constraints r "
        "ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name "
        "JOIN information_schema.key_column_usage u ON u.constraint_schema = r.unique_constraint_schema "
        "AND u.constraint_name = r.unique_constraint_name "
        "AND u.ordinal_position = k.position_in_unique_constraint "
        "WHERE k.table_schema = current_schema() ORDER BY k.table_name, k.constraint_name, k.ordinal_position"
    )
    grouped: dict[Any, list[Any]] = defaultdict(list)
    for constraint, table, column, other, to_column in cursor.fetchall():
        grouped[constraint, table, other].append((column, to_column))
    for (_, table, other), pairs in grouped.items():
        declared.append((table, [one for one, _ in pairs], other, [two for _, two in pairs]))
    return dict(tables)


def _key_pairs(tables: Mapping[str, Mapping[str, str]], keys: Iterable[Any]) -> list[Any]:
    """Keys as pairs of "table.column"."""
    known = {f"{table}.{column}": (table, column) for table, columns in tables.items() for column in columns}
    found = []
    for pair in [keys] if isinstance(keys, str) else keys:
        if isinstance(pair, str) or len(pair) != 2 or not all(end in known for end in pair):
            raise OptionError(f'keys has {pair!r}; a key is a pair of "table.column" that the catalog has.')
        (table, column), (to, to_column) = (known[end] for end in pair)
        found.append((table, [column], to, [to_column]))
    return found


def _declared_keys(
    tables: Mapping[str, Mapping[str, str]], declared: Iterable[Any], fold: Fold
) -> list[ForeignKey]:
    """The declared keys whose ends are there, by the names that the catalog has."""

    by_name = {fold(table): (table, {fold(one): one for one in columns}) for table, columns in tables.items()}
    keys = []
    for table, columns, to, to_columns in declared:
        ends = []
        for name, listed in ((table, columns), (to, to_columns)):
            own, known = by_name.get(fold(name), ("", {}))
            ends.append((own, tuple(known[fold(one)] for one in listed if fold(one) in known)))
        (one, left), (two, right) = ends
        if left and len(left) == len(right) == len(columns) and (one, left) != (two, right):
            keys.append(ForeignKey(one, left, two, right))
    return keys


def _guess_keys(tables: Mapping[str, Mapping[str, str]]) -> list[ForeignKey]:
    """Where no key is declared: columns of one name that two tables have, or more where it ends in id, code
    or key, but `id` and `name`; and `x_id` with `id` of `x` or `xs`."""
    having: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for table, columns in tables.items():
        for column in columns:
            if column.lower() not in _PLAIN:
                having[column.lower()].append((table, column))
    keys = [
        ForeignKey(table, (column,), to, (to_column,))
        for name, places in having.items()
        if len(places) == 2 or name.endswith(_SHARED)
        for at, (table, column) in enumerate(places)
        for to, to_column in places[at + 1 :]
    ]
    by_name = {table.lower(): table for table in tables}
    for column, places in having.items():
        stem = column.removesuffix("_id")
        to = by_name.get(stem) or by_name.get(f"{stem}s") if stem != column else None
        own = next((one for one in tables[to] if one.lower() == "id"), None) if to else None
        if to and own:
            keys += [
                ForeignKey(table, (name,), to, (own,)) for table, name in places if (table, name) != (to, own)
            ]
    return keys
