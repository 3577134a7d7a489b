"""What a tool says of its arguments, while a call of it is read.

Purpose: formats that write each argument by itself leave open what a value is; the schema of its place tells.
Invariant: after each argument that was read only those cases are left in which the tool allows it.
Complexity: each argument's schema is put together once for a tool and the cases that are left.
Rejected: the schema's `properties` alone (branches, patterns and references declare too).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tokenform.errors import TokenformError, ToolError
from tokenform.frontends.tools.conjuncts import TYPES, types_of
from tokenform.frontends.tools.members import Case, argument, member_cases, still
from tokenform.frontends.tools.tool import Tool


@dataclass(frozen=True)
class Argument:
    """An argument's schema as text, the types that it allows, and whether the tool declares it.

    One that is not declared may come twice; the last counts.
    """

    text: str
    kinds: frozenset[str]
    declared: bool = False


_ANYTHING = Argument("true", frozenset(TYPES))


class Arguments:
    """Of one tool; None: of a call whose tool is not known, which says nothing."""

    def __init__(self, tool: Tool | None) -> None:
        self.tool = tool
        self._known: dict[tuple[Any, ...], Argument] = {}
        self._left: list[Case] | None = None
        self._all: list[Case] | None = None
        if tool is not None:
            try:
                self._all = member_cases(tool.parameters, tool.name, strict=False)
            except (TokenformError, RecursionError):  # what the schema says is judged with the whole call
                self._all = None

    def begin(self) -> None:
        """A call begins: nothing was read of it."""
        self._left = None

    def __getitem__(self, key: str) -> Argument:
        if self.tool is None:
            return _ANYTHING
        at = (key, *map(id, self._left or ()))
        if at not in self._known:
            self._known[at] = _argument_of(self.tool, self._left or self._all, key)
        return self._known[at]

    def leave(self, key: str, text: str) -> None:
        """An argument was read, as JSON: only some cases are left, which tell what the others are."""
        cases = self._left or self._all
        if cases is not None and len(cases) > 1:
            try:
                self._left = still(cases, key, json.loads(text))
            except (ToolError, ValueError):  # judged with the whole call
                self._left = None


def _argument_of(tool: Tool, cases: list[Case] | None, key: str) -> Argument:
    if cases is None:
        return Argument("true", frozenset(TYPES), key in tool.parameters.get("properties", {}))
    schema, declared = argument(cases, tool.parameters, tool.name, key)
    return Argument(json.dumps(schema), types_of(schema, tool.name), declared)
