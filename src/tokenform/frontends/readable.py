"""The JSON Schema of a Python type, with what pydantic's reader makes of it.

Purpose: pydantic's own export accepts strings and numbers that its reader refuses (`"abc"` as a Decimal,
any key of a `dict[int, …]`, a date outside of its bounds), or refuses what it reads (a `datetime` without a
zone).
Invariant: what the meaning of a place accepts (`meanings.meant`) is read without an error, but for the
kinds that `type_rules.judged` names, which are asked as validators are; whatever pydantic writes and reads,
it accepts.
Rejected: patching the reader (its answers are pydantic's, and stay so).
"""

from __future__ import annotations

import datetime
import enum
import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import SchemaValidator, ValidationError

from tokenform.frontends.json_names import names_read
from tokenform.frontends.meanings import MEANING, whole_match
from tokenform.frontends.network_patterns import url_lists, urls
from tokenform.frontends.number_patterns import base64_texts, decimals, hex_texts
from tokenform.frontends.pattern_dialects import WithDialects
from tokenform.frontends.text_ranges import NEVER
from tokenform.frontends.time_patterns import dates, datetimes, durations, times
from tokenform.frontends.type_rules import BOUNDS, CODE, flags, hashed, members_read, same_day, spaces
from tokenform.frontends.value_shapes import nodes

# A double has at most 17 digits; `1+2j` as Python writes it.
_FLOAT = r"[0-9]{1,309}(?:\.[0-9]{1,340})?(?:[eE][+-]?[0-9]{1,2})?"
_COMPLEX = rf"[+-]?{_FLOAT}|(?:[+-]?{_FLOAT}[+-])?{_FLOAT}j|-?{_FLOAT}j"
# pydantic takes a remainder below 1e-9 for none: up to here the rounding of doubles stays below it.
_ROUNDED = 4_000_000
_DAY = datetime.timedelta(days=1)


