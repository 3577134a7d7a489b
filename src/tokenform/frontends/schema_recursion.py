"""Which places of a JSON Schema lead to a `$ref` that comes back to them.

Invariant: what is no plain pointer into the schema itself leads nowhere here.
Complexity: linear in the schema for each place that is referred to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from tokenform.errors import LimitExceeded
from tokenform.frontends.json_pointer import pointed
from tokenform.frontends.schema_parts import LISTS, MAPS, SCHEMAS


def read_recursive(text: str) -> Any:
    """The schema of a text where a `$ref` leads back to where it stands, else None.

    Raises:
        LimitExceeded: it nests deeper than Python reads.
    """
    if '"$ref"' not in text:
        return None
    try:
        root = json.loads(text, parse_float=_exact)
        return root if Recursion(root).recursive else None
    except RecursionError:
        raise LimitExceeded("the schema nests deeper than Python reads; nest it less.") from None


def _exact(text: str) -> float:
    value = float(text)
    if Decimal(repr(value)) != Decimal(text):
        raise LimitExceeded(f"GBNF of a schema with references can't keep the number {text}; shorten it.")
    return value


class Recursion:
    """Which places of a schema lead to a `$ref` that comes back, by their JSON Pointers."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._calls: dict[str, set[str]] = {}
        waiting = [""]
        for pointer in waiting:
            if pointer not in self._calls:
                self._calls[pointer] = set(self._refs(self.at(pointer)))
                waiting += self._calls[pointer]
        self.recursive = {one for one in self._calls if one in self._reach(self._calls[one])}

    def _reach(self, begin: set[str]) -> set[str]:
        found, waiting = set(begin), list(begin)
        for pointer in waiting:
            new = self._calls[pointer] - found
            found |= new
            waiting += new
        return found

    def leads_back(self, schema: Any) -> bool:
        """Whether what a schema refers to is recursive."""
        return bool(self._reach(set(self._refs(schema))) & self.recursive)

    def at(self, pointer: str) -> Any:
        """The subschema at a pointer; None where there is none."""
        try:
            return pointed(self.root, pointer)
        except LookupError:
            return None

    def _refs(self, schema: Any) -> Iterator[str]:
        """Pointers that a schema refers to, its definitions left out."""
        if not isinstance(schema, dict):
            return
        ref = schema.get("$ref")
        if isinstance(ref, str) and ref.startswith("#") and (ref == "#" or ref.startswith("#/")):
            yield ref[1:]
        for name in SCHEMAS:
            yield from self._refs(schema.get(name))
        for name in LISTS:
            listed = schema.get(name)
            for one in listed if isinstance(listed, list) else ():
                yield from self._refs(one)
        for name in MAPS:
            named = schema.get(name)
            if name not in ("$defs", "definitions") and isinstance(named, dict):
                for one in named.values():
                    yield from self._refs(one)
