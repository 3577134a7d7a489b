"""JSON inside a string (`pydantic.Json[T]`): the string's texts are the documents of another grammar.

Purpose: `contentSchema` enforced, which JSON Schema itself only notes.
Invariant: the inner documents are those of the subschema under the options of the outer ones.
Complexity: a grammar for each such place.
Rejected: any JSON there, and a reader asked afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from tokenform.errors import InvalidType
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.json_pointer import escaped
from tokenform.frontends.schema_parts import NOTES, VALUES
from tokenform.frontends.schemas import json_schema


def with_nested(schema: Any, options: Mapping[str, Any]) -> Grammar:
    """The grammar of a schema some of whose strings hold documents.

    Args:
        schema: as `meanings.meant` gives it; it is left as it is.
        options: those of `json_schema`.
    Raises:
        InvalidType: a string holds a document that holds such a string, without end.
    """
    schema, grammars = nested(schema, options)
    if grammars:
        options = {**options, "strings_in": {**(options.get("strings_in") or {}), **grammars}}
    return json_schema(schema, **options)


def nested(
    schema: Any, options: Mapping[str, Any], around: tuple[str, ...] = ()
) -> tuple[Any, dict[str, Grammar]]:
    """The schema whose strings are plain ones, and the grammars of those that hold documents, by place.

    Args:
        around: definitions whose strings are being read.
    """
    if not any(True for _ in _places(schema, "")):
        return schema, {}
    whole, schema = schema, deepcopy(schema)
    grammars: dict[str, Grammar] = {}
    inner = {name: value for name, value in options.items() if name != "strings_in"}
    for pointer, place in list(_places(schema, "")):
        if pointer in around:
            raise InvalidType(
                "JSON in a string that holds itself nests without end; declare the type itself."
            )
        defined = (pointer,) if pointer.startswith("/$defs/") else ()
        content = _alone(place.pop("contentSchema"), whole.get("$defs", {}))
        content, within = nested(content, inner, (*around, *defined))
        grammars[pointer] = json_schema(content, **inner, strings_in=within)
        for name in [name for name in place if name != "type" and name not in NOTES]:
            del place[name]
    return schema, grammars


def _alone(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """A subschema with the definitions that it leads to."""
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    todo: list[Any] = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            name = str(part.get("$ref", "")).removeprefix("#/$defs/")
            if name in definitions and name not in found:
                found[name] = definitions[name]
                todo.append(definitions[name])
            todo += part.values()
        elif isinstance(part, list):
            todo += part
    return {**schema, "$defs": found} if found else schema


def _places(schema: Any, pointer: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Subschemas with a `contentSchema`, by their JSON Pointers."""
    if isinstance(schema, list):
        for number, part in enumerate(schema):
            yield from _places(part, f"{pointer}/{number}")
    elif isinstance(schema, dict):
        if "contentSchema" in schema:
            yield pointer, schema
            return
        for key, value in schema.items():
            if key not in VALUES:
                yield from _places(value, f"{pointer}/{escaped(key)}")
