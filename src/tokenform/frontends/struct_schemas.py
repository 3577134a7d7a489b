"""The JSON Schema of msgspec's types, with what its reader makes of it.

Purpose: msgspec's export says nothing of a datetime without a zone, of the names of mappings, and less than
its reader asks for elsewhere.
Invariant: what the meanings accept is read; whatever msgspec writes and reads, they accept.
How: the export and the types (`msgspec.inspect`) are walked side by side.
Source: msgspec's documentation, "Supported Types" and "JSON Schema".
"""

from __future__ import annotations

import json
from typing import Any, Literal

from tokenform.errors import InvalidType
from tokenform.frontends.json_names import INTEGER
from tokenform.frontends.meanings import MEANING, whole_match
from tokenform.frontends.number_patterns import base64_texts
from tokenform.frontends.pattern_dialects import in_python
from tokenform.frontends.text_ranges import signed_integers
from tokenform.frontends.time_patterns import dates, plain_durations, written_moments

_DECIMAL = r"[+-]?[0-9]{1,60}(?:\.[0-9]{1,60})?(?:[eE][+-]?[0-9]{1,3})?"
_PLAIN = r"-?(?:0|[1-9][0-9]{0,59})(?:\.[0-9]{1,60})?"
_FLOAT = (
    rf"{_PLAIN}(?:[eE][+-]?[0-9]{{1,2}})?"
    r"|-?[1-9](?:\.[0-9]{1,60})?[eE](?:[+-]?(?:[12][0-9]{2}|30[0-7])|-3[0-9]{2})"
    r"|-?1(?:\.[0-7][0-9]{0,16})?[eE]\+?308"
)
_ARRAYS = ("ListType", "SetType", "FrozenSetType", "VarTupleType", "CollectionType")


def read_schema(tp: Any) -> dict[str, Any]:
    """The schema of a type's documents, with meanings (`meanings.meant`)."""
    import msgspec

    made: dict[str, Any] = in_python(msgspec.json.schema(tp))
    _Walk(made).narrow(made, msgspec.inspect.type_info(tp))
    return made


class _Walk:
    """One pass over a schema; each definition is visited once."""

    def __init__(self, whole: dict[str, Any]) -> None:
        self._definitions = whole.get("$defs", {})
        self._seen: set[str] = set()

    def narrow(self, schema: Any, info: Any) -> None:
        """Writes meanings into the schema of a type."""
        kind = type(info).__name__
        if not isinstance(schema, dict):
            return
        if kind == "Metadata":
            self.narrow(schema, info.type)
        elif "$ref" in schema or ("anyOf" in schema and kind != "UnionType"):
            for part in [schema, *schema.get("anyOf", [])]:
                self._follow(part, info)
        elif kind == "UnionType":
            self._union(schema, info)
        elif kind in ("SetType", "FrozenSetType") and type(info.item_type).__name__ == "AnyType":
            schema["items"] = {"type": ["null", "boolean", "number", "string"]}  # lists have no hash
        elif kind in _ARRAYS:
            if "Set" in kind and not _hashed(info.item_type):
                name = getattr(getattr(info.item_type, "cls", None), "__name__", "these values")
                raise InvalidType(
                    f"msgspec makes no set of {name}, which need a hash (frozen=True); use a list"
                )
            self.narrow(schema.get("items"), info.item_type)
        elif kind == "TupleType":
            for part, inner in zip(schema.get("prefixItems", []), info.item_types):
                self.narrow(part, inner)
        elif kind == "DictType":
            self.narrow(schema.get("additionalProperties"), info.value_type)
            names = _names(info.key_type)
            if names:
                schema["propertyNames"] = names
        elif hasattr(info, "fields"):
            self._fields(schema, info)
        elif (text := _text(info)) is not None:
            own = {name: schema[name] for name in _OWN if name in schema}
            schema[MEANING] = {"instead": own, "is": whole_match(text)}

    def _follow(self, schema: Any, info: Any) -> None:
        name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
        if name in self._definitions and name not in self._seen:
            self._seen.add(name)
            self.narrow(self._definitions[name], info)

    def _fields(self, schema: Any, info: Any) -> None:
        places = schema.get("prefixItems")
        for number, field in enumerate(info.fields):
            if places is not None:
                shift = len(places) - len(info.fields)  # a tag stands before them
                self.narrow(places[number + shift], field.type)
            else:
                name = getattr(field, "encode_name", None) or field.name
                self.narrow(schema.get("properties", {}).get(name), field.type)

    def _union(self, schema: Any, info: Any) -> None:
        """A union has at most one type for each of JSON's, but for Structs, which have names."""
        kinds = [inner.type if type(inner).__name__ == "Metadata" else inner for inner in info.types]
        named = {_definition(inner.cls): inner for inner in kinds if hasattr(inner, "cls")}
        for part in [schema, *schema.get("anyOf", []), *schema.get("oneOf", [])]:
            name = str(part.get("$ref", "")).removeprefix("#/$defs/")
            if name:
                found = named.get(name) or named.get(name.rsplit(".", 1)[-1])
                if found is not None:
                    self._follow(part, found)
                continue
            if part is not schema and "anyOf" in part:  # the Structs, beside other types
                self._union(part, info)
                continue
            for inner in kinds:
                if _json_kind(inner) == part.get("type") and "enum" not in part:
                    self.narrow(part, inner)


