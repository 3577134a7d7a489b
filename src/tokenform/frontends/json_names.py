"""Names of a JSON object that the keys of a mapping are read from.

Purpose: JSON's names are strings, and pydantic reads keys from them: `1` for an int, `2024-01-01` for a date,
nothing for a tuple.  Its export says so for some kinds alone.
Invariant: a name that the schema made here accepts is read as a key, but for what `type_rules.judged` names.
Rejected: grammars of the values as the names' texts (a name is one regular language to the engine).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pydantic_core

from tokenform.frontends.meanings import whole_match
from tokenform.frontends.number_patterns import decimals
from tokenform.frontends.text_ranges import signed_integers

_DEEP = 50
INTEGER = "-?(?:0|[1-9][0-9]{0,60})"
_THROUGH = ("default", "nullable", "custom-error", "function-after", "function-before", "function-wrap")


def names_read(export: Any, node: Any, depth: int = 0) -> dict[str, Any] | None:
    """The schema of the names that a type's values are read from; None where there are none.

    Args:
        export: the `Readable` that writes the schema around it.
        node: pydantic's core schema of the keys.
    """
    kind = node["type"]
    if kind == "definition-ref" and depth < _DEEP:
        found = export.nodes.get(node["schema_ref"])
        return _plain(export, node) if found is None else names_read(export, found, depth + 1)
    if kind == "any":
        return {}
    if kind == "int":
        return whole_match(_integers(node))
    if kind in ("float", "decimal"):
        return whole_match(decimals(node) if kind == "decimal" else _floats(node))
    if kind == "bool":
        return whole_match("true|false")
    if kind in ("literal", "enum"):
        texts = _members(node, node["expected" if kind == "literal" else "members"])
        return {"enum": texts} if texts else None
    if kind == "union" and depth < _DEEP:
        choices = [one[0] if isinstance(one, tuple) else one for one in node["choices"]]
        parts = [names_read(export, one, depth + 1) for one in choices]
        kept = [part for part in parts if part is not None]
        return None if not kept else {} if {} in kept else {"anyOf": kept}
    plain = _plain(export, node)
    if plain is None and kind in _THROUGH and depth < _DEEP:
        return names_read(export, node["schema"], depth + 1)
    return plain


def _plain(export: Any, node: Any) -> dict[str, Any] | None:
    """What values are strings in a document anyway; None where they are not."""
    made: dict[str, Any] = export.generate_inner(node).copy()
    if "$ref" in made:
        made = export.resolve_ref_schema(made)
    if made.get("type") != "string":
        return None
    if node["type"] == "str" and made.keys() <= {"type", "title"}:
        return {}
    return {key: value for key, value in made.items() if key not in ("title", "description", "contentSchema")}


def _integers(node: Mapping[str, Any]) -> str:
    low = max((v for v in (node.get("ge"), _moved(node.get("gt"), 1)) if v is not None), default=None)
    high = min((v for v in (node.get("le"), _moved(node.get("lt"), -1)) if v is not None), default=None)
    if low is None and high is None:
        return INTEGER
    return signed_integers(low, high)


def _moved(bound: int | None, step: int) -> int | None:
    return None if bound is None else bound + step


def _floats(node: Mapping[str, Any]) -> str:
    bounds = {name: node.get(name) for name in ("ge", "gt", "le", "lt")}
    rules = {name: None if bound is None else repr(float(bound)) for name, bound in bounds.items()}
    return decimals(rules, doubles=True)


def _members(node: Any, members: Any) -> list[str]:
    """The names that are read as a member."""
    own = {key: value for key, value in node.items() if key != "ref"}
    reader = pydantic_core.SchemaValidator({"type": "dict", "keys_schema": own})
    found = []
    for member in members:
        value = pydantic_core.to_jsonable_python(getattr(member, "value", member))
        text = value if isinstance(value, str) else json.dumps(value)
        try:
            reader.validate_json(json.dumps({text: None}))
        except pydantic_core.ValidationError:
            continue
        found.append(text)
    return list(dict.fromkeys(found))
