"""The constraint that a command line gives, and the files it names."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from tokenform import errors
from tokenform.engine import Grammar
from tokenform.frontends import choice, from_type, json_schema, regex
from tokenform.frontends.grammar_text import grammar_of_text


def constraint(
    schema: str | None, pattern: str | None, choices: list[str] | None, grammar: str | None, **options: Any
) -> Grammar:
    """The grammar of the one constraint that the command line gives."""
    named = {"--schema": schema, "--regex": pattern, "--choices": choices or None, "--grammar": grammar}
    given = [name for name, value in named.items() if value is not None]
    if not given:
        raise errors.OptionError("no constraint is given; pass --schema, --regex, --choices or --grammar.")
    if len(given) > 1:
        raise errors.OptionError(f"{' and '.join(given)} are given; pass one constraint.")
    if pattern is not None:
        return regex(pattern)
    if choices:
        return choice(choices)
    if grammar is not None:
        kind = {".gbnf": "gbnf", ".lark": "lark"}.get(Path(grammar).suffix, "grammar")
        return grammar_of_text(kind, read_text(grammar, errors.InvalidGrammar))
    assert schema is not None
    if is_named_type(schema):
        return from_type(named_type(schema), **options)
    text = schema if _is_text(schema) else read_text(schema, errors.InvalidSchema)
    return json_schema(text, **options)


def is_named_type(schema: str) -> bool:
    """Whether a type is meant, as `module:Name`, and no file or schema."""
    return ":" in schema and not _is_text(schema) and not Path(schema).exists()


def _is_text(schema: str) -> bool:
    """Whether it is the schema itself: JSON begins so, and no module or path that anyone has."""
    return schema.lstrip().startswith("{")


def read_text(path: str, error: type[errors.TokenformError]) -> str:
    try:
        return read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as broken:
        raise error(f"{path} is not UTF-8 (byte {broken.start}).") from None


def named_type(name: str) -> Any:
    """The object that `module:Name` names; modules of the working folder are found."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise errors.OptionError(f"{name!r} can't be imported: {error}.") from None
    finally:
        sys.path.remove("")
    return found


def read_file(path: str | None) -> bytes:
    try:
        return Path(path or "").read_bytes()
    except OSError as error:
        raise errors.OptionError(f"{path!r} can't be read: {error.strerror or error}.") from None


def write_file(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise errors.OptionError(f"{str(path)!r} can't be written: {error.strerror or error}.") from None
