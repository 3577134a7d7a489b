"""How the dialects of SQL spell names, and which functions they have.

Invariant: a name is spelled bare only where it is read as that name; each function takes the numbers of
arguments that are said here.
Source: https://www.sqlite.org/lang_keywords.html, lang_corefunc.html, lang_aggfunc.html, lang_datefunc.html;
PostgreSQL 17, appendix C and chapter 9.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SQLITE = """
abort action add after all alter always analyze and as asc attach autoincrement before begin between by
cascade case cast check collate column commit conflict constraint create cross current current_date
current_time current_timestamp database default deferrable deferred delete desc detach distinct do drop each
else end escape except exclude exclusive exists explain fail false filter first following for foreign from
full generated glob group groups having if ignore immediate in index indexed initially inner insert instead
intersect into is isnull join key last left like limit match materialized natural no not nothing notnull null
nulls of offset on or order others outer over partition plan pragma preceding primary query raise range
recursive references regexp reindex release rename replace restrict returning right rollback row rows
savepoint select set table temp temporary then ties to transaction trigger true unbounded union unique update
using vacuum values view virtual when where window with without
"""
_POSTGRESQL = """
all analyse analyze and any array as asc asymmetric authorization between binary both by case cast check
collate collation column concurrently constraint create cross current_catalog current_date current_role
current_schema current_time current_timestamp current_user default deferrable delete desc distinct do drop
else end except exists false fetch for foreign freeze from full grant group having ilike in initially inner
insert intersect interval into is isnull join key lateral leading left like limit localtime localtimestamp
natural not notnull null offset on only or order outer overlaps placing position primary references returning
right row select session_user set similar some substring symmetric system_user table tablesample then time
timestamp to trailing trim true union unique update user using values variadic verbose when where window with
"""
_AGGREGATES = {"count": "1", "sum": "1", "avg": "1", "min": "1", "max": "1"}
_FUNCTIONS = {
    "abs": "1", "length": "1", "lower": "1", "upper": "1", "round": "1-2", "replace": "3", "coalesce": "2-",
    "nullif": "2",
}  # fmt: skip
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
"""ASCII alone, as SQLite compares names."""


@dataclass(frozen=True)
class Dialect:
    """One dialect.

    Attributes:
        title: as people write it.
        reserved: words in lower case that are no names where they stand bare.
        quotes: the signs around a name, which are written twice inside of it; "[]" has no way to say "]".
        functions, aggregates: numbers of arguments by name: "1", "1-2", "2-" for 2 or more; the first is no
            literal, but where "'" follows it may be a string.
        types: that CAST knows.
        words: further literals.
        matching: operators whose right side is a pattern as a string.
        bare: names that may stand without quotes.
        cased: names that differ in case alone are different.
    """

    title: str
    reserved: frozenset[str]
    quotes: tuple[str, ...]
    functions: dict[str, str]
    aggregates: dict[str, str]
    types: tuple[str, ...]
    words: tuple[str, ...]
    matching: tuple[str, ...]
    bare: re.Pattern[str]
    cased: bool = False

    def folded(self, name: str) -> str:
        """What a name has in common with those that are the same to the dialect."""
        return name if self.cased else name.translate(_LOWER)

    def spelled(self, name: str) -> list[str]:
        """The ways in which a name is written: bare where it can be, else in each of the quotes."""
        if self.bare.fullmatch(name) and name.lower() not in self.reserved:
            return [name]
        written = []
        for quote in self.quotes:
            end = quote[-1]
            if quote[0] == end:
                written.append(quote + name.replace(end, 2 * end) + end)
            elif end not in name:
                written.append(quote[0] + name + end)
        return written


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DATES = ("CURRENT_DATE", "CURRENT_TIMESTAMP")
DIALECTS = {
    "sqlite": Dialect(
        "SQLite",
        _words(_SQLITE),
        ('"', "`", "[]"),
        {
            **_FUNCTIONS, "date": "1-2'", "datetime": "1-2'", "hex": "1", "ifnull": "2", "iif": "3",
            "instr": "2",
            "julianday": "1-2'", "ltrim": "1-2", "max": "2-", "min": "2-", "rtrim": "1-2", "strftime": "2'",
            "substr": "2-3", "time": "1-2'", "trim": "1-2", "typeof": "1",
        },
        {**_AGGREGATES, "group_concat": "1-2", "total": "1"},
        ("INTEGER", "REAL", "TEXT", "NUMERIC"),
        _DATES,
        ("LIKE", "GLOB"),
        re.compile(r"[^\W\d]\w*"),
    ),
    "postgresql": Dialect(
        "PostgreSQL",
        _words(_POSTGRESQL),
        ('"',),
        {
            **_FUNCTIONS, "ceil": "1", "concat": "2-", "date_part": "2'", "date_trunc": "2'", "floor": "1",
            "greatest": "2-", "least": "2-", "left": "2", "ltrim": "1-2", "now": "0", "right": "2",
            "rtrim": "1-2",
            "substr": "2-3", "to_char": "2",
        },
        {**_AGGREGATES, "array_agg": "1", "bool_and": "1", "bool_or": "1", "string_agg": "2"},
        ("INTEGER", "REAL", "TEXT", "NUMERIC", "DATE"),
        (*_DATES, "TRUE", "FALSE"),
        ("LIKE", "ILIKE"),
        re.compile("[a-z_][a-z0-9_]*"),
        cased=True,
    ),
}  # fmt: skip
