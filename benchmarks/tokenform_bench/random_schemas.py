"""Random schemas over all keywords, and documents that are likely to tell right from wrong.

Purpose: inputs for the differential judge and for the tests of the algebra's laws.
Invariant: everything is drawn from one `random.Random`, so a seed names a pair.
Complexity: a schema has at most a few dozen keywords; keys, numbers and strings come from small pools, so
that keywords meet: uniform ones would almost never clash.
Rejected: mutating real schemas (the fuzz target does that; their keywords rarely overlap).  A strategy of
Hypothesis: it shrinks, but draws a tenth as many, and schemas this small are read as they are.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

URIS = {
    4: "http://json-schema.org/draft-04/schema#",
    6: "http://json-schema.org/draft-06/schema#",
    7: "http://json-schema.org/draft-07/schema#",
    2019: "https://json-schema.org/draft/2019-09/schema",
    2020: "https://json-schema.org/draft/2020-12/schema",
}
KEYS = ("a", "b", "ab", "c", "x1", "é")
STRINGS = ("", "a", "b", "ab", "aab", "x1", "é", "10", "2020-02-29", "a\nb", '"\\', "😀b")
NUMBERS = (0, 1, 2, 3, -1, 10, 0.5, 1.5, -2.5, 100, 6, 1e3, 0.1, 12)
PATTERNS = ("^a", "b$", "^[a-c]*$", "a.", "^(?!a)", "[0-9]", "^x?.$", "^$", "^(a|b){1,2}$", "\\d+")
STEPS = (1, 2, 3, 0.5, 1.5, 4)
TYPES = ("null", "boolean", "object", "array", "number", "string", "integer")


class SchemaMaker:
    """Draws schemas of one draft."""

    def __init__(self, rng: random.Random, draft: int = 2020) -> None:
        self.rng = rng
        self.draft = draft
        self._definitions = "$defs" if draft >= 2019 else "definitions"

    def schema(self, references: bool = True) -> dict[str, Any]:
        """A schema with its `$schema`; perhaps with references, and two definitions to which they lead."""
        root = self._object(2)
        if references and self._chance(0.4):
            root[self._definitions] = {"one": self._object(1), "two": self._object(1)}
            root.update(self._keyword("allOf", 2) if "$ref" in root else {})
        else:
            root = _without_references(root)
        return {"$schema": URIS[self.draft], **root}

    def _chance(self, share: float) -> bool:
        return self.rng.random() < share

    def _sub(self, depth: int) -> Any:
        if self.draft > 4 and self._chance(0.12):
            return self._chance(0.6)
        return self._object(depth - 1)

    def _object(self, depth: int) -> dict[str, Any]:
        if depth <= 0:
            names = self.rng.sample(_LEAVES, self.rng.randint(0, 2))
        else:
            names = self.rng.sample(_LEAVES + _NESTED * 2, self.rng.randint(1, 4))
        out: dict[str, Any] = {}
        for name in names:
            first = _SINCE.get(name, 4)
            if first <= self.draft <= _UNTIL.get(name, 2020):
                out.update(self._keyword(name, depth))
        if depth > 0 and self._chance(0.06):
            out["$ref"] = self.rng.choice(("#", f"#/{self._definitions}/one", f"#/{self._definitions}/two"))
        return out

    def _keyword(self, name: str, depth: int) -> dict[str, Any]:
        return _MAKERS[name](self, depth)

    def _count(self, most: int = 3) -> int:
        return self.rng.randint(0, most)

    def _names(self) -> list[str]:
        return self.rng.sample(KEYS, self.rng.randint(0 if self.draft > 4 else 1, 2))

    def _map(self, keys: tuple[str, ...], depth: int) -> dict[str, Any]:
        return {key: self._sub(depth) for key in self.rng.sample(keys, self.rng.randint(1, 3))}

    def _list(self, depth: int, most: int = 3) -> list[Any]:
        return [self._sub(depth) for _ in range(self.rng.randint(1, most))]

    def _bound(self, name: str) -> dict[str, Any]:
        if self.draft == 4 and name.startswith("exclusive"):
            plain = "minimum" if name.endswith("Minimum") else "maximum"
            return {plain: self.rng.choice(NUMBERS), name: self._chance(0.7)}
        return {name: self.rng.choice(NUMBERS)}

    def _values(self) -> list[Any]:
        found: list[Any] = []
        for _ in range(self.rng.randint(1, 4)):
            value = self.value(2)
            if not any(_same(value, other) for other in found):
                found.append(value)
        return found

    def value(self, depth: int) -> Any:
        """A JSON value from the pools."""
        kind = self.rng.randrange(8 if depth > 0 else 5)
        if kind == 0:
            return self.rng.choice((None, True, False))
        if kind in (1, 2):
            return self.rng.choice(NUMBERS)
        if kind in (3, 4):
            return self.rng.choice(STRINGS)
        if kind == 5:
            return [self.value(depth - 1) for _ in range(self.rng.randint(0, 3))]
        return {key: self.value(depth - 1) for key in self.rng.sample(KEYS, self.rng.randint(0, 3))}


def _without_references(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_references(value) for key, value in node.items() if key != "$ref"}
    return [_without_references(item) for item in node] if isinstance(node, list) else node


def _same(a: Any, b: Any) -> bool:
    """JSON equality: numbers by value, true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return bool(a == b)


_Maker = Callable[[SchemaMaker, int], dict[str, Any]]

