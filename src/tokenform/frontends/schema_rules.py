"""Rules of a recursive JSON Schema: what nests without bound becomes a rule that calls itself.

Purpose: `to_gbnf` walks states, of which a document that nests has one for every stack of open values.
Invariant: the rules derive the schema's documents as the engine writes them under the same options; a keyword
beside a recursive `$ref` that relates values to each other, or to a second schema, is refused by its place.
How: only what leads to a `$ref` back to itself is written out here (objects, arrays, `anyOf`, a `oneOf` of
different types); every other subschema, and every key, is a part that is walked like any schema.
Complexity: linear in the schema, but for the properties of an object that may be left out: quadratic.
Rejected: all keywords by rules of their own (a second meaning of each); a whitespace that knows its depth.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tokenform.errors import LimitExceeded, TokenformError
from tokenform.frontends.gbnf_rules import Expansion, Rules, deriving
from tokenform.frontends.json_pointer import escaped
from tokenform.frontends.schema_parts import LISTS, MAPS, NOTES, SCHEMAS
from tokenform.frontends.schema_recursion import Recursion

GAPS = {"compact": (",", ":"), "spaced": (", ", ": ")}
"""What stands between items, and behind keys, where that is the same at every depth."""

ITEMS = 200
"""Most items that are counted."""

_SAYS_NOTHING = NOTES | {"$schema", "$id", "$comment", "$defs", "definitions"}
_OBJECT = {"type", "properties", "required", "additionalProperties"}
_ARRAY = {"type", "items", "minItems", "maxItems"}


def schema_rules(root: Any, options: dict[str, Any], leaf: Callable[[Any], str]) -> tuple[Rules, str]:
    """The rules of a recursive schema's documents and the start; names that are no rules are terminals.

    Args:
        root: the schema.
        options: those of `json_schema`.
        leaf: the terminal of a subschema that has nothing to do with the recursion.
    Raises:
        LimitExceeded: what no rules can say, with its place; it nests deeper than Python reads.
    """
    try:
        translation = _Translation(root, options, leaf)
        start = translation.ref("")
        return _productive(translation.rules), start
    except RecursionError:
        raise LimitExceeded("the schema nests deeper than Python reads; nest it less.") from None


class _Translation:
    def __init__(self, root: Any, options: dict[str, Any], leaf: Callable[[Any], str]) -> None:
        self._recursion = Recursion(root)
        self._options, self._leaf = options, leaf
        white = options["whitespace"]
        if white not in GAPS:
            raise _refused(
                f"whitespace={white!r}, which knows how deep it stands", "", "whitespace='compact'"
            )
        comma, colon = GAPS[white]
        self._comma, self._colon = json.dumps(comma), json.dumps(colon)
        self.rules: Rules = {}
        self._dialect = {"$schema": root["$schema"]} if "$schema" in root else {}
        inner = {**root, "$id": None, "id": None}
        if any(_mentions(inner, name) for name in ("$id", "id", "$dynamicRef", "$recursiveRef")):
            raise _refused("an $id, a $dynamicRef or a $recursiveRef inside a schema", "", "$ref alone")

    def ref(self, pointer: str) -> str:
        """The rule of a place that is referred to."""
        name = f"#{pointer}"
        if name not in self.rules:
            self.rules[name] = []
            self.rules[name] = [(self._value(self._recursion.at(pointer), pointer),)]
        return name

    def _rule(self, pointer: str, what: str, ways: list[Expansion]) -> str:
        name = f"{pointer} {what}"
        self.rules[name] = ways
        return name

    def _value(self, schema: Any, pointer: str) -> str:
        """The symbol of a schema's values."""
        if not self._recursion.leads_back(schema):
            return self._leaf(self._alone(schema, pointer))
        says = set(schema) - _SAYS_NOTHING
        if says == {"$ref"}:
            return self.ref(schema["$ref"][1:])
        for name in ("anyOf", "oneOf", "allOf"):
            if says == {name} and (name == "anyOf" or len(schema[name]) == 1 or self._apart(schema[name])):
                if name == "allOf" and len(schema[name]) > 1:
                    break
                ways: list[Expansion] = [
                    (self._value(one, f"{pointer}/{name}/{i}"),) for i, one in enumerate(schema[name])
                ]
                return self._rule(pointer, name, ways)
        kind = schema.get("type")
        if isinstance(kind, list) and len(kind) > 1:
            ways = [
                (self._value({**_of_kind(schema, one), "type": one}, f"{pointer}/type/{one}"),)
                for one in kind
            ]
            return self._rule(pointer, "types", ways)
        kind = kind[0] if isinstance(kind, list) and kind else kind
        if kind == "object":
            return self._object(schema, pointer, says - _OBJECT)
        if kind == "array":
            return self._array(schema, pointer, says - _ARRAY)
        named = ", ".join(sorted(says)) or "nothing"
        raise _refused(f"a recursive schema that says {named} and no type", pointer, "a type of its own")

    def _object(self, schema: Any, pointer: str, more: set[str]) -> str:
        closed = schema.get("additionalProperties") is False
        if not closed and not (
            "additionalProperties" not in schema and self._options["additional"] == "forbid"
        ):
            raise _refused("undeclared keys (none comes twice)", pointer, "additionalProperties: false")
        properties, required = schema.get("properties", {}), set(schema.get("required", ()))
        if more or required - set(properties) or self._options["order"] != "declared":
            what = ", ".join(sorted(more)) or "required keys without a schema, or order='any',"
            raise _refused(f"{what} of a recursive object", pointer, "fewer keywords")
        members = []
        for key, one in properties.items():
            value = self._value(one, f"{pointer}/properties/{escaped(key)}")
            members.append((key, (self._leaf({"const": key}), self._colon, value)))

        def rest(begun: bool, at: int) -> list[Expansion]:
            """Ways to go on from a member on, as rules `pointer from at`."""
            ways: list[Expansion] = []
            for place in range(at, len(members)):
                key, member = members[place]
                comma = (self._comma,) if begun else ()
                ways.append((*comma, *member, f"{pointer} from {place + 1}"))
                if key in required:
                    return ways
            return [*ways, ('"}"',)]

        for place in range(1, len(members) + 1):
            self._rule(pointer, f"from {place}", rest(True, place))
        begin = self._rule(pointer, "members", rest(False, 0))
        return self._rule(pointer, "object", [('"{"', begin)])

    def _array(self, schema: Any, pointer: str, more: set[str]) -> str:
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if more or max(least, most or 0) > ITEMS:
            named = ", ".join(sorted(more)) or f"more than {ITEMS} counted items"
            raise _refused(f"{named} of a recursive array", pointer, "fewer keywords")
        item = self._value(schema["items"], f"{pointer}/items")
        last = int(least) + 1 if most is None else int(most)

        def ways(at: int) -> list[Expansion]:
            found: list[Expansion] = [('"]"',)] if at >= least else []
            if most is None or at < most:
                comma = (self._comma,) if at else ()
                found.append((*comma, item, f"{pointer} item {min(at + 1, last)}"))
            return found

        for at in range(1, last + 1):
            self._rule(pointer, f"item {at}", ways(at))
        begin = self._rule(pointer, "item 0", ways(0))
        return self._rule(pointer, "array", [('"["', begin)])

    def _apart(self, schemas: list[Any]) -> bool:
        """Whether schemas have no value in common, by their types."""
        kinds = [self._kinds(one) for one in schemas]
        flat = [one for kind in kinds for one in kind or ()]
        return None not in kinds and len(flat) == len(set(flat))

    def _kinds(self, schema: Any) -> set[str] | None:
        for _ in range(32):
            if not isinstance(schema, dict) or not str(schema.get("$ref")).startswith("#"):
                break
            schema = self._recursion.at(schema["$ref"][1:])
        kind = schema.get("type") if isinstance(schema, dict) and "$ref" not in schema else None
        kinds = set([kind] if isinstance(kind, str) else kind or ())
        if not kinds:
            return None
        return kinds | {"number"} if "integer" in kinds else kinds

    def _alone(self, schema: Any, pointer: str) -> Any:
        """The subschema by itself, in the dialect of the whole."""
        alone = self._expanded(schema, pointer)
        if _mentions(alone, "$ref"):
            raise _refused("a $ref where none was looked for", pointer, "fewer keywords")
        return {**self._dialect, **alone} if isinstance(alone, dict) else alone

    def _expanded(self, schema: Any, pointer: str) -> Any:
        """The subschema by itself: what it refers to stands in its place."""
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            if set(schema) - _SAYS_NOTHING != {"$ref"} or not str(schema["$ref"]).startswith("#"):
                raise _refused("a $ref that does not stand alone", pointer, "one that does")
            target = self._recursion.at(schema["$ref"][1:])
            if target is None:
                raise _refused(f"the $ref {schema['$ref']!r}", pointer, "a pointer, as it is written")
            return self._expanded(target, pointer)
        out = {name: value for name, value in schema.items() if name not in ("$defs", "definitions")}
        for name in SCHEMAS:
            if name in out:
                out[name] = self._expanded(out[name], pointer)
        for name in LISTS:
            if name in out:
                out[name] = [self._expanded(one, pointer) for one in out[name]]
        for name in MAPS:
            if name in out:
                out[name] = {key: self._expanded(one, pointer) for key, one in out[name].items()}
        return out


