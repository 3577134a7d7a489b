"""Arguments as marked-up elements, as a tree.

Purpose: each member of the arguments becomes `before key middle value after`, in the order of the schema.
Invariant: a value that may be a string is raw text, in which the closing marker can't occur; every other
value is JSON.  Where both are possible the reader takes JSON first (`reader_tagged.py`), which is why `null`
for a nullable string is null.
Complexity: linear in the number of arguments.
Source: the templates named in the format files.
Rejected: any order of the elements (n! orders; the templates write the declared one, and the reader takes
any).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.layout import Tagged
from tokenform.frontends.tools.members import members, types_of, without_strings
from tokenform.frontends.tools.shape import BLANK, Json, Node, RawString, Text, choice, joined, sequence


def tagged_arguments(layout: Tagged, schema: Any, owner: str, literal: Callable[[str], Node]) -> Node:
    """The tree of all arguments; `owner` is what errors call the tool, `literal` makes a marker's node."""
    written: list[tuple[Node, bool]] = []
    for member in members(schema, owner):
        _check_key(layout, member.key, owner)
        options = tagged_value(layout, member.schema, f"{owner}, argument {member.key!r}", literal)
        written.append((sequence(literal(layout.before), Text(member.key), options, BLANK), member.required))
    return joined(written, None)


def tagged_value(layout: Tagged, schema: Any, owner: str, literal: Callable[[str], Node]) -> Node:
    """`middle value after` for one argument."""
    kinds = types_of(schema, owner)
    close = literal(layout.close)
    without = tuple(dict.fromkeys((layout.close, *layout.markers)))
    feeds = (layout.middle.endswith("\n"), layout.after.startswith("\n"))
    options: list[Node] = []
    if "string" in kinds:
        options.append(
            sequence(literal(layout.middle.rstrip("\n")), RawString(schema, without, feeds), close)
        )
    if kinds - {"string"}:
        value: Node = Json(without_strings(schema, owner) if "string" in kinds else schema, without)
        words = [
            Text(w) for k, w in (("boolean", "True"), ("boolean", "False"), ("null", "None")) if k in kinds
        ]
        if layout.python_words and words and "string" not in kinds and not _has_values(schema):
            value = choice([value, *words])
        middle = literal((layout.json_middle or layout.middle).rstrip("\n"))
        options.append(sequence(middle, BLANK, value, BLANK, close))
    if not options:
        raise ToolError(
            f"{owner}: no value of it can be written in this format; choose a format that writes JSON"
        )
    return choice(options)


def _has_values(schema: Any) -> bool:
    """Whether some boolean or null may be refused although its type is allowed."""
    return isinstance(schema, dict) and any(
        k in schema for k in ("enum", "const", "not", "if", "allOf", "$ref")
    )


def _check_key(layout: Tagged, key: str, owner: str) -> None:
    ends = (layout.middle.strip()[0], "\n", "<")
    if not key or key != key.strip() or any(end in key for end in ends):
        raise ToolError(f"{owner}: the argument name {key!r} can't be written in this format; rename it")
