"""tokenform: a model's output matches a constraint, exactly.

Purpose: the public names.  Reading order for the code: the README's map.
Invariant: importing this package imports neither torch nor transformers; what needs them is imported when it
is first asked for, so that compiling and checking grammars stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tokenform import errors
from tokenform.engine import Grammar, TokenAutomaton, Vocabulary
from tokenform.errors import TokenformError
from tokenform.frontends import any_text, choice, from_type, json_schema, regex

if TYPE_CHECKING:
    from tokenform.decoding import Local, Result, Stats
    from tokenform.integrations.generation import Generator, generate

_LATER = {
    "Generator": "tokenform.integrations.generation",
    "generate": "tokenform.integrations.generation",
    "Local": "tokenform.decoding",
    "Result": "tokenform.decoding",
    "Stats": "tokenform.decoding",
}

__all__ = [
    "Generator",
    "Grammar",
    "Local",
    "Result",
    "Stats",
    "TokenAutomaton",
    "TokenformError",
    "Vocabulary",
    "any_text",
    "choice",
    "errors",
    "from_type",
    "generate",
    "json_schema",
    "regex",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'tokenform' has no attribute {name!r}")
    value = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
