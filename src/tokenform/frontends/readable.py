"""The JSON Schema of a Python type, narrowed to what pydantic then reads.

Purpose: pydantic's own export accepts strings and numbers that its reader refuses (`"abc"` as a Decimal, a
duration of 10^20 years) or bends (`1e400` becomes `inf`).  A grammar made of it would let a model write them.
Invariant: what the narrowed schema accepts of these types is read without an error, and comes back as the
number that was written, as near as the type holds it.
Rejected: patching the reader (its answers are pydantic's, and stay so).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

# A decimal as a string: no spaces, no underscores, no NaN.
_DECIMAL = r"^[+-]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})([eE][+-]?[0-9]{1,3})?$"
_INTEGER = "^-?(0|[1-9][0-9]{0,60})$"
_BOUNDS = ("ge", "gt", "le", "lt", "multiple_of")
# Years, months, weeks and the like of at most six digits each stay within a timedelta.
_SHORT_NUMBERS = "^(?!.*[0-9]{7})"
_EXACT = 10**7
_LARGEST = sys.float_info.max


class Readable(GenerateJsonSchema):
    """pydantic's export, narrowed."""

    def date_schema(self, schema: Any) -> dict[str, Any]:
        # Python's calendar has no year 0
        return super().date_schema(schema) | {"pattern": "^(?!0000)"}

    def datetime_schema(self, schema: Any) -> dict[str, Any]:
        # and no leap seconds
        return super().datetime_schema(schema) | {"pattern": "^(?!0000)(?!.*:60)"}

    def time_schema(self, schema: Any) -> dict[str, Any]:
        return super().time_schema(schema) | {"pattern": "^(?!.*:60)"}

    def timedelta_schema(self, schema: Any) -> dict[str, Any]:
        made = super().timedelta_schema(schema)
        return made | {"pattern": _SHORT_NUMBERS} if made.get("type") == "string" else made

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        made = super().decimal_schema(schema)
        number = next((dict(part) for part in made.get("anyOf", []) if part.get("type") == "number"), None)
        if number is None:
            return made
        digits, places = schema.get("max_digits"), schema.get("decimal_places")
        if digits is not None or places is not None:
            number = {"allOf": [number, {"anyOf": _decimals(digits, places)}]}
        if (
            digits is not None
            or places is not None
            or any(schema.get(bound) is not None for bound in _BOUNDS)
        ):
            return number  # what a string may be then no pattern says
        others = [part for part in made["anyOf"] if part.get("type") not in ("number", "string")]
        return {**made, "anyOf": [number, {"type": "string", "pattern": _DECIMAL}, *others]}

    def float_schema(self, schema: Any) -> dict[str, Any]:
        made = super().float_schema(schema)
        # a number that is a little more than the bound may be the bound itself once it is a float
        for key, target, toward in (
            ("exclusiveMinimum", "minimum", math.inf),
            ("exclusiveMaximum", "maximum", -math.inf),
        ):
            bound = made.get(key)
            if isinstance(bound, int | float) and bound != 0 and math.isfinite(bound):
                del made[key]
                made[target] = math.nextafter(float(bound), toward)
        if "multipleOf" in made:  # beyond so many units a float's remainder means nothing
            most = made["multipleOf"] * _EXACT
            made.setdefault("minimum", -most)
            made.setdefault("maximum", most)
        return made

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        made = super().dict_schema(schema)
        keys = schema.get("keys_schema") or {}
        pattern = {"int": _INTEGER, "float": _DECIMAL, "decimal": _DECIMAL}.get(str(keys.get("type")))
        if pattern is not None and "propertyNames" not in made:
            made["propertyNames"] = {"pattern": pattern}
        return made


def _decimals(digits: int | None, places: int | None) -> list[dict[str, Any]]:
    """Schemas of the numbers with so many digits, and so many of them after the point."""
    if digits is None:
        return [{"multipleOf": _power(-(places or 0))}]
    most = range((places if places is not None else digits) + 1)
    if places is not None:
        most = range(places, places + 1)
    parts = []
    for fraction in most:
        largest = 10 ** (digits - fraction) - _power(-fraction) if digits > fraction else 1 - _power(-digits)
        parts.append({"multipleOf": _power(-fraction), "minimum": -largest, "maximum": largest})
    return parts


def _power(exponent: int) -> float | int:
    return float(f"1e{exponent}") if exponent < 0 else int(10**exponent)


def within_floats(schema: Any) -> Any:
    """The schema with the range of a float as the bounds of every number: for spellings that go beyond it."""
    if isinstance(schema, Mapping):
        made = {
            key: value if key in ("enum", "const", "default", "examples") else within_floats(value)
            for key, value in schema.items()
        }
        if made.get("type") == "number":
            made = {"minimum": -_LARGEST, "maximum": _LARGEST} | made
            if made.get("exclusiveMinimum") == 0:
                made["minimum"] = max(made["minimum"], math.ulp(0.0))
            if made.get("exclusiveMaximum") == 0:
                made["maximum"] = min(made["maximum"], -math.ulp(0.0))
        return made
    return [within_floats(part) for part in schema] if isinstance(schema, list) else schema
