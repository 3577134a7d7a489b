"""What pydantic's readers ask for, kind by kind: in the masks, or of the finished value.

Purpose: one place that says which rules of a node no mask holds, so that a text which breaks them is drawn
again as one that a validator of the caller's refuses.
Invariant: a node that `judged` does not name is read whenever its meaning (`readable`) accepts the text.

| what the exported schema leaves out | how it is kept |
|---|---|
| datetimes and times without a zone; zones that must be there, or must not | masks |
| bounds of dates, times, durations and decimals as strings | masks; offsets against UTC bounds are judged |
| networks whose last bits are zero, versions of UUIDs | masks |
| names of a mapping that its keys' type reads; a union's tag although it has a default | masks |
| members of an Enum or Literal that no JSON is read as | left out; refused where none remains |
| spaces around a string that will be stripped | not written |
| bytes counted in UTF-8; multiples of a Decimal in a string | judged |
| hosts of URLs, past and future moments, the tag that a function finds | judged |
| sizes of sets and mappings once equal members are one | judged |
| a hash of a set's members | masks; refused where none has one; judged where only some have |
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from typing import Any

import pydantic_core

CODE = ("function-after", "function-before", "function-wrap", "function-plain")
BOUNDS = ("ge", "gt", "le", "lt", "multiple_of")
MAPPINGS = ("dict", "counter", "ordered-dict", "frozendict")
_MOST_FLAGS = 12
# Kinds whose equal values have one text each.
_ONE_TEXT = ("str", "int", "bool", "enum", "literal", "none")
_HASHED = (
    "str", "int", "float", "bool", "none", "decimal", "date", "time", "datetime", "timedelta", "bytes",
    "enum", "literal", "uuid", "url", "multi-host-url", "complex", "fraction", "frozenset",
)  # fmt: skip
_SPACE = r"\t\n\u000b\u000c\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


def judged(node: Mapping[str, Any]) -> bool:
    """Whether rules of this node itself, not of one inside, are kept by asking its reader."""
    kind = node.get("type")
    if kind in CODE or node.get("post_init") or node.get("custom_init"):
        return True
    if kind in ("date", "datetime", "time"):
        wanted = node.get("tz_constraint")
        return node.get("now_op") is not None or isinstance(wanted, int) or _with_zone(node)
    if kind == "decimal":
        return node.get("multiple_of") is not None
    if kind == "bytes":
        return bool(node.get("min_length")) or node.get("max_length") is not None
    if kind in ("set", "frozenset"):
        items = node.get("items_schema") or {"type": "any"}
        several = bool(node.get("min_length")) and items["type"] not in _ONE_TEXT
        return several or (items["type"] != "any" and not hashed(items))
    if kind in MAPPINGS:
        keys = node.get("keys_schema") or {}
        several = bool(node.get("min_length")) and keys.get("type") not in _ONE_TEXT
        return several or keys.get("multiple_of") is not None
    if kind == "tagged-union":
        return not isinstance(node["discriminator"], str | list)
    if kind == "tuple":
        place = node.get("variadic_item_index")
        return place is not None and place + 1 < len(node["items_schema"])
    return kind in ("url", "multi-host-url")


def hashed(node: Mapping[str, Any], known: Mapping[str, Any] | None = None) -> bool | None:
    """Whether all values of a node have a hash, as members of a set need it, or none; None if it depends.

    known: definitions by name.
    """
    kind = node["type"]
    if kind in _HASHED:
        return True
    if kind in ("list", "deque", "dict", "counter", "ordered-dict", "set", "typed-dict", "generator"):
        return False
    if kind == "definition-ref":  # of a type that holds itself: without looking further
        found = (known or {}).get(node["schema_ref"])
        return None if found is None else hashed(found)
    if kind in ("default", "nullable", "custom-error"):
        inner = hashed(node["schema"], known)
        return None if kind == "nullable" and not inner else inner
    if kind == "union":
        each = {hashed(one[0] if isinstance(one, tuple) else one, known) for one in node["choices"]}
        return each.pop() if len(each) == 1 else None
    if kind in ("tuple", "named-tuple"):
        parts = [one["schema"] for one in node["fields"]] if "fields" in node else node["items_schema"]
        each = {hashed(one, known) for one in parts}
        fixed = node.get("variadic_item_index") is None
        return True if each <= {True} else False if fixed and False in each else None
    if kind in ("model", "dataclass"):
        return False if node["cls"].__hash__ is None else hashed(node["schema"], known)
    if kind in ("model-fields", "dataclass-args"):
        fields = node["fields"].values() if isinstance(node["fields"], Mapping) else node["fields"]
        return all(hashed(one["schema"], known) for one in fields) or None
    return None


def _with_zone(node: Mapping[str, Any]) -> bool:
    return node["type"] != "date" and any(
        getattr(node.get(name), "tzinfo", None) is not None for name in BOUNDS
    )


def same_day(node: Mapping[str, Any], tick: datetime.timedelta) -> tuple[Any, Any]:
    """The bounds of dates, times or durations, both included; `tick` is the smallest step."""

    def moved(bound: Any, step: datetime.timedelta) -> Any:
        if isinstance(bound, datetime.time):
            day = datetime.datetime.combine(datetime.date(2000, 1, 1), bound) + step
            return day.timetz() if day.date() == datetime.date(2000, 1, 1) else None
        try:
            return bound + step
        except OverflowError:
            return None

    low, high = node.get("ge"), node.get("le")
    above, below = node.get("gt"), node.get("lt")
    if above is not None:
        above = moved(above, tick)
        if above is None:
            return _nothing(node["gt"])
        low = above if low is None or above > low else low
    if below is not None:
        below = moved(below, -tick)
        if below is None:
            return _nothing(node["lt"])
        high = below if high is None or below < high else high
    return low, high


def _nothing(bound: Any) -> tuple[Any, Any]:
    """Bounds that nothing of this kind is between."""
    kind: Any = type(bound)
    zone = {"tzinfo": bound.tzinfo} if getattr(bound, "tzinfo", None) is not None else {}
    return kind.max.replace(**zone) if zone else kind.max, kind.min.replace(**zone) if zone else kind.min


def flags(cls: Any) -> dict[str, Any]:
    """The numbers that an `enum.Flag` is read from: its flags and their sums."""
    every = 0
    for one in cls.__members__.values():
        every |= one.value
    if every & (every + 1) == 0:
        return {"type": "integer", "minimum": 0, "maximum": every}
    bits = [1 << place for place in range(every.bit_length()) if every >> place & 1]
    sums = [0]
    for bit in bits[:_MOST_FLAGS]:
        sums += [one + bit for one in sums]
    return {"enum": sums + bits[_MOST_FLAGS:]}


def members_read(node: Any, members: Iterable[Any]) -> list[tuple[Any, Any]]:
    """The members of an Enum or Literal that a document can be, each with its value in JSON."""
    reader = pydantic_core.SchemaValidator({key: value for key, value in node.items() if key != "ref"})
    found = []
    for member in members:
        try:
            value = pydantic_core.to_jsonable_python(getattr(member, "value", member))
            read = reader.validate_json(json.dumps(value))
        except (pydantic_core.ValidationError, pydantic_core.PydanticSerializationError, ValueError):
            continue
        if read == member or read is member:
            found.append((member, value))
    return found


def spaces() -> str:
    """Texts without a space at either end."""
    return f"^(?:[^{_SPACE}](?:[\\s\\S]*[^{_SPACE}])?)?$"