def _mentions(value: Any, name: str) -> bool:
    """Whether a text stands under a name, however deep."""
    if isinstance(value, dict):
        return isinstance(value.get(name), str) or any(_mentions(one, name) for one in value.values())
    return isinstance(value, list) and any(_mentions(one, name) for one in value)


def _of_kind(schema: Any, kind: str) -> Any:
    """A schema of several types for one of them: the keywords of the other containers say nothing of it."""
    if kind in ("object", "array"):
        other = _ARRAY if kind == "object" else _OBJECT
        return {name: value for name, value in schema.items() if name == "type" or name not in other}
    return {name: value for name, value in schema.items() if name not in _OBJECT | _ARRAY}


def _productive(rules: Rules) -> Rules:
    """The rules without ways that never end."""
    ends = deriving(rules, lambda symbol: symbol not in rules)
    productive = {
        name: [way for way in ways if all(one in ends or one not in rules for one in way)]
        for name, ways in rules.items()
    }
    return {name: ways for name, ways in productive.items() if ways}


def _refused(what: str, pointer: str, instead: str) -> TokenformError:
    where = f" at {pointer!r}" if pointer else ""
    message = f"GBNF can't say {what}{where} where documents nest without bound; what helps: {instead}."
    return LimitExceeded(message, pointer=pointer)
