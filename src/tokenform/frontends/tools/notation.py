"""A schema's instances as a tree, in any notation that writes values other than JSON does.

Purpose: taking a schema apart by types (`enum`, `anyOf`, references, members, items) is the same work whether
strings stand in quotes of Python, between two marks, or in elements; a notation says only how each kind of
value is written.
Invariant: every text of the tree is an instance of the schema; recursive schemas become recursive rules.
Complexity: one node per subschema and place; shared subschemas (`$ref`) are one rule for each place.
Source: JSON Schema 2020-12, core and validation.
Rejected: every applicator of JSON Schema (`not`, `if`, `contains` … over values that are not JSON): such a
schema is refused with the keyword, and works in all formats that write JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenform.errors import UnsupportedSchema
from tokenform.frontends.tools.judge import satisfies
from tokenform.frontends.tools.members import alone, conjuncts, members, resolve, types_of
from tokenform.frontends.tools.shape import Node, Rule, Seq, Text, choice

_ARRAY = ("contains", "uniqueItems", "prefixItems", "minContains", "maxContains", "unevaluatedItems")
_OBJECT = ("patternProperties", "propertyNames", "minProperties", "maxProperties")
_BOUNDS = ("minLength", "maxLength", "pattern", "format")
_SILENT = ("description", "title", "default", "examples", "deprecated", "$comment")
# A member's value: its key, its tree, and whether it has to be there.
Pair = tuple[str, Node, bool]


class Notation:
    """Builds the trees of one grammar; the rules of its recursive schemas gather in `rules`.

    A place is where a value stands, for notations that write it there: the member's name, or None.

    Attributes:
        what: what errors call values of this notation.
        order: of members, "declared" or "any".
    """

    what = "this notation"

    def __init__(self, rules: dict[str, Node], order: str) -> None:
        self.rules, self.order = rules, order
        self.notes: list[str] = []  # what the schemas allow and the format can't write
        self._named: dict[tuple[int, str, Node | None], str] = {}
        self._roots: list[Any] = []

    # What a notation says.

    def any(self, place: Node | None) -> Node:
        """Any JSON-like value."""
        raise NotImplementedError

    def constant(self, value: Any, place: Node | None) -> Node:
        """This value, in all its spellings."""
        raise NotImplementedError

    def string(self, schema: Any, bounded: bool, place: Node | None) -> Node:
        """The strings that the schema (which stands alone) allows; not bounded: any string."""
        raise NotImplementedError

    def number(self, schema: dict[str, Any], place: Node | None) -> Node:
        """The numbers that the schema allows."""
        raise NotImplementedError

    def array(self, item: Node | None, least: int, most: int | None, place: Node | None) -> Node:
        """Lists of the item; None: only the empty one."""
        raise NotImplementedError

    def mapping(self, pairs: list[Pair], more: Node | None, owner: str, place: Node | None) -> Node:
        """Objects of these members, and of any number of further ones."""
        raise NotImplementedError

    def others(self, declared: list[str], schema: Any, owner: str, root: Mapping[str, Any]) -> Node | None:
        """A member of another name whose value satisfies the schema; None: it can't be written."""
        raise NotImplementedError

    def free_mapping(self, values: Any, owner: str, root: Mapping[str, Any], place: Node | None) -> Node:
        """Objects of any members whose values satisfy the schema."""
        return self.mapping([], self.others([], values, owner, root), owner, place)

    def member_place(self, key: str) -> Node | None:
        """Where the value of a member stands."""
        return None

    # What is the same in all of them.

    def members(
        self,
        schema: Any,
        owner: str,
        strict: bool,
        kind: str = "argument",
        root: Mapping[str, Any] | None = None,
    ) -> tuple[list[Pair], Node | None]:
        """The members of an object, each with its value's tree, and a further one, if there may be any.

        kind: what errors call them.  root: the schema that references are looked up in; None: each member's
        own.
        """
        declared, others = members(schema, owner, strict)
        pairs: list[Pair] = []
        for member in declared:
            place = self.member_place(member.key)
            own = root or root_of(member.schema)
            value = self.value(member.schema, f"{owner}, {kind} {member.key!r}", own, place)
            pairs.append((member.key, value, member.required))
        if others is False:
            return pairs, None
        keys, name = [member.key for member in declared], f"{owner}, {kind}s that are not declared"
        more = self.others(keys, others, name, root or root_of(others))
        if more is None:
            self.notes.append(f"{name}: this format can't write them")
        return pairs, more

    def value(self, schema: Any, owner: str, root: Mapping[str, Any], place: Node | None = None) -> Node:
        """The values that satisfy the schema, as they are written in this place."""
        if schema is True or schema == {}:
            return self.any(place)
        if not isinstance(schema, Mapping):
            raise UnsupportedSchema(f"{owner}: nothing satisfies the schema false")
        if "$ref" in schema and set(schema) <= {"$ref", "$defs", "definitions", *_SILENT}:
            return self._reference(str(schema["$ref"]), owner, root, place)
        for key in ("enum", "const"):
            if key in schema:
                values = schema[key] if key == "enum" else [schema[key]]
                whole = alone(schema, root, owner)
                return choice([self.constant(v, place) for v in values if satisfies(v, whole)])
        branches = schema.get("anyOf", schema.get("oneOf"))
        if branches is not None:
            rest = {k: v for k, v in schema.items() if k not in ("anyOf", "oneOf")}
            self._only(rest, ("type", "$defs", "definitions"), owner, "anyOf")
            if "oneOf" in schema and _overlap([types_of(b, owner, root) for b in branches]):
                self.refuse("oneOf", owner)
            return choice([self.value(_narrowed(b, rest.get("type")), owner, root, place) for b in branches])
        return choice(self._kinds(schema, owner, root, place))

    def _kinds(
        self, schema: Mapping[str, Any], owner: str, root: Mapping[str, Any], place: Node | None
    ) -> list[Node]:
        """The values type by type."""
        parts = [part for part, _ in conjuncts(schema, root, owner)]
        for part in parts:
            for key in ("not", "if", "anyOf", "oneOf") if part is not schema else ("not", "if"):
                if key in part:
                    self.refuse(key, owner)
        kinds = types_of(schema, owner, root)
        options: list[Node] = []
        if "string" in kinds:
            bounded = any(key in part for part in parts for key in _BOUNDS)
            options.append(self.string(alone(schema, root, owner), bounded, place))
        words = (("boolean", True), ("boolean", False), ("null", None))
        options += [self.constant(word, place) for kind, word in words if kind in kinds]
        if "number" in kinds or "integer" in kinds:
            options.append(self.number(_numbers(parts, "number" in kinds), place))
        if "array" in kinds:
            options.append(self._array(parts, owner, root, place))
        if "object" in kinds:
            options.append(self._object(schema, parts, owner, root, place))
        return options

    def _reference(self, reference: str, owner: str, root: Mapping[str, Any], place: Node | None) -> Node:
        key = (id(root), reference, place)
        if key not in self._named:
            self._roots.append(root)  # keeps the id from being used again
            self._named[key] = name = f"value_{len(self.rules)}"
            self.rules[name] = Seq(())
            self.rules[name] = self.value(resolve(reference, root, owner), owner, root, place)
        return Rule(self._named[key])

    def _array(
        self, parts: list[Mapping[str, Any]], owner: str, root: Mapping[str, Any], place: Node | None
    ) -> Node:
        for part in parts:
            for key in _ARRAY:
                if part.get(key):
                    self.refuse(key, owner)
        items = [part["items"] for part in parts if "items" in part]
        if len(items) > 1:
            self.refuse("allOf", owner)
        least = max((part.get("minItems", 0) for part in parts), default=0)
        bounds = [part["maxItems"] for part in parts if "maxItems" in part]
        if items and items[0] is False:
            return self.array(None, 0, 0, place)
        item = self.value(items[0] if items else True, owner, root)
        return self.array(item, least, min(bounds) if bounds else None, place)

    def _object(
        self,
        schema: Any,
        parts: list[Mapping[str, Any]],
        owner: str,
        root: Mapping[str, Any],
        place: Node | None,
    ) -> Node:
        for part in parts:
            for key in _OBJECT:
                if part.get(key):
                    self.refuse(key, owner)
        definitions = {k: v for k, v in root.items() if k in ("$defs", "definitions")}
        whole = {**definitions, **schema}
        if not any(part.get("properties") or part.get("required") for part in parts):
            _, others = members(whole, owner, strict=False)
            if others is not False:
                return self.free_mapping(others, owner, root or root_of(others), place)
        pairs, more = self.members(whole, owner, False, "member", root)
        return self.mapping(pairs, more, owner, place)

    def _only(self, schema: Mapping[str, Any], keys: tuple[str, ...], owner: str, beside: str) -> None:
        for key in schema:
            if key not in (*keys, *_SILENT):
                raise UnsupportedSchema(
                    f"{owner}: {key!r} beside {beside!r} can't be kept in {self.what}", keyword=key
                )

    def refuse(self, key: str, owner: str) -> None:
        raise UnsupportedSchema(
            f"{owner}: {key!r} can't be kept in {self.what}; choose a format that writes JSON", keyword=key
        )


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


def root_of(schema: Any) -> Mapping[str, Any]:
    """What the references of a schema that stands alone are looked up in."""
    return schema if isinstance(schema, Mapping) else {}


def texts(spelled: list[str]) -> Node:
    """One of these texts."""
    return choice([Text(text) for text in dict.fromkeys(spelled)])
