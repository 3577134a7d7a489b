"""Every error that tokenform raises, in one table.

The Rust core reports an error as (kind, message, place); the boundary looks the
kind up here by class name, so a kind that is missing here fails a test.  Each
message says what is wrong, where, and what to do next.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TokenformError(Exception):
    """Base of every error of the library.

    Attributes:
        pointer: JSON Pointer (RFC 6901) into the schema, where there is one.
        keyword: the schema keyword that the error is about, where there is one.
        line, column: 1-based place in a grammar or pattern text, where there is one.
        results: of a batch in which a text failed, the others', with None in its place; else None.
    """

    results: list[Any] | None = None

    def __init__(
        self,
        message: str,
        *,
        pointer: str | None = None,
        keyword: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.pointer = pointer
        self.keyword = keyword
        self.line = line
        self.column = column


class InvalidSchema(TokenformError):
    """The text is not JSON, or not a JSON Schema (a keyword has a value of the wrong type)."""


class UnsupportedSchema(TokenformError):
    """A keyword that can't be enforced exactly; `keyword` and `pointer` name it."""


class UnsatisfiableSchema(TokenformError):
    """No document satisfies the schema; `pointer` names the clash."""


class InvalidRegex(TokenformError):
    """The pattern is not a regular expression; `column` is the 1-based place."""


class UnsupportedRegex(TokenformError):
    """The pattern uses what is not regular (a backreference) or not offered."""


class InvalidGrammar(TokenformError):
    """A mistake in a grammar text; `line` and `column` are the place."""


class UnsatisfiableGrammar(TokenformError):
    """A grammar, regex or choice that accepts no text at all."""


class InvalidType(TokenformError):
    """A Python type that no JSON Schema can be made of; or a document that the type's own validators refuse.

    Attributes:
        text: the document that is refused, as far as it was written; None where a type is.
        partial: its value as JSON, as far as it goes.
    """

    text: str | None = None
    partial: Any = None


class LimitExceeded(TokenformError):
    """A limit on work, memory or size was reached, in this call alone: the engine is as usable as before."""


class VocabularyError(TokenformError):
    """The vocabulary can't be read, or lacks bytes that the constraint needs."""


class TokenRejected(TokenformError):
    """The token is not allowed in this state."""


class InvalidState(TokenformError):
    """The state is another automaton's."""


class BudgetTooSmall(TokenformError):
    """No complete text fits into `max_tokens`; or, with `on_length="raise"`, the written one did not.

    Attributes:
        least: tokens of the shortest text that is known, where one is.
        result: the text that was closed by the budget, a `Result`; None where none was begun.
    """

    least: int | None = None
    result: Any = None


class PromptTooLong(TokenformError):
    """The prompt does not fit into the model's context."""


class ModelError(TokenformError):
    """The model or tokenizer can't be loaded, or can't be used for this call."""


class ToolError(TokenformError):
    """A tool definition, a tool format or the text of a tool call is wrong.

    Attributes:
        cut: the text ended in the middle of a call.
        passed: the call was read to its end before it was refused.
        calls: where an output was read, its other calls (`ToolCalls`, with content and reasoning); else None.
    """

    cut: bool = False
    passed: bool = False
    calls: Any = None


class PredicateError(TokenformError):
    """A caller's predicate or potential raised, or returned what it may not."""


class DrafterError(TokenformError):
    """A drafter was set up in a way that can't work."""


class SamplingError(TokenformError):
    """A sampler could not produce a draw within the limits that it was given."""


class Busy(TokenformError):
    """Too much waits already, or nothing more is taken; nothing of the call was begun.

    Attributes:
        waiting: how many texts wait.
    """

    waiting: int = 0


class DataError(TokenformError):
    """A data file of an evaluation or a benchmark can't be read."""


class OptionError(TokenformError, ValueError):
    """An argument has a value that it can't have."""


class UnknownOption(OptionError, TypeError):
    """A call has no such keyword; the message names the nearest that it has."""


class Interrupted(TokenformError):
    """The call was ended from outside; where a signal's handler raised, its exception is raised instead."""


class EngineError(TokenformError):
    """A mistake in the engine: please report it. The call is lost, the automaton and its states are not."""


class MissingExtra(TokenformError, ImportError):
    """A package that this call needs is not installed; the message names the extra that brings it."""


EXTRAS = {
    "torch": "models",
    "transformers": "models",
    "tokenizers": "models",
    "safetensors": "models",
    "jinja2": "models",
    "threadpoolctl": "models",
    "gguf": "gguf",
    "accelerate": "gguf",
    "starlette": "serve",
    "uvicorn": "serve",
    "prometheus_client": "serve",
    "httpx": "serve",
    "matplotlib": "plots",
    "datasets": "data",
    "ray": "ray",
    "openai": "endpoint",
    "pyarrow": "data",
    "llguidance": "peers",
    "xgrammar": "peers",
    "outlines_core": "peers",
    "lmformatenforcer": "peers",
    "glrmask": "peers",
}
"""Packages that the base package does not bring, and the extra that does: `tokenform[models]`."""


class SchemaWarning(UserWarning):
    """A schema has a key that says nothing in JSON Schema but looks like a keyword (`propertys`).

    Shown once for each place; `warnings.filterwarnings` turns it off, or into an error, as `strict=True`
    does.
    """


def own_error(error: Exception, what: str) -> TokenformError:
    """An error as one of this library's: itself, or a `ModelError` that it is the cause of.

    Args:
        what: what could not be done.
    """
    if isinstance(error, TokenformError):
        return error
    own = ModelError(f"{what}: {type(error).__name__}: {error}")
    own.__cause__ = error
    return own


def warn_outside(message: str, category: type[Warning]) -> None:
    """A warning that points at the caller's line: the first outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "tokenform":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def extras() -> Iterator[None]:
    """An import inside that lacks one of the packages of `EXTRAS` says what to install.

    Raises:
        MissingExtra: the package is not there.  Any other import error is passed on as it is.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise MissingExtra(
            f'this needs {package}, which is not installed: pip install "tokenform[{EXTRAS[package]}]"'
        ) from None
