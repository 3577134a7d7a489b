"""Hostile inputs: what a server must survive, schemas and every other kind of constraint.

Purpose: the list behind the judge of hostile inputs; each must give a clear error or a working grammar,
whatever is asked of it.
Invariant: every input is built from its size alone.
Source: the shapes that public issue trackers report as crashes and hangs, and what our own attacks found.
Rejected: a fuzzer's findings alone (they come and go; these are named and stay).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .formulas import formula_schemas
from .grown_texts import SIZES, families
from .schemas import hostile_schemas
from .texts import combinators, grammar_texts, patterns

__all__ = ["hostile_cases", "hostile_schemas"]


def hostile_cases() -> dict[str, Callable[[], Any]]:
    """Name -> what makes the grammar; it may raise any error of the library."""
    import tokenform as tf

    cases: dict[str, Callable[[], Any]] = {}
    for name, schema in {**hostile_schemas(), **formula_schemas()}.items():
        cases[name] = partial(tf.json_schema, schema)
    for name, pattern in patterns().items():
        cases[f"regex: {name}"] = partial(tf.regex, pattern)
    for name, (reader, text) in grammar_texts().items():
        cases[f"{reader}: {name}"] = partial(getattr(tf, reader), text)
    for name, make in combinators().items():
        cases[f"made of others: {name}"] = make
    for name, family in families().items():
        for size in SIZES:
            cases[f"{name} @{size}"] = family(size)
    return cases