# What a keyword of each name may hold.
_MAKERS: dict[str, _Maker] = {
    "type": lambda m, d: {
        "type": m.rng.choice(TYPES) if m._chance(0.7) else m.rng.sample(TYPES, m.rng.randint(1, 3))
    },
    "enum": lambda m, d: {"enum": m._values()},
    "const": lambda m, d: {"const": m.value(2)},
    "minimum": lambda m, d: m._bound("minimum"),
    "maximum": lambda m, d: m._bound("maximum"),
    "exclusiveMinimum": lambda m, d: m._bound("exclusiveMinimum"),
    "exclusiveMaximum": lambda m, d: m._bound("exclusiveMaximum"),
    "multipleOf": lambda m, d: {"multipleOf": m.rng.choice(STEPS)},
    "minLength": lambda m, d: {"minLength": m._count()},
    "maxLength": lambda m, d: {"maxLength": m._count()},
    "pattern": lambda m, d: {"pattern": m.rng.choice(PATTERNS)},
    "minItems": lambda m, d: {"minItems": m._count()},
    "maxItems": lambda m, d: {"maxItems": m._count()},
    "uniqueItems": lambda m, d: {"uniqueItems": m._chance(0.8)},
    "required": lambda m, d: {"required": m._names()},
    "minProperties": lambda m, d: {"minProperties": m._count()},
    "maxProperties": lambda m, d: {"maxProperties": m._count()},
    "dependentRequired": lambda m, d: {
        "dependentRequired": {key: m._names() for key in m.rng.sample(KEYS, 2)}
    },
    "items": lambda m, d: {"items": m._list(d) if m.draft < 2020 and m._chance(0.4) else m._sub(d)},
    "prefixItems": lambda m, d: {"prefixItems": m._list(d)},
    "additionalItems": lambda m, d: {"items": m._list(d), "additionalItems": m._sub(d)},
    "unevaluatedItems": lambda m, d: {"unevaluatedItems": m._sub(d)},
    "contains": lambda m, d: {"contains": m._sub(d)},
    "minContains": lambda m, d: {"contains": m._sub(d), "minContains": m._count(2)},
    "maxContains": lambda m, d: {"contains": m._sub(d), "maxContains": m._count(2)},
    "properties": lambda m, d: {"properties": m._map(KEYS, d)},
    "patternProperties": lambda m, d: {"patternProperties": m._map(PATTERNS, d)},
    "additionalProperties": lambda m, d: {"additionalProperties": m._sub(d)},
    "unevaluatedProperties": lambda m, d: {"unevaluatedProperties": m._sub(d)},
    "propertyNames": lambda m, d: {"propertyNames": m._sub(1)},
    "dependencies": lambda m, d: {
        "dependencies": {
            key: m._names() or ["a"] if m._chance(0.5) else m._sub(d) for key in m.rng.sample(KEYS, 2)
        }
    },
    "dependentSchemas": lambda m, d: {"dependentSchemas": m._map(KEYS, d)},
    "allOf": lambda m, d: {"allOf": m._list(d)},
    "anyOf": lambda m, d: {"anyOf": m._list(d)},
    "oneOf": lambda m, d: {"oneOf": m._list(d)},
    "not": lambda m, d: {"not": m._sub(d)},
    "if": lambda m, d: {
        "if": m._sub(d),
        **({"then": m._sub(d)} if m._chance(0.7) else {}),
        **({"else": m._sub(d)} if m._chance(0.6) else {}),
    },
}
_LEAVES = [
    *("type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "required"),
    *("minProperties", "maxProperties", "dependentRequired"),
]
_NESTED = [name for name in _MAKERS if name not in _LEAVES]
_SINCE = {
    **dict.fromkeys(("const", "contains", "propertyNames"), 6),
    "if": 7,
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "minContains", "maxContains"), 2019),
    "unevaluatedProperties": 2019,
    # in 2019-09 `contains` evaluates no items; both validators say that it does
    "unevaluatedItems": 2020,
    "prefixItems": 2020,
}
_UNTIL = {"additionalItems": 2019, "dependencies": 7}


def documents(maker: SchemaMaker, schema: Any, count: int) -> list[Any]:
    """Random values, and values of the schema's own `const` and `enum` with small changes."""
    named = list(_constants(schema))
    out: list[Any] = []
    for _ in range(count):
        if named and maker._chance(0.3):
            out.append(changed(maker, maker.rng.choice(named)))
        else:
            out.append(maker.value(3))
    return out


def _constants(node: Any) -> list[Any]:
    if isinstance(node, list):
        return [found for item in node for found in _constants(item)]
    if not isinstance(node, dict):
        return []
    own = [node["const"]] if "const" in node else []
    if isinstance(node.get("enum"), list):
        own += node["enum"]
    return own + [found for value in node.values() for found in _constants(value)]


def changed(maker: SchemaMaker, value: Any) -> Any:
    """The value with one part replaced, added or taken away; sometimes as it is."""
    rng = maker.rng
    if isinstance(value, list) and rng.random() < 0.8:
        items = list(value)
        at = rng.randrange(len(items) + 1)
        if at == len(items) or rng.random() < 0.3:
            items.insert(at, rng.choice(items) if items and rng.random() < 0.4 else maker.value(1))
        elif rng.random() < 0.5:
            items[at] = changed(maker, items[at])
        else:
            del items[at]
        return items
    if isinstance(value, dict) and rng.random() < 0.8:
        members = dict(value)
        key = rng.choice(KEYS)
        if key in members and rng.random() < 0.5:
            del members[key]
        elif members and rng.random() < 0.5:
            key = rng.choice(sorted(members))
            members[key] = changed(maker, members[key])
        else:
            members[key] = maker.value(1)
        return members
    return value if rng.random() < 0.3 else maker.value(1)
