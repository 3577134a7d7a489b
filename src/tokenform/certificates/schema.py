"""A subset of JSON Schema as rules: documents written without spaces, keys in their order, strings with the
escapes that JSON demands, integers as digits.

Read: `type`, `properties`, `required`, `additionalProperties: false`, `items` with `minItems` and `maxItems`,
`enum` and `const` of texts, integers, true, false and null, `anyOf`, local `$ref`, `minLength`, `maxLength`,
`pattern`, and what says nothing (`title`, `$defs`, ...).  Anything else is no mistake, but `CannotCheck`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .characters import ANY, in_json, json_string, utf8
from .grammar import Symbol
from .patterns import Pattern
from .terms import CannotCheck, Terms

OPTIONS = {"order": "declared", "whitespace": "compact", "numbers": "natural", "strings": "canonical"}
_SILENT = {"title", "description", "default", "examples", "$comment", "$defs", "definitions", "$schema"}
_SCALARS = {"integer": "-?(?:0|[1-9][0-9]{0,79})", "boolean": "true|false", "null": "null"}
_OF_TYPE: dict[str, Iterable[str]] = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"minLength", "maxLength", "pattern"},
    **dict.fromkeys(_SCALARS, ()),
}
_DIALECTS = ("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#")
MOST_ITEMS = 64


class SchemaText:
    """Reads a schema into `rules`, which begin at `start`."""

    def __init__(self, terms: Terms, text: str) -> None:
        self.terms, self.rules = terms, dict[str, list[list[Symbol]]]()
        self.root = json.loads(text, object_pairs_hook=_distinct)
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []
        self.start = self._rule(self.root)

    def _text(self, text: str) -> int:
        return self.terms.text(text.encode())

    def _new(self, rows: list[list[Symbol]]) -> str:
        name = str(len(self.rules))
        self.rules[name] = rows
        return name

    def _rule(self, schema: Any) -> str:
        """The rule of a subschema, which may be in the making."""
        known = self._names.get(id(schema))
        if known is None:
            if not isinstance(schema, dict):
                raise CannotCheck("a schema that is no object")
            known = self._names[id(schema)] = self._new([])
            self.rules[known] = self._rows(schema)
        return known

    def _rows(self, schema: dict[str, Any]) -> list[list[Symbol]]:
        said = {key: value for key, value in schema.items() if key not in _SILENT}
        if schema.get("$schema", _DIALECTS[0]) not in _DIALECTS:
            raise CannotCheck("another draft")
        if "$ref" in said or "anyOf" in said:
            if len(said) > 1:
                raise CannotCheck("something beside $ref or anyOf")
            if "$ref" in said:
                return [[self._rule(self._found(said["$ref"]))]]
            self._check_orders(said["anyOf"])
            return [[self._rule(branch)] for branch in said["anyOf"]]
        types = said.pop("type", None)
        types = [types] if isinstance(types, str) else types
        constants = said.pop("enum", None)
        if "const" in said:
            if constants is not None:
                raise CannotCheck("const beside enum")
            constants = [said.pop("const")]
        if constants is not None:
            if said:
                raise CannotCheck("something beside enum or const")
            return [[self._constant(value)] for value in constants if types is None or _type(value) in types]
        if not isinstance(types, list) or not set(types) <= set(_OF_TYPE):
            raise CannotCheck(f"the type {types!r}")
        if odd := set(said) - set().union(*_OF_TYPE.values()):
            raise CannotCheck(f"the keyword {sorted(odd)[0]!r}")
        return [[self._of_type(one, said)] for one in dict.fromkeys(types)]

    def _found(self, reference: str) -> Any:
        head, *parts = reference.split("/")
        at = self.root
        for part in parts:
            at = at.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
        if head != "#" or "%" in reference or at is None:
            raise CannotCheck(f"the reference {reference!r}")
        return at

    def _check_orders(self, branches: list[Any]) -> None:
        """Keys of several branches are ordered together: read only where no two branches share one."""
        seen: set[str] = set()
        for branch in branches:
            keys = self._keys(branch, [])
            if keys & seen:
                raise CannotCheck("alternatives that share a key")
            seen |= keys

    def _keys(self, schema: Any, met: list[int]) -> set[str]:
        if not isinstance(schema, dict) or id(schema) in met:
            return set()
        met.append(id(schema))
        keys = set(schema.get("properties", ()))
        for other in [*schema.get("anyOf", ()), *([self._found(schema["$ref"])] if "$ref" in schema else ())]:
            keys |= self._keys(other, met)
        return keys

    def _constant(self, value: Any) -> int:
        if isinstance(value, str):
            return self.terms.text(json_string(value))
        if value is None or isinstance(value, bool):
            return self._text(json.dumps(value))
        if isinstance(value, int) and value and abs(value) < 10**80:
            return self._text(str(value))
        raise CannotCheck("a constant that is no text, integer other than 0, true, false or null")

    def _of_type(self, one: str, said: dict[str, Any]) -> Symbol:
        if one == "object":
            return self._object(said)
        if one == "array":
            return self._array(said)
        if one == "string":
            return self._string(said)
        return Pattern(self.terms, _SCALARS[one], "ecma", utf8).whole()

    def _string(self, said: dict[str, Any]) -> int:
        terms = self.terms
        least, most = _count(said, "minLength", 0), _count(said, "maxLength", None)
        inner = terms.times(in_json(terms, ANY), least or 0, most)
        if "pattern" in said:
            inner = terms.both(inner, self._pattern(said["pattern"]))
        return terms.row([self._text('"'), inner, self._text('"')])

    def _pattern(self, pattern: str) -> int:
        """The strings in which the pattern is found; `^` and `$` are read at its ends."""
        terms = self.terms
        anything = terms.times(in_json(terms, ANY), 0, None)
        begins, ends = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith("\\$")
        inner = pattern[begins : len(pattern) - ends]
        found = Pattern(terms, inner, "ecma", in_json).whole(alternatives=not (begins or ends))
        return terms.row([*([] if begins else [anything]), found, *([] if ends else [anything])])

    def _object(self, said: dict[str, Any]) -> Symbol:
        properties, required = said.get("properties", {}), said.get("required", [])
        if said.get("additionalProperties") is not False:
            raise CannotCheck("an object that may have other keys")
        if not set(required) <= set(properties):
            raise CannotCheck("a required key that is not declared")
        # what may follow the keys so far, before the first and after it, from the last key on
        rest: list[Symbol] = [self._text("}"), self._text("}")]
        for key, value in reversed(properties.items()):
            heads = [self.terms.text(comma + json_string(key) + b":") for comma in (b"", b",")]
            rule, later = self._rule(value), rest
            rest = []
            for head, skipped in zip(heads, later):
                rows: list[list[Symbol]] = [[head, rule, later[1]], [skipped]]
                rest.append(self._new(rows[:1] if key in required else rows))
        return self._new([[self._text("{"), rest[0]]])

    def _array(self, said: dict[str, Any]) -> Symbol:
        if "items" not in said:
            raise CannotCheck("an array of anything")
        item, comma, close = self._rule(said["items"]), self._text(","), self._text("]")
        least, most = _count(said, "minItems", 0) or 0, _count(said, "maxItems", None)
        if max(least, most or 0) > MOST_ITEMS:
            raise CannotCheck(f"more than {MOST_ITEMS} items counted")
        separated: list[Symbol] = [comma, item]
        counts = range(max(least, 1), (max(least, 1) if most is None else most) + 1)
        # items from the least number on, at most the most
        many = self._new([[item, *(separated * (n - 1))] for n in counts])
        if most is None:
            self.rules[many].append([many, comma, item])
        rows: list[list[Symbol]] = [[self._text("["), many, close]]
        return self._new(rows if least else [*rows, [self._text("[]")]])


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise CannotCheck("a key twice")
    return dict(pairs)


def _count(said: dict[str, Any], name: str, default: int | None) -> int | None:
    count = said.get(name, default)
    if count is not None and (
        not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= 100_000
    ):
        raise CannotCheck(f"{name} of {count!r}")
    return count


def _type(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    return {int: "integer", str: "string", list: "array", dict: "object"}.get(type(value), "number")
