"""Two independent validators of JSON documents: `jsonschema` (Python) and `jsonschema-rs` (Rust).

Purpose: say whether a text that the engine produced is valid, by code that shares nothing with it.
Invariant: a text with a duplicate key, or that is not JSON (RFC 8259), is invalid whatever the schema says.
Complexity: one parse and one validation by each.
Rejected: one validator alone: each has gaps of its own (Python's `re` is not ECMA-262; float `multipleOf`),
and a verdict that only one of them gives is "disputed", for a person to read.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
from dataclasses import dataclass
from typing import Any

import jsonschema

jsonschema_rs: Any = None
if importlib.util.find_spec("jsonschema_rs") is not None:
    jsonschema_rs = importlib.import_module("jsonschema_rs")


class _Duplicate(ValueError):
    pass


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Duplicate(f"duplicate key among {[key for key, _ in pairs][:20]}")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def parse(text: str) -> Any:
    """The document; ValueError where it isn't JSON, repeats a key, or has a lone surrogate."""
    value = json.loads(text, object_pairs_hook=_pairs, parse_constant=_no_constant)
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


@dataclass(frozen=True)
class Judgement:
    """What the judges say of a text.

    Attributes:
        parses: whether it is JSON.
        verdicts: validator -> error message, or None for valid; a validator that can't read the schema is
        left out.
    """

    parses: bool
    verdicts: dict[str, str | None]
    error: str = ""

    @property
    def valid(self) -> bool:
        """All judges that could judge say valid (and one could)."""
        return self.parses and bool(self.verdicts) and all(error is None for error in self.verdicts.values())

    @property
    def disputed(self) -> bool:
        return self.parses and len({error is None for error in self.verdicts.values()}) == 2

    def describe(self) -> str:
        if not self.parses:
            return f"not JSON: {self.error}"
        return "; ".join(f"{name}: {error}" for name, error in self.verdicts.items() if error is not None)


class Judges:
    """Both validators, made ready for one schema."""

    def __init__(self, schema: Any) -> None:
        self._validators: dict[str, Any] = {}
        with contextlib.suppress(Exception):  # a schema that a validator can't read is not judged by it
            family = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
            self._validators["jsonschema"] = family(schema, format_checker=family.FORMAT_CHECKER)
        if jsonschema_rs is not None:
            with contextlib.suppress(Exception):
                self._validators["jsonschema-rs"] = jsonschema_rs.validator_for(schema, validate_formats=True)

    def judge(self, text: str) -> Judgement:
        try:
            value = parse(text)
        except (ValueError, RecursionError) as error:
            return Judgement(False, {}, str(error))
        verdicts: dict[str, str | None] = {}
        for name, validator in self._validators.items():
            try:
                found = next(iter(validator.iter_errors(value)), None)
            except Exception:  # an unresolvable $ref, a pattern that Python's re can't read
                continue
            verdicts[name] = None if found is None else str(found).split("\n")[0][:300]
        return Judgement(True, verdicts)
