"""Whose reader a type's patterns are written for.

Purpose: pydantic reads `pattern` with Rust's `regex`, or with Python's `re` where the model's config says so
or the pattern is compiled; msgspec with Python's `re`.  JSON Schema's own reader is ECMA-262's.  The
subschema says so beside its pattern, in `DIALECT`, which the core reads.
Invariant: a pattern that is exported has the dialect of its type's reader; schemas for people say none.
Rejected: a table by JSON Pointer (subschemas move: into tools, into unions); translating the pattern.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from tokenform.frontends.schema_parts import changed

DIALECT = "x-pattern-dialect"
"""Beside `pattern` and `patternProperties`: "auto", "ecma", "python" or "rust"."""
_FLAGS = ((re.ASCII, "a"), (re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"), (re.VERBOSE, "x"))


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
    return changed(
        schema, lambda part: part | {DIALECT: "python"} if isinstance(part.get("pattern"), str) else part
    )


def without_dialects(schema: Any) -> Any:
    """The schema as others read it."""
    return changed(
        schema,
        lambda part: {k: v for k, v in part.items() if not (k == DIALECT and isinstance(v, str))},
    )
