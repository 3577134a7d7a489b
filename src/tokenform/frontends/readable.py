"""The JSON Schema of a Python type, narrowed to what pydantic then reads.

Purpose: pydantic's own export accepts strings and numbers that its reader refuses (`"abc"` as a Decimal, a
duration of 10^20 years) or bends (`1e400` becomes `inf`).  A grammar made of it would let a model write them.
Invariant: what the narrowed schema accepts of these types is read without an error, and comes back as the
number that was written, as near as the type holds it.
Rejected: patching the reader (its answers are pydantic's, and stay so).
"""

from __future__ import annotations

import datetime
import math
import re
import sys
import zoneinfo
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pydantic import EncodedStr
from pydantic.json_schema import GenerateJsonSchema
from pydantic.types import Base64Encoder, Base64UrlEncoder

# A decimal as a string: no spaces, no underscores, no NaN.
_DECIMAL = r"^[+-]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})([eE][+-]?[0-9]{1,3})?$"
_INTEGER = "^-?(0|[1-9][0-9]{0,60})$"
_COMPLEX = r"^[+-]?[0-9]{1,60}(\.[0-9]{1,60})?([+-][0-9]{1,60}(\.[0-9]{1,60})?j)?$"
_USER = r"([A-Za-z0-9._~%!$&'()*+,;=:-]*@)?"
_PORT = "(:[1-9][0-9]{0,3})?"
_LABEL = "[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*"
_NAME = rf"({_LABEL}\.)*{_LABEL}"
_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(\.{_OCTET}){{3}}"
_LEAP = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
_DAY = (
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    rf"|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
)
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
_BASE64 = "^([{0}]{{4}})*([{0}]{{2}}==|[{0}]{{3}}=)?$"
# Addresses as `email-validator` takes them: at a dotted name of hosts that is not reserved (RFC 6761).
_WORD = "[A-Za-z0-9_+-]+"
_RESERVED = "|".join(
    "".join(f"[{letter}{letter.upper()}]" for letter in name)
    for name in ("arpa", "example", "invalid", "local", "localhost", "onion", "test")
)
_ADDRESS = (
    rf"{_WORD}(\.{_WORD})*@([A-Za-z0-9]+(-[A-Za-z0-9]+)*\.)+"
    rf"(?!({_RESERVED})([^A-Za-z0-9-]|$))[A-Za-z]{{2,63}}"
)
# What pydantic's own names of formats mean; a network of several hosts says more than a pattern can, and a
# single address is one.
_FORMATS: dict[str, dict[str, Any]] = {
    "ipvanyaddress": {"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
    "ipvanynetwork": {"anyOf": [{"pattern": f"^{_IPV4}(/32)?$"}, {"format": "ipv6"}]},
    "ipvanyinterface": {"anyOf": [{"pattern": f"^{_IPV4}(/([12]?[0-9]|3[0-2]))?$"}, {"format": "ipv6"}]},
    "ipv4network": {"pattern": f"^{_IPV4}(/32)?$"},
    "ipv6network": {"format": "ipv6"},
    "ipv4interface": {"pattern": f"^{_IPV4}(/([12]?[0-9]|3[0-2]))?$"},
    "ipv6interface": {"format": "ipv6"},
    "email": {"allOf": [{"format": "email"}, {"pattern": f"^{_ADDRESS}$"}]},
    "name-email": {
        "pattern": f"^([A-Za-z]+( [A-Za-z]+)* <{_ADDRESS}>|{_ADDRESS})$",
        "maxLength": 120,
    },
    "fraction": {"pattern": "^-?[0-9]{1,60}(/[1-9][0-9]{0,60})?$"},
    "base64": {"pattern": _BASE64.format("A-Za-z0-9+/")},
    "base64url": {"pattern": _BASE64.format("A-Za-z0-9_-")},
}
for _version in range(1, 9):
    _FORMATS[f"uuid{_version}"] = {"format": "uuid", "pattern": f"^.{{14}}{_version}.{{4}}[89abAB]"}
# Patterns of pydantic's that are not anchored, or let words through that its reader does not know.
_PATTERNS = {r"^\s*(\d*\.?\d+)\s*(\w+)?": r"^[0-9]{1,15}(\.[0-9]{1,6})? ?([KMGTPE]i?)?B$"}
_BOUNDS = ("ge", "gt", "le", "lt", "multiple_of")
# Years, months, weeks and the like of at most six digits each stay within a timedelta.
_SHORT_NUMBERS = "^(?!.*[0-9]{7})"
# pydantic takes a remainder below 1e-9 for none: up to here the rounding of doubles stays below it.
_ROUNDED = 4_000_000
_LARGEST = sys.float_info.max


_FROM_BASE64 = (Base64Encoder, Base64UrlEncoder)


def _beside(day: datetime.date, *, past: bool) -> str:
    """The dates before or after a day: as texts they are ordered as they are in time."""
    text = day.isoformat()
    ways = []
    for place, digit in enumerate(text):
        low, high = ("0", chr(ord(digit) - 1)) if past else (chr(ord(digit) + 1), "9")
        if digit != "-" and low <= high:
            ways.append(f"{text[:place]}[{low}-{high}]")
    return f"(?:{'|'.join(ways)})"


class Readable(GenerateJsonSchema):
    """pydantic's export, narrowed."""

    def date_schema(self, schema: Any) -> dict[str, Any]:
        # Python's calendar has no year 0
        pattern = "^(?!0000)"
        if schema.get("now_op") is not None:
            pattern += _beside(datetime.date.today(), past=schema["now_op"] == "past")
        return super().date_schema(schema) | {"pattern": pattern}

    def datetime_schema(self, schema: Any) -> dict[str, Any]:
        if schema.get("now_op") is not None:
            return self.handle_invalid_for_json_schema(
                schema,
                "a time before or after the moment when it is read; declare a datetime, and compare it",
            )
        # and no leap seconds
        if schema.get("tz_constraint") == "naive":  # the format asks for an offset
            return {"type": "string", "pattern": f"^(?!0000){_DAY}[Tt ]{_CLOCK}$"}
        return super().datetime_schema(schema) | {"pattern": "^(?!0000)(?!.*:60)"}

    def json_schema(self, schema: Any) -> dict[str, Any]:
        return self.handle_invalid_for_json_schema(schema, "JSON inside a string; declare the type itself")

    def function_after_schema(self, schema: Any) -> dict[str, Any]:
        encoded = getattr(schema["function"]["function"], "__self__", None)
        if isinstance(encoded, EncodedStr) and encoded.encoder in _FROM_BASE64:
            return self.handle_invalid_for_json_schema(
                schema, "base64 of text, which no schema tells from that of other bytes; declare Base64Bytes"
            )
        return super().function_after_schema(schema)

    def url_schema(self, schema: Any) -> dict[str, Any]:
        return super().url_schema(schema) | _of_schemes(schema.get("allowed_schemes"))

    def multi_host_url_schema(self, schema: Any) -> dict[str, Any]:
        return super().multi_host_url_schema(schema) | _of_schemes(schema.get("allowed_schemes"))

    def is_subclass_schema(self, schema: Any) -> dict[str, Any]:
        return self.handle_invalid_for_json_schema(schema, "a class, which no document holds")

    def complex_schema(self, schema: Any) -> dict[str, Any]:
        return super().complex_schema(schema) | {"pattern": _COMPLEX}

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
        if "multipleOf" in made:
            most = _told_apart(made["multipleOf"])
            made.setdefault("minimum", -most)
            made.setdefault("maximum", most)
        return made

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        made = super().dict_schema(schema)
        keys = schema.get("keys_schema") or {}
        pattern = {"int": _INTEGER, "float": _DECIMAL, "decimal": _DECIMAL, "bool": "^(true|false)$"}.get(
            str(keys.get("type"))
        )
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


def _told_apart(unit: float) -> float:
    """Up to where a double's remainder by a unit tells its multiples apart."""
    exact = Fraction(unit)
    if exact != Fraction(repr(unit)):  # the unit itself is rounded
        return _ROUNDED
    return 2.0**53 / exact.denominator


def _power(exponent: int) -> float | int:
    return float(f"1e{exponent}") if exponent < 0 else int(10**exponent)


def _of_schemes(schemes: list[str] | None) -> dict[str, str]:
    """URLs of these schemes with a host that every reader takes: names, or four numbers."""
    if not schemes:
        return {}
    start = rf"^({'|'.join(map(re.escape, schemes))})://"
    if "file" in schemes:  # a file's host has no user and no port
        return {"pattern": f"{start}({_NAME})?(/.*)?$"}
    return {"pattern": f"{start}{_USER}({_NAME}|{_IPV4}){_PORT}([/?#].*)?$"}


def with_meanings(schema: Any) -> Any:
    """The schema with pydantic's own formats spelled out in keywords."""
    if isinstance(schema, Mapping):
        made = {
            key: value if key in ("enum", "const", "default", "examples") else with_meanings(value)
            for key, value in schema.items()
        }
        name, pattern = made.get("format"), made.get("pattern")
        if isinstance(pattern, str) and pattern in _PATTERNS:
            made["pattern"] = _PATTERNS[pattern]
        if name == "zoneinfo":
            return {"enum": sorted(zoneinfo.available_timezones())}
        if made.get("type") == "string" and isinstance(name, str) and name in _FORMATS:
            del made["format"]
            meaning = _FORMATS[name]
            return {**made, "allOf": [meaning]} if made.keys() & meaning.keys() else made | meaning
        return made
    return [with_meanings(part) for part in schema] if isinstance(schema, list) else schema


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