class Readable(WithDialects):
    """pydantic's export, with meanings."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.ignored_warning_kinds = {"skipped-choice", "non-serializable-default", "skipped-discriminator"}
        self._around: list[Any] = []
        self.nodes: dict[str, Any] = {}

    # ---- dates and times -------------------------------------------------------------------------

    def date_schema(self, schema: Any) -> dict[str, Any]:
        low, high = same_day(schema, _DAY)
        today = datetime.date.today()
        if schema.get("now_op") == "past":
            high = min(high or datetime.date.max, today - _DAY)
        elif schema.get("now_op") == "future":
            low = max(low or datetime.date.min, today + _DAY)
        return _with(super().date_schema(schema), whole_match(dates(low, high)))

    def datetime_schema(self, schema: Any) -> dict[str, Any]:
        low, high = same_day(schema, datetime.timedelta(microseconds=1))
        now = datetime.datetime.now()  # a validator asks for the moment; the mask for the day
        if schema.get("now_op") == "past" and high is None:
            high = now.replace(hour=23, minute=59, second=59, microsecond=999_999) + 2 * _DAY
        elif schema.get("now_op") == "future" and low is None:
            low = now.replace(hour=0, minute=0, second=0, microsecond=0) - 2 * _DAY
        made = super().datetime_schema(schema)
        return _with(made, whole_match(datetimes(low, high, _zone(schema))))

    def time_schema(self, schema: Any) -> dict[str, Any]:
        low, high = same_day(schema, datetime.timedelta(microseconds=1))
        return _with(super().time_schema(schema), whole_match(times(low, high, _zone(schema))))

    def timedelta_schema(self, schema: Any) -> dict[str, Any]:
        made = super().timedelta_schema(schema)
        if made.get("type") != "string":
            return made
        low, high = same_day(schema, datetime.timedelta(microseconds=1))
        return _with(made, whole_match(durations(low, high)))

    # ---- numbers ---------------------------------------------------------------------------------

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        made = super().decimal_schema(schema)
        number = next((dict(part) for part in made.get("anyOf", []) if part.get("type") == "number"), None)
        if number is None:
            return made
        digits, places = schema.get("max_digits"), schema.get("decimal_places")
        if digits is not None or places is not None:
            number = {"allOf": [number, {"anyOf": _decimals(digits, places)}]}
        others = [part for part in made["anyOf"] if part.get("type") not in ("number", "string")]
        text = whole_match(decimals(schema))
        return _with(made, {"anyOf": [number, *([] if NEVER in text["pattern"] else [text]), *others]})

    def float_schema(self, schema: Any) -> dict[str, Any]:
        made = super().float_schema(schema)
        meaning = dict(made)
        # a number that is a little more than the bound may be the bound itself once it is a float
        for key, target, toward in (
            ("exclusiveMinimum", "minimum", math.inf),
            ("exclusiveMaximum", "maximum", -math.inf),
        ):
            bound = meaning.get(key)
            if isinstance(bound, int | float) and bound != 0 and math.isfinite(bound):
                del meaning[key]
                meaning[target] = math.nextafter(float(bound), toward)
        if "multipleOf" in meaning:
            most = _largest_distinguishable(meaning["multipleOf"])
            meaning.setdefault("minimum", -most)
            meaning.setdefault("maximum", most)
        infinite = getattr(self._config, "ser_json_inf_nan", None) == "strings"
        if infinite and schema.get("allow_inf_nan") is not False and not _bounded(schema):
            return _with(made, {"anyOf": [meaning, {"enum": ["NaN", "Infinity", "-Infinity"]}]})
        return made if meaning == made else _with(made, meaning)

    def complex_schema(self, schema: Any) -> dict[str, Any]:
        return _with(super().complex_schema(schema), whole_match(_COMPLEX))

    # ---- strings ---------------------------------------------------------------------------------

    def str_schema(self, schema: Any) -> dict[str, Any]:
        made = super().str_schema(schema)
        if schema.get("strip_whitespace", getattr(self._config, "str_strip_whitespace", False)):
            # lengths and patterns are those of what is left
            return _with(made, {**made, "allOf": [{"pattern": spaces()}]})
        return made

    def bytes_schema(self, schema: Any) -> dict[str, Any]:
        made = super().bytes_schema(schema)
        least, most = schema.get("min_length") or 0, schema.get("max_length")
        form = getattr(self._config, "val_json_bytes", None)
        if form == "base64":
            return _with(made, whole_match(base64_texts("_-", least, most)))
        if form == "hex":
            return _with(made, whole_match(hex_texts(least, most)))
        lengths = {"minLength": -(-least // 4)} | ({} if most is None else {"maxLength": most})
        return _with(made, {"type": "string", **lengths})

    def url_schema(self, schema: Any) -> dict[str, Any]:
        made = super().url_schema(schema)
        return _with(made, _lengths(made) | whole_match(urls(schema.get("allowed_schemes"))))

    def multi_host_url_schema(self, schema: Any) -> dict[str, Any]:
        made = super().multi_host_url_schema(schema)
        return _with(made, _lengths(made) | whole_match(url_lists(schema.get("allowed_schemes"))))

    def literal_schema(self, schema: Any) -> dict[str, Any]:
        return self._members(schema, schema["expected"], super().literal_schema)

    def enum_schema(self, schema: Any) -> dict[str, Any]:
        made = self._members(schema, schema["members"], super().enum_schema)
        return _with(made, flags(schema["cls"])) if issubclass(schema["cls"], enum.Flag) else made

    def _members(self, schema: Any, given: Any, export: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """What a document can say of these values."""
        read = members_read(schema, given)
        if not read:
            raise PydanticInvalidForJsonSchema(
                f"pydantic reads {', '.join(map(repr, given))} from no JSON; use the Enum itself, or values "
                "that JSON has"
            )
        made = export(schema)
        texts = [text for _, text in read]
        return made if made.get("enum", [made.get("const")]) == texts else made | {"enum": texts}

    # ---- containers ------------------------------------------------------------------------------

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        return self._named(super().dict_schema(schema), schema)

    def counter_schema(self, schema: Any) -> dict[str, Any]:
        return self._named(super().counter_schema(schema), schema)

    def ordered_dict_schema(self, schema: Any) -> dict[str, Any]:
        return self._named(super().ordered_dict_schema(schema), schema)

    def frozendict_schema(self, schema: Any) -> dict[str, Any]:
        return self._named(super().frozendict_schema(schema), schema)

    def _named(self, made: dict[str, Any], schema: Any) -> dict[str, Any]:
        """A mapping whose keys are what the type of its keys reads from a name."""
        for values in made.pop("patternProperties", {}).values():
            made["additionalProperties"] = values
        made.pop("propertyNames", None)
        if "keys_schema" in schema:
            names = names_read(self, schema["keys_schema"])
            if names is None:
                raise PydanticInvalidForJsonSchema(
                    "the names of a JSON object are strings, and pydantic reads no key of this mapping from "
                    "one; use a list of pairs, or of objects"
                )
            if names:
                made["propertyNames"] = names
        return made

    def set_schema(self, schema: Any) -> dict[str, Any]:
        return self._hashing(super().set_schema, schema)

    def frozenset_schema(self, schema: Any) -> dict[str, Any]:
        return self._hashing(super().frozenset_schema, schema)

    def _hashing(self, export: Callable[[Any], dict[str, Any]], schema: Any) -> dict[str, Any]:
        """A set, whose members have a hash."""
        items = schema.get("items_schema") or {"type": "any"}
        if hashed(items, self.nodes) is False:
            raise PydanticInvalidForJsonSchema(
                "pydantic makes no set of values that have no hash; use a list, or a frozen class"
            )
        made = export(schema)
        plain = {"type": ["null", "boolean", "number", "string"]}
        return made | {"items": _with(made["items"], plain)} if items["type"] == "any" else made

    def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
        made = super().tagged_union_schema(schema)
        self._some(made["oneOf"], schema["choices"].values())
        tag = (made.get("discriminator") or {}).get("propertyName")
        if isinstance(tag, str):  # it is looked for before any default is
            made["oneOf"] = [_requiring(part, tag) for part in made["oneOf"]]
        return made

    def union_schema(self, schema: Any) -> dict[str, Any]:
        made = super().union_schema(schema)
        self._some(
            made.get("anyOf", [made]),
            (one[0] if isinstance(one, tuple) else one for one in schema["choices"]),
        )
        return made

    def _some(self, made: list[Any], choices: Iterable[Any]) -> None:
        """Raises what a member says, if no member of a union can be read."""
        for choice in () if made else choices:
            self.generate_inner(choice)

    def tuple_schema(self, schema: Any) -> dict[str, Any]:
        made = super().tuple_schema(schema)
        place = schema.get("variadic_item_index")
        if place is not None and place + 1 < len(schema["items_schema"]):
            made["minItems"] = max(made.get("minItems", 0), len(schema["items_schema"]) - 1)
            made["items"] = {"anyOf": [self.generate_inner(one) for one in schema["items_schema"][place:]]}
        return made

    def is_subclass_schema(self, schema: Any) -> dict[str, Any]:
        return self.handle_invalid_for_json_schema(schema, "a class, which no document holds")

    # ---- places ----------------------------------------------------------------------------------

    def definitions_schema(self, schema: Any) -> dict[str, Any]:
        self.nodes.update((one["ref"], one) for one in schema["definitions"])
        return super().definitions_schema(schema)

    def generate_inner(self, schema: Any) -> dict[str, Any]:
        self._around.append(schema)
        try:
            self._check_alias(schema)
            return super().generate_inner(schema)
        except PydanticInvalidForJsonSchema as error:
            if not hasattr(error, "place"):
                error.place = self._place()  # type: ignore[attr-defined]
            raise
        finally:
            self._around.pop()

    def field_is_required(self, field: Any, total: bool) -> bool:
        """A field whose default its reader refuses (`validate_default`) has to be there."""
        return super().field_is_required(field, total) or self._refuses_default(field["schema"])

    def _refuses_default(self, schema: Any) -> bool:
        asked = schema.get("validate_default", self._said("validate_default"))
        if schema["type"] != "default" or not asked:
            return False
        inner, make = schema["schema"], schema.get("default_factory")
        if make not in (None, list, dict, set, tuple, str):
            return False  # the caller's own, which only the reader calls
        if any(one["type"] in (*CODE, "definition-ref") for one in nodes([inner])):
            return False  # what it says may depend on other fields
        default = schema["default"] if make is None else make()
        try:
            SchemaValidator(inner, self._config.core_config(None)).validate_python(default)
        except ValidationError:
            return True
        return False

    def _get_alias_name(self, field: Any, name: str) -> str:
        """The name in a document: the field's own where the model says that its aliases aren't read."""
        return name if self._said("validate_by_alias") is False else super()._get_alias_name(field, name)

    def _said(self, option: str) -> Any:
        """An option of the model around; None where it says nothing, or pydantic doesn't know the option."""
        return getattr(self._config, option, None)

    def _check_alias(self, schema: Any) -> None:
        alias = schema.get("validation_alias") if str(schema.get("type")).endswith("field") else None
        if not isinstance(alias, list) or self._said("validate_by_alias") is False:
            return
        if self._said("validate_by_name") or self._said("populate_by_name"):
            return
        paths = [alias] if isinstance(alias[0], str) else alias
        if all(len(path) > 1 for path in paths):
            raise PydanticInvalidForJsonSchema(
                "it is read at a path (AliasPath), which is no property; give it a plain alias too "
                "(AliasChoices)"
            )

    def _place(self) -> str:
        """Which field the innermost node stands in, as far as it is known."""
        for outer, inner in zip(reversed(self._around[:-1]), reversed(self._around)):
            fields: Any = outer.get("fields")
            listed = (
                fields.items() if isinstance(fields, Mapping) else ((f.get("name"), f) for f in fields or ())
            )
            for name, field in listed:
                if field is inner:
                    owner = outer.get("model_name") or outer.get("dataclass_name") or ""
                    return f"the field {name!r}{f' of {owner}' if owner else ''}"
        return ""


def _with(made: dict[str, Any], meaning: dict[str, Any]) -> dict[str, Any]:
    """An export that means something else to the reader."""
    return {**made, MEANING: {"instead": made, "is": meaning}}


def _bounded(schema: Any) -> bool:
    return any(schema.get(name) is not None for name in BOUNDS)


def _zone(schema: Any) -> str:
    constraint = schema.get("tz_constraint")
    return constraint if constraint in ("naive", "aware") else "any" if constraint is None else "aware"


def _lengths(made: Mapping[str, Any]) -> dict[str, Any]:
    return {name: made[name] for name in ("minLength", "maxLength") if name in made}


def _requiring(schema: dict[str, Any], name: str) -> dict[str, Any]:
    required = schema.get("required", [])
    return schema if name in required else {**schema, "required": [*required, name]}


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


def _largest_distinguishable(unit: float) -> float:
    """Up to where a double's remainder by a unit tells its multiples apart."""
    exact = Fraction(unit)
    if exact != Fraction(repr(unit)):  # the unit itself is rounded
        return _ROUNDED
    return 2.0**53 / exact.denominator


def _power(exponent: int) -> float | int:
    return float(f"1e{exponent}") if exponent < 0 else int(10**exponent)
