"""Whose reader a type's patterns are written for.

Purpose: pydantic reads `pattern` with Rust's `regex`, or with Python's `re` where the model's config says so
or the pattern is compiled; msgspec with Python's `re`.  JSON Schema's own reader is ECMA-262's.  The
subschema says so beside its pattern, in `DIALECT`, which the core reads.
Invariant: a pattern that is exported has the dialect of its type's reader; schemas for people say none.
Rejected: a table by JSON Pointer (subschemas move: into tools, into unions); translating the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

DIALECT = "x-pattern-dialect"
"""Beside `pattern` and `patternProperties`: "auto", "ecma", "python" or "rust"."""
_FLAGS = ((re.ASCII, "a"), (re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"), (re.VERBOSE, "x"))
_VALUES = ("enum", "const", "default", "examples")


class WithDialects(GenerateJsonSchema):
    """pydantic's export, with the dialects of patterns."""

    def str_schema(self, schema: Any) -> dict[str, Any]:
        made = super().str_schema(schema)
        if "pattern" not in made:
            return made
        given, engine = schema["pattern"], getattr(self._config, "regex_engine", None)
        if isinstance(given, re.Pattern):
            return made | {"pattern": with_flags(given), DIALECT: "python"}
        return made | {DIALECT: "python" if engine == "python-re" else "rust"}


def with_flags(pattern: re.Pattern[str]) -> str:
    """A compiled pattern as a text that says its flags."""
    flags = "".join(letter for flag, letter in _FLAGS if pattern.flags & flag)
    return f"(?{flags}){pattern.pattern}" if flags else pattern.pattern


def in_python(schema: Any) -> Any:
    """The schema, each of whose patterns is Python's."""
    if isinstance(schema, Mapping):
        made = {key: value if key in _VALUES else in_python(value) for key, value in schema.items()}
        return made | {DIALECT: "python"} if isinstance(made.get("pattern"), str) else made
    return [in_python(part) for part in schema] if isinstance(schema, list) else schema


def without_dialects(schema: Any) -> Any:
    """The schema as others read it."""
    if isinstance(schema, Mapping):
        return {
            key: value if key in _VALUES else without_dialects(value)
            for key, value in schema.items()
            if not (key == DIALECT and isinstance(value, str))
        }
    return [without_dialects(part) for part in schema] if isinstance(schema, list) else schema
