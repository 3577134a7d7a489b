"""From the JSON Schema that pydantic exports to the one that its reader keeps, and to the one for people.

Purpose: pydantic's export says less than its reader asks for, or more: `Readable` writes beside its words
what they mean (`MEANING`), so that masks hold what is read, and a prompt shows what the author wrote.
Invariant: `reading_schema` and `prompt_schema` differ in places with a meaning alone; neither has one left.
Rejected: one schema for both (a model would be shown a pattern of kilobytes for "a network").
"""

from __future__ import annotations

import math
import sys
import zoneinfo
from collections.abc import Mapping
from typing import Any

from tokenform.frontends.network_patterns import (
    IPV4,
    IPV4_PREFIX,
    IPV6_PREFIX,
    ipv4_networks,
    ipv6_addresses,
    ipv6_networks,
)
from tokenform.frontends.schema_parts import VALUES, changed

MEANING = "tokenform-meaning"
"""Key of a subschema: {"instead": keywords, "is": those that stand in their place}; others stay."""
_LARGEST = sys.float_info.max


def whole_match(body: str) -> dict[str, str]:
    """Strings that are matched as a whole."""
    return {"type": "string", "pattern": f"^(?:{body})$"}


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
_BASE64 = "^([{0}]{{4}})*([{0}]{{2}}==|[{0}]{{3}}=)?$"
_V4, _V6 = f"{IPV4}{IPV4_PREFIX}", f"{ipv6_addresses()}{IPV6_PREFIX}"
# What pydantic's own names of formats mean.
_FORMATS: dict[str, dict[str, Any]] = {
    "ipvanyaddress": {"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
    "ipvanynetwork": whole_match(f"{ipv4_networks()}|{ipv6_networks()}"),
    "ipvanyinterface": whole_match(f"{_V4}|{_V6}"),
    "ipv4network": whole_match(ipv4_networks()),
    "ipv6network": whole_match(ipv6_networks()),
    "ipv4interface": whole_match(_V4),
    "ipv6interface": whole_match(_V6),
    "email": {"allOf": [{"format": "email"}, {"pattern": f"^{_ADDRESS}$"}]},
    "name-email": {
        "pattern": f"^([A-Za-z]+( [A-Za-z]+)* <{_ADDRESS}>|{_ADDRESS})$",
        "maxLength": 120,
    },
    "fraction": {"pattern": "^-?[0-9]{1,60}(/[1-9][0-9]{0,60})?$"},
    "base64": {"pattern": _BASE64.format("A-Za-z0-9+/")},
    "base64url": {"pattern": _BASE64.format("A-Za-z0-9_-")},
    "regex": {},  # those of Python's `re`, which compiles it when it is read
    "path": {"pattern": r"^[^\u0000]*$"},
}
for _name in ("file-path", "directory-path"):
    _FORMATS[_name] = _FORMATS["path"]
for _name in ("binary", "password"):
    _FORMATS[_name] = {}
for _version in range(1, 9):
    _FORMATS[f"uuid{_version}"] = {"format": "uuid", "pattern": f"^.{{14}}{_version}.{{4}}[89abAB]"}
# Patterns of pydantic's that are not anchored, or let words through that its reader does not know.
_PATTERNS = {r"^\s*(\d*\.?\d+)\s*(\w+)?": r"^[0-9]{1,15}(\.[0-9]{1,6})? ?([KMGTPE]i?)?B$"}


def reading_schema(schema: Any) -> Any:
    """The schema of what is read: meanings in their places, pydantic's own formats spelled out."""
    if isinstance(schema, list):
        return [reading_schema(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    if MEANING in schema:
        meaning = schema[MEANING]
        instead = {MEANING: meaning, **meaning["instead"]}
        left = {
            name: value for name, value in schema.items() if name not in instead or value != instead[name]
        }
        return _with_keywords(reading_schema(left), reading_schema(meaning["is"]))
    made = {key: value if key in VALUES else reading_schema(value) for key, value in schema.items()}
    name, pattern = made.get("format"), made.get("pattern")
    if isinstance(pattern, str) and pattern in _PATTERNS:
        made["pattern"] = _PATTERNS[pattern]
    if name == "zoneinfo":
        return {"enum": sorted(zoneinfo.available_timezones())}
    if made.get("type", "string") == "string" and isinstance(name, str) and name in _FORMATS:
        del made["format"]
        return _with_keywords(made, _FORMATS[name])
    return made


def _with_keywords(schema: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with more keywords; those that it has already stand beside them."""
    clash = {name for name in schema.keys() & more.keys() if schema[name] != more[name]}
    return {**schema, "allOf": [*schema.get("allOf", []), dict(more)]} if clash else {**schema, **more}


def prompt_schema(schema: Any) -> Any:
    """The schema for people and prompts: as pydantic exports it."""
    return changed(schema, lambda part: {key: value for key, value in part.items() if key != MEANING})


def within_floats(schema: Any) -> Any:
    """The schema with the range of a float as the bounds of every number: for spellings that go beyond it."""

    def bounded(part: dict[str, Any]) -> dict[str, Any]:
        if part.get("type") != "number":
            return part
        made = {"minimum": -_LARGEST, "maximum": _LARGEST} | part
        if made.get("exclusiveMinimum") == 0:
            made["minimum"] = max(made["minimum"], math.ulp(0.0))
        if made.get("exclusiveMaximum") == 0:
            made["maximum"] = min(made["maximum"], -math.ulp(0.0))
        return made

    return changed(schema, bounded)
