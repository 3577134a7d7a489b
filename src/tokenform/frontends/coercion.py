"""One constraint out of the ways in which a caller may state it.

Purpose: `generate(prompt, schema)`, `sample(prompt, schema)`, `gen` and batches agree on what counts
as a constraint.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tokenform.errors import InvalidSchema, OptionError, warn_outside
from tokenform.frontends import patterns
from tokenform.frontends.grammar import Condition, Grammar
from tokenform.frontends.python_types import from_type, is_type
from tokenform.frontends.schemas import json_schema

_FIELDS = ("model_fields", "__dataclass_fields__", "__struct_fields__", "__attrs_attrs__")
"""What classes have that stand for documents."""


def to_constraint(constraint: Any) -> Grammar | Condition:
    """A condition as it is, or the grammar of anything else."""
    return constraint if isinstance(constraint, Condition) else to_grammar(constraint)


def to_grammar(constraint: Any) -> Grammar:
    """A grammar from a grammar, a schema (mapping, boolean, JSON text), a Python type, a compiled pattern, or
    None (any text)."""
    if isinstance(constraint, Grammar):
        return constraint
    if constraint is None:
        return patterns.any_text()
    if isinstance(constraint, str):
        return _schema_of_text(constraint)
    if isinstance(constraint, Mapping | bool):
        return json_schema(constraint)
    if isinstance(constraint, re.Pattern):
        return patterns.regex(constraint)
    if is_type(constraint):
        return from_type(constraint)
    if isinstance(constraint, os.PathLike):
        raise OptionError(
            "a schema's file is not opened here; give its text: "
            f"pathlib.Path({os.fspath(constraint)!r}).read_text()"
        )
    kind = type(constraint)
    if any(hasattr(kind, name) for name in _FIELDS):
        raise OptionError(
            f"the constraint is an instance of {kind.__name__}; give the class itself: schema={kind.__name__}"
        )
    raise OptionError(
        f"{type(constraint).__name__} is not a constraint; pass a grammar, a schema, a type or a pattern, or "
        "None for any text."
    )


def _schema_of_text(text: str) -> Grammar:
    try:
        return json_schema(text)
    except InvalidSchema as error:
        if text.endswith((".json", ".lark", ".gbnf")) or _is_file(text):
            error.args = (
                f"{error}; {text!r} looks like the name of a file, which is not opened here: give its text, "
                f"as pathlib.Path({text!r}).read_text()",
            )
        elif not text.lstrip().startswith("{"):  # more likely a pattern or a grammar than a slip in a schema
            error.args = (
                f"{error}; text alone is read as a JSON Schema: give a pattern as tf.regex(text), a grammar "
                "as tf.lark(text) or tf.gbnf(text)",
            )
        raise


def _is_file(text: str) -> bool:
    try:
        return os.path.isfile(text)
    except ValueError:  # no name of a file has a null byte
        return False


def is_json(text: str) -> bool:
    """Whether a text is read as a schema: it is JSON, or begins as an object and has a slip somewhere."""
    return text.lstrip().startswith("{") or text.strip() in ("true", "false")


def one_constraint(
    schema: Any = None,
    *,
    choices: Iterable[str] | None = None,
    regex: str | re.Pattern[str] | None = None,
    grammar: Any = None,
    type: Any = None,
) -> Any:
    """The one constraint that is given, as `to_constraint` takes it; None where none is.

    Args:
        schema: a schema, type or grammar, or a list of them, as it is.
        choices, regex: made into grammars.
        grammar, type: old names of `schema`, which warn.
    Raises:
        OptionError: more than one is given.
    """
    named = {"schema": schema, "regex": regex, "choices": choices, "grammar": grammar, "type": type}
    passed = [name for name, value in named.items() if value is not None]
    if len(passed) > 1:
        raise OptionError(f"{' and '.join(passed)} are given; pass one constraint.")
    for old in ("grammar", "type"):
        if old in passed:
            warn_outside(f"{old}= is an old name; write schema=, or give it second.", DeprecationWarning)
    if regex is not None:
        return patterns.regex(regex)
    if choices is not None:
        return patterns.choice(choices)
    return from_type(type) if type is not None else schema if schema is not None else grammar
