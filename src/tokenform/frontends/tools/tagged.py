"""Arguments as marked-up elements, as a tree.

Purpose: each member of the arguments becomes `before key middle value after`, in the order of the schema.
Invariant: a value that may be a string is raw text, in which no closing marker can occur that is followed by
what may follow one; every other value is JSON.  Where both are possible the reader takes JSON first
(`read_call.py`), which is why `null` for a nullable string is null.
Of arguments that are not declared, one that comes twice counts as it comes last.
Complexity: linear in the number of arguments (`order.py`).
Source: the templates named in the format files.
Rejected: refusing schemas with `additionalProperties` (their only call would be the empty one, or none).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.conjuncts import types_of
from tokenform.frontends.tools.judge import possible
from tokenform.frontends.tools.layout import Tagged
from tokenform.frontends.tools.members import Case, member_cases, of_kind, without_strings
from tokenform.frontends.tools.notation import named_by, unknown_name
from tokenform.frontends.tools.order import in_order
from tokenform.frontends.tools.shape import (
    LINE,
    Json,
    Node,
    RawString,
    Seq,
    Text,
    choice,
    sequence,
)

# Keywords beside which the types tell whether there are strings, and other values.
_PLAIN = {
    "type",
    "description",
    "title",
    "default",
    "examples",
    "minLength",
    "maxLength",
    "items",
    "properties",
}
# Beside these a string is any text.
_ANY_TEXT = _PLAIN - {"minLength", "maxLength"}
# What an argument that is not declared may be called.
_KEY = r"[\w][\w.$-]{0,63}"


def tagged_arguments(
    layout: Tagged,
    schema: Any,
    owner: str,
    literal: Callable[[str], Node],
    *,
    order: str,
    strict: bool,
    loosen: Callable[[str], None],
    ends: Sequence[str] = (),
    special: Sequence[str] = (),
    embedded: Sequence[str] = (),
    call_heads: Sequence[str] = (),
    read: bool = True,
) -> Node:
    """The tree of all arguments; `owner` is what errors call the tool, `literal` makes a marker's node.

    ends: what may follow the arguments; special: the format's special tokens.  With them, a text may hold its
    own closing marker where neither an argument nor these follow it, see `Inside`.
    embedded, call_heads: see `bars`.
    read: whether a reader follows, who tells names and texts by what they may not hold; else a name is
        written as it is, and a text ends at its closing marker alone.

    The others are those of `in_order` and `member_cases`.
    """
    values: dict[str, Node] = {}
    barred = (*heads(layout, schema), *bars(layout, embedded, call_heads)) if read else ()
    inside = Inside(barred, spaced=not read)
    if ends and isinstance(literal(layout.close), Text):
        before = next(iter(re.findall(r"\S+", layout.before)))
        inside = Inside(inside.barred, (before, *ends), tuple(special))

    def value(said: Any, place: str) -> Node:
        """One for all cases, so that they share their nodes."""
        text = json.dumps([said, place])
        if text not in values:
            values[text] = tagged_value(layout, said, place, literal, inside)
        return values[text]

    def row(case: Case) -> Node:
        written: list[tuple[Node, bool]] = []
        for member in case.members:
            if read:
                _check_key(layout, member.key, owner)
            options = value(member.schema, f"{owner}, argument {member.key!r}")
            written.append((sequence(Text(member.key), options, LINE), member.required))
        more: Node | None = None
        if case.keyed:
            beside = f"{owner}, arguments that are not declared"
            more = choice(
                [sequence(named_by(_KEY, key), value(said, beside), LINE) for key, said in case.keyed]
            )
        elif case.others is not False:
            value_of = value(case.others, f"{owner}, arguments that are not declared")
            more = sequence(unknown_name(_KEY, case.names), value_of, LINE)
        return in_order(order, written, more, Seq(()), literal(layout.before), case.bounds)

    cases = member_cases(schema, owner, strict, loosen, written=True, counts=order != "any")
    return choice([row(case) for case in cases])


@dataclass(frozen=True)
class Inside:
    """What the texts of a call may not hold.

    barred: whatever these are.  followers: what follows a closing marker; with them, one that none of them
    follows is text.  special: tokens that stand in no text after such a marker: where a call is broken, the
    reader looks no further for the end of its text.  spaced: whitespace may stand around one that is not any
    text.
    """

    barred: tuple[str, ...] = ()
    followers: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    spaced: bool = False

    def text(
        self, layout: Tagged, schema: Any, without: tuple[str, ...], feeds: tuple[bool, bool]
    ) -> RawString:
        """The texts of an argument."""
        if not self.followers:
            return RawString(schema, (*without, *self.barred), feeds)
        others = tuple(text for text in without if text != layout.close)
        close = re.escape(layout.close)
        after = "|".join(map(re.escape, self.followers))
        stops = "|".join(map(re.escape, dict.fromkeys((*self.special, *self.followers[1:]))))
        never = (rf"{close}[ \t\r\n]*(?i:{after})", rf"(?s){close}.*(?:{stops})")
        return RawString(schema, (*others, *self.barred), feeds, never)


def heads(layout: Tagged, schema: Any) -> list[str]:
    """What declared arguments begin with: no text holds it, so that an argument whose closing marker is
    missing ends there.  Where values have lines of their own, on a line of its own."""
    if layout.before in layout.markers:
        return [layout.before]
    feed = "\n" if layout.middle.endswith("\n") else ""
    keys = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    middles = dict.fromkeys(m.strip().partition("{")[0] for m in (layout.middle, layout.json_middle) if m)
    return [feed + layout.before + key + middle for key in keys for middle in middles]


def bars(layout: Tagged, embedded: Sequence[str], call_heads: Sequence[str]) -> list[str]:
    """What no text holds besides: tokens that the layout's own markers are made of, and what a call begins
    with, so that a value whose closing marker is missing does not take the next call along."""
    tokens = [token for token in embedded if token in layout.before + layout.after]
    return [*tokens, *call_heads]


def tagged_value(
    layout: Tagged,
    schema: Any,
    owner: str,
    literal: Callable[[str], Node],
    inside: Inside | None = None,
) -> Node:
    """`middle value after` for one argument."""
    kinds = types_of(schema, owner)
    close = literal(layout.close)
    without = tuple(dict.fromkeys((layout.close, *layout.markers)))
    feeds = (layout.middle.endswith("\n"), layout.after.startswith("\n"))
    options: list[Node] = []
    strings, others = "string" in kinds, bool(kinds - {"string"})
    if not set(schema if isinstance(schema, dict) else ()) <= _PLAIN:
        strings = strings and possible(json.dumps(schema), True)
        others = others and possible(json.dumps(schema), False)
    if strings:
        inside = inside or Inside()
        text: Node = inside.text(layout, schema, without, feeds)
        if inside.spaced and not set(schema if isinstance(schema, dict) else ()) <= _ANY_TEXT:
            text = sequence(LINE, text, LINE)
        options.append(sequence(literal(layout.middle.rstrip("\n")), text, close))
    if others:
        value: Node = Json(without_strings(schema, owner) if strings else schema, without)
        words = [
            Text(w) for k, w in (("boolean", "True"), ("boolean", "False"), ("null", "None")) if k in kinds
        ]
        if layout.python_words and words and not strings and not _has_values(schema):
            value = choice([value, *words])
        if "{type}" in (layout.json_middle or ""):
            options += _typed(layout, schema, kinds, literal, without)
        else:
            middle = literal((layout.json_middle or layout.middle).rstrip("\n"))
            options.append(sequence(middle, LINE, value, LINE, close))
    if not options:
        raise ToolError(
            f"{owner}: no value of it can be written in this format; choose a format that writes JSON"
        )
    return choice(options)


def _typed(
    layout: Tagged,
    schema: Any,
    kinds: frozenset[str],
    literal: Callable[[str], Node],
    without: tuple[str, ...],
) -> list[Node]:
    """The JSON values type by type, each after the marker that names its type."""
    found: list[Node] = []
    for kind in sorted(kinds - {"string"} - ({"integer"} if "number" in kinds else frozenset())):
        value = Json(of_kind(schema, kind), without)
        middle = literal(layout.typed_middle(kind))
        found.append(sequence(middle, LINE, value, LINE, literal(layout.close)))
    return found


def _has_values(schema: Any) -> bool:
    """Whether some boolean or null may be refused although its type is allowed."""
    return isinstance(schema, dict) and any(
        k in schema for k in ("enum", "const", "not", "if", "allOf", "$ref")
    )


def _check_key(layout: Tagged, key: str, owner: str) -> None:
    ends = (layout.middle.strip()[0], "\n", "<")
    if not key or key != key.strip() or any(end in key for end in ends):
        raise ToolError(f"{owner}: the argument name {key!r} can't be written in this format; rename it")
