"""`tf.sql`: SELECT queries whose tables and columns are those of a database.

Purpose: a model that writes SQL invents columns.
Invariant: every text is a query that the dialect can resolve; SQLite prepares it.
Complexity: that of reading the catalog and of writing the rules (`rules.py`).
Rejected: every table's columns at every place (the names exist, but not where they stand).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tokenform.errors import OptionError
from tokenform.frontends.catalog.dialects import DIALECTS, Dialect
from tokenform.frontends.catalog.rules import QueryRules
from tokenform.frontends.catalog.scopes import scopes_of
from tokenform.frontends.catalog.tables import Catalog, read_catalog
from tokenform.frontends.grammar import Grammar, Wording
from tokenform.frontends.lark import from_structure

ALIASES = ("count", "total", "average")
JOINS = range(5)


def sql(
    catalog: Any,
    *,
    dialect: str = "sqlite",
    tables: Iterable[str] | None = None,
    joins: int = 2,
    keys: Iterable[tuple[str, str]] | None = None,
    aliases: Sequence[str] = ALIASES,
) -> Grammar:
    """SELECT queries over the tables of a database: every table, column and alias exists and resolves.

    A query is `SELECT [DISTINCT] results FROM tables [WHERE] [GROUP BY [HAVING]] [ORDER BY] [LIMIT
    [OFFSET]]`, or two of one result each around UNION [ALL], INTERSECT or EXCEPT, with `ORDER BY 1` and
    LIMIT at the end; `;` may follow.

    - tables: one, or up to `joins` + 1 that keys join, in any order in which each has a key to one before it,
      by [INNER | LEFT [OUTER]] JOIN with ON (the columns of the key, either side first) or USING.  They go by
      their names, or all by aliases: the initials of their words (`order_items AS oi`), numbered where two
      are alike.  A table that has a key to itself is joined with itself, by aliases.
    - columns: by name where one table of the query has it, and by `table.column`; names as the catalog spells
      them, bare where the dialect reads them so, else in its quotes.
    - results: `*`, `table.*`, and values, each with `AS name` if wanted; a name of `aliases` may be what
      ORDER BY orders by.  A subquery in parentheses may be a result or the last operand of one.
    - values: columns, numbers, strings of up to 100 characters without control characters, + - * / % ||,
      functions of the dialect with their numbers of arguments, parentheses, CASE WHEN, CAST.  Functions,
      parentheses and CAST stand in one another, two deep, where aggregates stand: in results, in HAVING, and
      behind GROUP BY in ORDER BY; elsewhere and in aggregates only a function in a CAST does.  CASE holds
      columns, literals and what is calculated from them.
    - conditions: comparisons, IS [NOT] NULL, [NOT] BETWEEN, LIKE with a string, IN with literals, joined by
      AND and OR; in WHERE also comparisons and IN with a subquery, and one level of parentheses, with NOT.
    - subqueries: as above, with one result, without aliases of results, parentheses around conditions, other
      subqueries, or columns of the query around them.
    - values begin with no literal, but for a number that is a factor of a result (`100.0 * x`), a literal in
      parentheses before what is none (`(1 - x)`), and what stands right of an operator or in a list.
    - keywords and functions are in capitals or lower case; one blank between words, and a line break with up
      to 8 blanks before clauses and AND, OR, behind SELECT and commas.

    What SQL has beside that (derived tables, WITH, windows, correlated subqueries) is not in the language.
    SQLite prepares each query that is not longer than its limits.  In PostgreSQL the names are right; types
    are not checked, nor that columns beside aggregates are grouped by.

    Args:
        catalog: `{table: [column, ...]}` or `{table: {column: type}}`; a `sqlite3.Connection` (tables and
            views, without hidden columns); another DB-API connection, whose current schema is read by
            `information_schema`; or CREATE TABLE statements that SQLite can read.  It is read once, now.
        dialect: "sqlite" or "postgresql".
        tables: those of the catalog that queries may read; None: all.
        joins: of one FROM clause, 0 to 4.
        keys: pairs of "table.column" that are joined, in place of the declared ones.  Where none is declared:
            columns of one name that two tables have, or more where it ends in id, code or key (but `id` and
            `name`), and `x_id` with `id` of a table `x` or `xs`.
        aliases: names of results that ORDER BY can use.
    Raises:
        OptionError: the catalog has no table, a name twice, or is none of these; an option is not known.
        InvalidGrammar: SQLite can't read the statements.
        LimitExceeded: more than 350 sets of tables could be read together; the message says what to do.

    >>> import tokenform as tf
    >>> grammar = tf.sql({"city": ["id", "name"], "visit": ["city_id", "year"]})
    >>> bytes_only = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256])
    >>> reads = grammar.compile(bytes_only).matches
    >>> reads(b"SELECT name FROM city JOIN visit ON city.id = visit.city_id WHERE year > 1999")
    True
    >>> reads(b"SELECT year FROM city")
    False
    """
    if dialect not in DIALECTS:
        raise OptionError(
            f"dialect={dialect!r} is not known; choose one of {', '.join(map(repr, DIALECTS))}."
        )
    if joins not in JOINS or isinstance(joins, bool):
        raise OptionError(f"joins={joins!r} is not known; choose a number from 0 to {JOINS[-1]}.")
    form = DIALECTS[dialect]
    if isinstance(aliases, str) or not all(
        isinstance(name, str) and name.isascii() and name.isidentifier() and name.lower() not in form.reserved
        for name in aliases
    ):
        raise OptionError(
            f"aliases are names of ASCII letters, digits and _ that {form.title} doesn't reserve."
        )
    read = read_catalog(catalog, form, keys, tables)
    writer = QueryRules(form, read, tuple(dict.fromkeys(aliases)))
    structure = writer.written(scopes_of(read, joins, form.reserved))
    full, short = _shown(read, form)
    made = from_structure(structure, full, {})
    made.told = Wording(full, short, "```sql\n")
    return made


def _shown(catalog: Catalog, dialect: Dialect) -> tuple[str, str]:
    """What a model is told: with columns and keys, and with tables alone."""

    def name(table: str) -> str:
        return dialect.spelled(table)[0]

    tables = [f"{name(table)}({', '.join(map(name, columns))})" for table, columns in catalog.tables.items()]
    joined = [
        f"{name(key.table)}.{name(one)} = {name(key.to)}.{name(two)}"
        for key in catalog.keys
        for one, two in zip(key.columns, key.to_columns, strict=True)
    ]
    request = f"Answer with one {dialect.title} query over the tables"
    along = f", joined by {', '.join(joined)}" if joined else ""
    return f"{request} {', '.join(tables)}{along}.", f"{request} {', '.join(map(name, catalog.tables))}."
