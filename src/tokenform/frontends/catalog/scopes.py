"""The sets of tables that a query may read, each with its FROM clauses.

Invariant: the tables of a scope are joined by keys, each table but the first to one before it; a table
stands in it twice only where a key leads to itself, and by aliases then.
Complexity: as many scopes as there are such sets, `MOST` at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tokenform.errors import LimitExceeded
from tokenform.frontends.catalog.tables import Catalog, ForeignKey

MOST = 700
"""Scopes of a grammar, with aliases and without."""


@dataclass
class Scope:
    """Tables that are read together.

    Attributes:
        tables: each once; a table that is joined with itself twice.
        aliases: one for each, or () where tables are called by their names.
        orders: the tables' places in the order of a FROM clause, and for each but the first the keys that
            join it to one before: (key, the place of its table, the place of the table that it leads to).
    """

    tables: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    orders: list[tuple[tuple[int, ...], tuple[tuple[tuple[ForeignKey, int, int], ...], ...]]] = field(
        default_factory=list
    )


def scopes_of(catalog: Catalog, joins: int, reserved: frozenset[str]) -> list[Scope]:
    """All scopes of up to so many joins: by the tables' names, and by their initials as aliases.

    Raises:
        LimitExceeded: there are more than `MOST`.
    """
    neighbours: dict[str, list[ForeignKey]] = {table: [] for table in catalog.tables}
    for key in catalog.keys:
        for end in {key.table, key.to}:
            neighbours[end].append(key)
    found: dict[tuple[str, ...], Scope] = {}
    sequences: list[tuple[str, ...]] = [(table,) for table in catalog.tables]
    places = {table: at for at, table in enumerate(catalog.tables)}
    for length in range(1, joins + 2):
        for sequence in sequences:
            tables = tuple(sorted(sequence, key=places.__getitem__))
            scope = found.setdefault(tables, Scope(tables))
            scope.orders.append(_order(scope, sequence, neighbours))
            if len(found) * 2 > MOST:
                fewer = f", or joins={joins - 1}" if joins else ""
                raise LimitExceeded(
                    f"more than {MOST // 2} sets of tables can be read together, which is more than one "
                    f"grammar takes; name fewer tables with tables={fewer}."
                )
        if length <= joins:
            sequences = [
                (*sequence, other)
                for sequence in sequences
                for other in dict.fromkeys(
                    end for table in sequence for key in neighbours[table] for end in (key.table, key.to)
                )
                if other not in sequence
            ]
    made = list(found.values())
    for table, keys in neighbours.items():
        own = [key for key in keys if key.table == key.to]
        if own and joins:
            found[table, table] = Scope((table, table), (), [_order(None, (table, table), {table: own})])
    aliased = [
        Scope(scope.tables, aliases, scope.orders)
        for scope in found.values()
        if (aliases := _aliases(scope.tables, reserved))
    ]
    return made + aliased


def _order(
    scope: Scope | None, sequence: Sequence[str], neighbours: dict[str, list[ForeignKey]]
) -> tuple[tuple[int, ...], tuple[tuple[tuple[ForeignKey, int, int], ...], ...]]:
    at = (0, 1) if scope is None else tuple(scope.tables.index(table) for table in sequence)
    steps = []
    for new in range(1, len(sequence)):
        ways = []
        for key in neighbours[sequence[new]]:
            for old in range(new):
                if (key.table, key.to) == (sequence[new], sequence[old]):
                    ways.append((key, at[new], at[old]))
                if (key.table, key.to) == (sequence[old], sequence[new]):
                    ways.append((key, at[old], at[new]))
        steps.append(tuple(ways))
    return at, tuple(steps)


def _aliases(tables: Sequence[str], reserved: frozenset[str]) -> tuple[str, ...]:
    """Initials of the words of each name (`order_items`: `oi`), numbered where they are not all different;
    () where one of them could be read as something else."""
    initials = []
    for table in tables:
        words = [word for word in table.replace("-", "_").replace(" ", "_").split("_") if word]
        initials.append("".join(word[0] for word in words).lower())
    made = []
    for at, one in enumerate(initials):
        number = initials[: at + 1].count(one) if initials.count(one) > 1 else ""
        made.append(f"{one}{number}")
    taken = {table.lower() for table in tables} | reserved
    plain = all(one.isascii() and one.isidentifier() and one not in taken for one in made)
    return tuple(made) if plain and len(set(made)) == len(made) else ()
