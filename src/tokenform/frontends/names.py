"""One name that exists: of a module, an object, a list, a database, or a module that can be imported.

Invariant: nothing is imported or called that is not there already: attributes are looked at, not read, and
modules that can be imported are found by their files.
Complexity: linear in the names, `MOST` at most.
Rejected: attributes of values (`math.pi.real`): a name says what to call, and properties would run.
"""

from __future__ import annotations

import importlib.machinery
import inspect
import os
import pkgutil
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from tokenform.errors import LimitExceeded, OptionError
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.patterns import choice

MOST = 100_000


def names(source: Any = None, *, depth: int = 1, match: str | re.Pattern[str] | None = None) -> Grammar:
    """One name of those that exist.

    - a module or another object: its public attributes (`__all__` where a module has it, else what begins
      with no `_`); with `depth=2` also those of classes and modules among them, as `path.join`, and so on.
    - a mapping: its keys, and deeper those of mappings and the texts of lists inside: `{table: [column]}` has
      `table` and with `depth=2` also `table.column`.
    - a `sqlite3.Connection`: its tables and views, and with `depth=2` also their columns, so too.
    - another iterable of texts: these.
    - None: modules that this Python can import, none of which is imported; with `depth=2` also those inside
      packages.

    Args:
        source: whose names.
        depth: most parts of a name, which dots join.
        match: a pattern of which a whole name is; None: any name.
    Raises:
        OptionError: the source has no such name, or names that are no texts; depth is no number from 1.
        LimitExceeded: there are more than 100,000 names.

    >>> import math
    >>> import tokenform as tf
    >>> bytes_only = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256])
    >>> accepts = tf.names(math).compile(bytes_only).matches
    >>> accepts("sqrt"), accepts("squareroot")
    (True, False)
    """
    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
        raise OptionError(f"depth={depth!r} is no number of parts; the least is 1.")
    try:
        pattern = re.compile(match) if match is not None else None
    except re.error as error:
        raise OptionError(f"match={match!r} is no pattern: {error}.") from None
    found: dict[str, None] = {}
    for name in _names(source, depth):
        if not isinstance(name, str) or not name:
            raise OptionError(f"a name is a text that is not empty, not {name!r}.")
        if pattern is None or pattern.fullmatch(name):
            found[name] = None
        if len(found) > MOST:
            raise LimitExceeded(
                f"there are more than {MOST} names; say which with match=, or a smaller depth=."
            )
    if not found:
        raise OptionError(
            "there is no such name" + (f" that matches {match!r}." if match is not None else ".")
        )
    return choice(found)


def _names(source: Any, depth: int) -> Iterator[Any]:
    if source is None:
        return _importable(depth)
    if isinstance(source, sqlite3.Connection):
        from tokenform.frontends.catalog.tables import read_tables

        return _of_mapping(read_tables(source), depth)
    if isinstance(source, Mapping):
        return _of_mapping(source, depth)
    if isinstance(source, str):
        raise OptionError("names are those of an object or a list; of a module give the module itself.")
    if isinstance(source, Iterable) and not isinstance(source, type):
        return iter(source)
    return _of_object(source, depth)


def _of_mapping(source: Mapping[Any, Any], depth: int) -> Iterator[Any]:
    for name, inner in source.items():
        yield name
        if depth > 1 and isinstance(inner, Mapping):
            yield from (f"{name}.{one}" for one in _of_mapping(inner, depth - 1))
        elif depth > 1 and isinstance(inner, list | tuple):
            yield from (f"{name}.{one}" for one in inner)


def attributes(source: Any) -> list[str]:
    """The public attributes of an object: identifiers that it has, as far as that can be told without reading
    them."""
    listed = getattr(source, "__all__", None) if isinstance(source, ModuleType) else None
    if not isinstance(listed, list | tuple):
        listed = [name for name in dir(source) if not name.startswith("_")]
    made = isinstance(source, ModuleType) and "__getattr__" in vars(source)  # when it is asked for
    absent = object()
    return [
        name
        for name in listed
        if isinstance(name, str)
        and name.isidentifier()
        and (made or inspect.getattr_static(source, name, absent) is not absent)
    ]


def _of_object(source: Any, depth: int) -> Iterator[str]:
    for name in attributes(source):
        yield name
        inner = inspect.getattr_static(source, name, None)
        if depth > 1 and isinstance(inner, ModuleType | type):
            yield from (f"{name}.{one}" for one in _of_object(inner, depth - 1))


def _importable(depth: int) -> Iterator[str]:
    found = {module.name: module.ispkg for module in pkgutil.iter_modules() if module.name.isidentifier()}
    for name in sorted({*sys.builtin_module_names, *found}):
        if not name.startswith("_"):
            yield name
            if depth > 1 and found.get(name):
                spec = importlib.machinery.PathFinder.find_spec(name)
                yield from _inside(name, list((spec and spec.submodule_search_locations) or ()), depth - 1)


def _inside(name: str, folders: Sequence[str], depth: int) -> Iterator[str]:
    for module in pkgutil.iter_modules(folders, f"{name}."):
        last = module.name.rpartition(".")[2]
        if last.isidentifier() and not last.startswith("_"):
            yield module.name
            if module.ispkg and depth > 1:
                inner = [os.path.join(folder, last) for folder in folders]
                yield from _inside(
                    module.name, [folder for folder in inner if os.path.isdir(folder)], depth - 1
                )
