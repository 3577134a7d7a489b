"""How a command speaks: errors and notes are sentences on standard error, and an exit code.

Invariant: exit code 0: done, or accepted; 1: refused (the document, or a constraint that can't be met);
2: bad input or usage.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from tokenform import errors
from tokenform.engine import Grammar
from tokenform.frontends.tools.calls import ToolCalls

_REFUSALS = (
    errors.UnsupportedSchema,
    errors.UnsatisfiableSchema,
    errors.UnsatisfiableGrammar,
    errors.UnsupportedRegex,
    errors.LimitExceeded,
    errors.BudgetTooSmall,
    errors.SamplingError,
)


@contextmanager
def reported() -> Iterator[None]:
    """Errors of the library as one sentence on standard error and an exit code."""
    try:
        yield
    except errors.TokenformError as error:
        place = f" (at {error.pointer})" if error.pointer and error.pointer not in str(error) else ""
        typer.echo(f"tokenform: {error}{place}", err=True)
        raise typer.Exit(1 if isinstance(error, _REFUSALS) else 2) from None


def said_at(pointer: str) -> str:
    """Where a constraint says what was expected: a place in a schema, or what the grammar was made of."""
    return f"schema at {pointer or 'the root'}" if pointer[:1] in ("", "/") else pointer


def cut_note(result: Any) -> str:
    """That max_tokens cut into a text, and what it made of it."""
    calls = isinstance(result.value, ToolCalls)
    where = ", ".join(result.cut) if any(result.cut) else ""
    made = f"; made by it: {where}" if where else ""
    left = "; calls that were not complete are left out" if calls else ""
    return f"the text did not end within max_tokens and was closed there{made}{left}"


def tell(grammar: Grammar) -> None:
    """What was ignored, loosened or misspelt, on standard error."""
    for line in grammar.report:
        typer.echo(f"tokenform: note: {line}", err=True)
