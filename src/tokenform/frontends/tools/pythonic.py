"""Arguments as keywords of a Python call, as a tree.

Purpose: the schema of each argument becomes the Python literals of its instances: single- or double-quoted
strings, True, False, None, lists, dictionaries, and numbers as JSON writes them (which Python reads alike).
Invariant: every text of the tree is a Python expression whose value satisfies the schema; recursive schemas
become recursive rules.
Complexity: one node per subschema; shared subschemas (`$ref`) are one rule each.
Source: the Python language reference, section 2 (literals); Meta's prompt formats.
Rejected: writing JSON and translating it (the model was trained on Python literals), and keeping length or
pattern over escaped text (a string with `pattern`, `format` or a length is written without escapes instead).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenform.errors import ToolError, UnsupportedSchema
from tokenform.frontends.tools.judge import satisfies
from tokenform.frontends.tools.members import (
    alone,
    conjuncts,
    members,
    resolve,
    types_of,
)
from tokenform.frontends.tools.shape import (
    BLANK,
    Choice,
    Json,
    Node,
    RawString,
    Regex,
    Repeat,
    Rule,
    Seq,
    Text,
    choice,
    joined,
    sequence,
)

# A character as itself, or an escape that Python and JSON both give one character for.
SINGLE = r"'([^'\\\x00-\x1f\x7f]|\\['\"\\nrt])*'"
DOUBLE = r'"([^"\\\x00-\x1f\x7f]|\\[' + "'" + r'"\\nrt])*"'
COMMA, COLON = sequence(Text(","), BLANK), sequence(Text(":"), BLANK)
_ANY = "python_value"
_ARRAY = ("contains", "uniqueItems", "prefixItems", "minContains", "maxContains", "unevaluatedItems")
_SPELLED = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


class Pythonic:
    """Builds the trees of one grammar; the rules of its recursive schemas gather in `rules`."""

    def __init__(self) -> None:
        self.rules: dict[str, Node] = {}
        self._named: dict[tuple[int, str], str] = {}
        self._roots: list[Any] = []

    def arguments(self, schema: Any, owner: str) -> Node:
        """`key=value` pairs, comma-separated, in the order of the schema."""
        written: list[tuple[Node, bool]] = []
        for member in members(schema, owner):
            # Words like `from` are let through: models write them as they are, and the reader takes them.
            if not member.key.isidentifier():
                raise ToolError(
                    f"{owner}: {member.key!r} is no name for a Python keyword argument; rename it"
                )
            place = f"{owner}, argument {member.key!r}"
            value = self.value(
                member.schema, place, member.schema if isinstance(member.schema, Mapping) else {}
            )
            written.append((sequence(Text(member.key + "="), value), member.required))
        return joined(written, COMMA)

    def value(self, schema: Any, owner: str, root: Mapping[str, Any]) -> Node:
        """The literals of a schema's instances."""
        if schema is True or schema == {}:
            return self._any()
        if not isinstance(schema, Mapping):
            raise UnsupportedSchema(f"{owner}: nothing satisfies the schema false")
        if (
            set(schema) <= {"$ref", "$defs", "definitions", "description", "title", "default"}
            and "$ref" in schema
        ):
            return self._reference(str(schema["$ref"]), owner, root)
        options: list[Node] = []
        for key in ("enum", "const"):
            if key in schema:
                values = schema[key] if key == "enum" else [schema[key]]
                return choice([Text(literal(v)) for v in values if satisfies(v, alone(schema, root, owner))])
        branches = schema.get("anyOf", schema.get("oneOf"))
        if branches is not None:
            rest = {k: v for k, v in schema.items() if k not in ("anyOf", "oneOf")}
            self._only(rest, ("type", "$defs", "definitions"), owner, "anyOf")
            if "oneOf" in schema and _overlap([types_of(b, owner, root) for b in branches]):
                self._refuse("oneOf", owner)
            return choice([self.value(_narrowed(b, rest.get("type")), owner, root) for b in branches])
        parts = [part for part, _ in conjuncts(schema, root, owner)]
        for part in parts:
            for key in ("not", "if", "anyOf", "oneOf") if part is not schema else ("not", "if"):
                if key in part:
                    self._refuse(key, owner)
        kinds = types_of(schema, owner, root)
        if "string" in kinds:
            options.append(self._string(schema, parts, owner, root))
        options += [
            Text(w) for k, w in (("boolean", "True"), ("boolean", "False"), ("null", "None")) if k in kinds
        ]
        if "number" in kinds or "integer" in kinds:
            options.append(Json(_numbers(parts, "number" in kinds)))
        if "array" in kinds:
            options.append(self._array(parts, owner, root))
        if "object" in kinds:
            options.append(self._object(schema, parts, owner, root))
        return choice(options)

    def _reference(self, reference: str, owner: str, root: Mapping[str, Any]) -> Node:
        key = (id(root), reference)
        if key not in self._named:
            self._roots.append(root)  # keeps the id from being used again
            self._named[key] = name = f"python_{len(self._named)}"
            self.rules[name] = self.value(resolve(reference, root, owner), owner, root)
        return Rule(self._named[key])

    def _any(self) -> Node:
        """Any JSON-like value."""
        if _ANY not in self.rules:
            self.rules[_ANY] = Seq(())
            string, value = Choice((Regex(SINGLE), Regex(DOUBLE))), Rule(_ANY)
            pair = sequence(string, COLON, value)
            words = [Text(w) for w in ("True", "False", "None")]
            self.rules[_ANY] = Choice(
                (
                    string,
                    *words,
                    Json({"type": "number"}),
                    sequence(Text("["), Repeat(value, 0, None, COMMA), Text("]")),
                    sequence(Text("{"), Repeat(pair, 0, None, COMMA), Text("}")),
                )
            )
        return Rule(_ANY)

    def _string(
        self, schema: Any, parts: list[Mapping[str, Any]], owner: str, root: Mapping[str, Any]
    ) -> Node:
        if not any(k in part for part in parts for k in ("minLength", "maxLength", "pattern", "format")):
            return Choice((Regex(SINGLE), Regex(DOUBLE)))
        controls = tuple(map(chr, (*range(32), 127)))
        raws = [(quote, RawString(alone(schema, root, owner), (quote, "\\", *controls))) for quote in "'\""]
        return Choice(tuple(sequence(Text(quote), raw, Text(quote)) for quote, raw in raws))

    def _array(self, parts: list[Mapping[str, Any]], owner: str, root: Mapping[str, Any]) -> Node:
        for part in parts:
            for key in _ARRAY:
                if part.get(key):
                    self._refuse(key, owner)
        items = [part["items"] for part in parts if "items" in part]
        if len(items) > 1:
            self._refuse("allOf", owner)
        least = max((part.get("minItems", 0) for part in parts), default=0)
        bounds = [part["maxItems"] for part in parts if "maxItems" in part]
        if items and items[0] is False:
            return Text("[]")
        item = self.value(items[0], owner, root) if items else self._any()
        inside = Repeat(item, least, min(bounds) if bounds else None, COMMA)
        return sequence(Text("["), inside, Text("]"))

    def _object(
        self, schema: Any, parts: list[Mapping[str, Any]], owner: str, root: Mapping[str, Any]
    ) -> Node:
        declared = any(part.get("properties") or part.get("required") for part in parts)
        if declared:
            pairs: list[tuple[Node, bool]] = []
            for member in members({**{k: v for k, v in root.items() if k.startswith("$d")}, **schema}, owner):
                place = f"{owner}, member {member.key!r}"
                own_root = member.schema if isinstance(member.schema, Mapping) else {}
                value = self.value(member.schema, place, root if root else own_root)
                pairs.append((sequence(Text(literal(member.key)), COLON, value), member.required))
            return sequence(Text("{"), joined(pairs, COMMA), Text("}"))
        for part in parts:
            for key in ("patternProperties", "propertyNames", "minProperties", "maxProperties"):
                if part.get(key):
                    self._refuse(key, owner)
        extras = [part["additionalProperties"] for part in parts if "additionalProperties" in part]
        if False in extras:
            return Text("{}")
        value = self.value(extras[0] if extras else True, owner, root)
        # A key that is written twice is read as Python reads it: the last value holds.
        pair = sequence(Choice((Regex(SINGLE), Regex(DOUBLE))), COLON, value)
        return sequence(Text("{"), Repeat(pair, 0, None, COMMA), Text("}"))

    def _only(self, schema: Mapping[str, Any], keys: tuple[str, ...], owner: str, beside: str) -> None:
        for key in schema:
            if key not in (*keys, "description", "title", "default", "examples", "deprecated", "$comment"):
                raise UnsupportedSchema(
                    f"{owner}: {key!r} beside {beside!r} can't be kept in Python literals", keyword=key
                )

    def _refuse(self, key: str, owner: str) -> None:
        raise UnsupportedSchema(
            f"{owner}: {key!r} can't be kept in Python literals; choose a format that writes JSON",
            keyword=key,
        )


def literal(value: Any) -> str:
    """A value as a Python literal in single quotes, with spaces as `repr` puts them."""
    if isinstance(value, str):
        return "'" + value.translate(_SPELLED) + "'"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    return repr(value)


def _numbers(parts: list[Mapping[str, Any]], fractions: bool) -> dict[str, Any]:
    keys = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
    bounds = [{k: part[k] for k in keys if k in part} for part in parts]
    bounds = [b for b in bounds if b]
    kind = {"type": "number" if fractions else "integer"}
    return {**kind, **bounds[0]} if len(bounds) == 1 else ({**kind, "allOf": bounds} if bounds else kind)


def _narrowed(schema: Any, kinds: Any) -> Any:
    return schema if kinds is None else {"allOf": [schema, {"type": kinds}]}


def _overlap(kinds: list[frozenset[str]]) -> bool:
    return sum(map(len, kinds)) > len(frozenset().union(*kinds))
