"""What became of one schema's text, judged by `jsonschema` with JSON Schema's own patterns and numbers.

Purpose: `jsonschema` reads patterns with Python's `re`, whose `\\s`, `\\d`, `\\w` and `$` are not ECMA-262's
(`\\s` has U+FEFF there, and `\\w` no accents), and divides doubles for `multipleOf` (45829129685.49 is a
multiple of 0.01): such texts would be called wrong, or right, by mistake.
Invariant: only patterns are read by another validator (`jsonschema-rs`), and numbers are what was written;
nothing of this engine judges.
"""

from __future__ import annotations

import decimal
import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import jsonschema_rs

DIGITS = 1000
"""Of a number that is divided; a double has 309 before its point at most, and our documents' have fewer."""


def fate(schema: Any, text: Any, tokenizer: Any) -> str:
    """ "valid", "invalid", "cut", "failed" or, of what no judge can read, "not judged"."""
    if text.reason == "error":
        return "failed"
    if text.reason == "length":
        return "cut"
    try:
        value = exactly(text.written(tokenizer))
    except ValueError:
        return "invalid"
    except decimal.InvalidOperation:  # a number whose exponent has nineteen digits
        return "not judged"
    try:
        return "valid" if is_valid(exactly(json.dumps(schema)), value) else "invalid"
    except Exception:  # a `$ref` to nowhere, a pattern that no one can read
        return "not judged"


def exactly(text: str) -> Any:
    """The JSON value of a text, its numbers as they are written."""
    return json.loads(text, parse_float=_number)


def _number(written: str) -> Any:
    value = decimal.Decimal(written)
    small = abs(value.adjusted()) < DIGITS
    return int(value) if small and value == value.to_integral_value() else value


def is_valid(schema: Any, value: Any) -> bool:
    """Whether the value conforms to the schema, by its own draft; formats are not asked."""
    family = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    with decimal.localcontext() as context:
        context.prec = 2 * DIGITS
        found: bool = _with_patterns(family)(schema).is_valid(value)
    return found


@functools.lru_cache
def _with_patterns(family: Any) -> Any:
    """The validator of a draft, its patterns those of ECMA-262."""
    keywords = {"pattern": _pattern, "patternProperties": _pattern_properties}
    return jsonschema.validators.extend(family, keywords | {"additionalProperties": _additional(family)})


@functools.lru_cache(4096)
def _search(pattern: str) -> Callable[[str], bool]:
    found: Callable[[str], bool] = jsonschema_rs.Draft202012Validator({"pattern": pattern}).is_valid
    return found


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _search(pattern)(instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        for pattern, inner in patterns.items():
            for key, value in instance.items():
                if _search(pattern)(key):
                    yield from validator.descend(value, inner, path=key, schema_path=pattern)


def _additional(family: Any) -> Callable[..., Iterator[Any]]:
    original = family.VALIDATORS["additionalProperties"]

    def additional(validator: Any, extra: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(instance, dict):
            patterns = schema.get("patternProperties", {})
            left = {
                key: value
                for key, value in instance.items()
                if not any(_search(pattern)(key) for pattern in patterns)
            }
            rest = {name: value for name, value in schema.items() if name != "patternProperties"}
            yield from original(validator, extra, left, rest)

    return additional