def _definition(cls: Any) -> str:
    """The name under which msgspec exports a class: `Box[int]` is `Box_int_`."""
    import msgspec

    return str(msgspec.json.schema(cls).get("$ref", "")).removeprefix("#/$defs/")


def _hashed(info: Any, around: tuple[Any, ...] = ()) -> bool:
    """Whether all values of a type have a hash, so that they may be in a set.

    around: the classes that it stands in.
    """
    kind, cls = type(info).__name__, getattr(info, "cls", None)
    inside: list[Any] = []
    if kind == "Metadata":
        inside = [info.type]
    elif kind == "UnionType":
        inside = list(info.types)
    elif kind in ("TupleType", "VarTupleType"):
        inside = list(info.item_types) if kind == "TupleType" else [info.item_type]
    elif hasattr(info, "fields") and cls not in around:
        inside, around = [one.type for one in info.fields], (*around, cls)
        if not _hashes_fields(cls):
            return False
    elif kind in ("ListType", "SetType", "CollectionType", "DictType", "ByteArrayType", "AnyType"):
        return False
    return all(_hashed(one, around) for one in inside)


def _hashes_fields(cls: Any) -> bool:
    import msgspec

    if getattr(cls, "__hash__", None) is msgspec.Struct.__hash__:
        return bool(cls.__struct_config__.frozen) or not cls.__struct_config__.eq
    return getattr(cls, "__hash__", None) is not None and not issubclass(cls, dict)


_OWN = ("type", "format", "contentEncoding", "minLength", "maxLength")


def _json_kind(info: Any) -> str:
    kind = type(info).__name__
    if kind == "DictType" or hasattr(info, "fields"):
        return "object"
    return "array" if kind in (*_ARRAYS, "TupleType") else "string" if _text(info) is not None else ""


def _text(info: Any) -> str | None:
    """The texts of a type whose values are strings of their own form."""
    kind = type(info).__name__
    if kind in ("DateTimeType", "TimeType"):
        zone = "any" if info.tz is None else "aware" if info.tz else "naive"
        return written_moments(zone, day=kind == "DateTimeType")
    if kind in ("BytesType", "ByteArrayType", "MemoryViewType"):
        return base64_texts("+/", info.min_length or 0, info.max_length)
    fixed = {"DateType": dates(None, None), "TimeDeltaType": plain_durations(), "DecimalType": _DECIMAL}
    return fixed.get(kind)


def _names(info: Any) -> dict[str, Any]:
    """The names that keys are read from."""
    kind = type(info).__name__
    if kind == "Metadata":
        return _names(info.type)
    if kind == "StrType":
        limits = {"minLength": info.min_length, "maxLength": info.max_length, "pattern": info.pattern}
        return {name: value for name, value in limits.items() if value is not None}
    if kind == "IntType":
        low = info.ge if info.gt is None else info.gt + 1
        high = info.le if info.lt is None else info.lt - 1
        return whole_match(INTEGER if low is None and high is None else signed_integers(low, high))
    if kind == "FloatType":
        return whole_match(_FLOAT)
    if kind == "DecimalType":
        return whole_match(_PLAIN + "(?:[eE][+-]?[0-9]{1,3})?")
    if kind == "UUIDType":
        return {"format": "uuid"}
    if kind in ("BoolType", "NoneType"):
        raise InvalidType("msgspec reads no such key from a JSON object's names; use a list of pairs")
    if kind in ("LiteralType", "EnumType"):
        return {"enum": _members(info)}
    if kind == "UnionType":
        parts = [_names(inner) for inner in info.types if type(inner).__name__ != "NoneType"]
        return {} if {} in parts else {"anyOf": parts}
    text = _text(info)
    return {} if text is None else whole_match(text)


def _members(info: Any) -> list[str]:
    import msgspec

    own: Any = info.cls if hasattr(info, "cls") else Literal[tuple(info.values)]
    values = [one.value for one in info.cls] if hasattr(info, "cls") else info.values
    found = []
    for value in values:
        text = value if isinstance(value, str) else json.dumps(value)
        try:
            msgspec.json.decode(json.dumps({text: None}), type=dict[own, Any])
        except msgspec.ValidationError:
            continue
        found.append(text)
    return found
