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
from collections.abc import Sequence
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.conjuncts import types_of
from tokenform.frontends.tools.judge import possible
from tokenform.frontends.tools.layout import Format, Tagged
from tokenform.frontends.tools.members import Case, of_kind, without_strings
from tokenform.frontends.tools.notation import Members, Notation, Spot
from tokenform.frontends.tools.order import in_order
from tokenform.frontends.tools.read_tagged import TaggedReader, bars, heads
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
# Beside these some boolean or null may be refused although its type is allowed.
_HAS_VALUES = {"enum", "const", "not", "if", "allOf", "$ref"}


class Tags(Notation):
    """Elements of one layout, one for each argument.

    Attributes:
        form: the format whose reader tells names and texts by what they may not hold; None: nobody reads
            them, so a name is written as it is, and a text ends at its closing marker alone.
        ends: what may follow the arguments.  A text may hold its own closing marker where neither an argument
            nor these follow it.
    """

    layout: Tagged
    reader = TaggedReader
    key = r"[\w][\w.$-]{0,63}"
    form: Format | None = None
    ends: Sequence[str] = ()
    _barred: tuple[str, ...] = ()
    _never: tuple[str, ...] = ()

    def arguments(self, schema: Any, owner: str, strict: bool) -> Node:
        self.values = {}  # texts are told by what the arguments of this schema begin with
        if self.form:
            self._barred = (*heads(self.layout, schema), *bars(self.layout, self.form))
            if self.ends and isinstance(self.literal(self.layout.close), Text):
                self._never = self._followed(self.form.special)
        return super().arguments(schema, owner, strict)

    def _followed(self, special: Sequence[str]) -> tuple[str, ...]:
        """Patterns of closing markers that end a text, by what follows.

        special: tokens that stand in no text after such a marker: where a call is broken, the reader looks no
        further for the end of its text.
        """
        close, before = re.escape(self.layout.close), next(iter(re.findall(r"\S+", self.layout.before)))
        after = "|".join(map(re.escape, (before, *self.ends)))
        stops = "|".join(map(re.escape, dict.fromkeys((*special, *self.ends))))
        return rf"{close}[ \t\r\n]*(?i:{after})", rf"(?s){close}.*(?:{stops})"

    def cases(self, schema: Any, owner: str, strict: bool) -> list[Case]:
        found = super().cases(schema, owner, strict)
        ends = (self.layout.middle.strip()[0], "\n", "<")
        for key in [member.key for case in found for member in case.members] if self.form else ():
            if not key or key != key.strip() or any(end in key for end in ends):
                raise ToolError(
                    f"{owner}: the argument name {key!r} can't be written in this format; rename it"
                )
        return found

    def row(self, members: Members) -> Node:
        written = [(sequence(Text(key), value, LINE), needed) for key, value, needed in members.pairs]
        lead = self.literal(self.layout.before)
        return in_order(self.order, written, members.more, Seq(()), lead, members.bounds)

    def other(self, key: Node, schema: Any, spot: Spot) -> Node:
        return sequence(key, self.shared(schema, spot.owner, spot.root, None), LINE)

    def value(self, schema: Any, spot: Spot) -> Node:
        """`middle value after` for one argument."""
        owner = spot.owner
        layout, kinds = self.layout, types_of(schema, owner)
        options: list[Node] = []
        strings, others = "string" in kinds, bool(kinds - {"string"})
        keywords = set(schema if isinstance(schema, dict) else ())
        if not keywords <= _PLAIN:
            strings = strings and possible(json.dumps(schema), True)
            others = others and possible(json.dumps(schema), False)
        if strings:
            spaced = LINE if self.form is None and not keywords <= _ANY_TEXT else Seq(())
            text = sequence(spaced, self._text(schema), spaced)
            options.append(sequence(self.literal(layout.middle.rstrip("\n")), text, self._close))
        if others and "{type}" in (layout.json_middle or ""):
            # each after the marker that names its type
            for kind in sorted(kinds - {"string"} - ({"integer"} if "number" in kinds else frozenset())):
                options.append(
                    self._json(layout.typed_middle(kind), Json(of_kind(schema, kind), self._without))
                )
        elif others:
            value: Node = Json(without_strings(schema, owner) if strings else schema, self._without)
            words = [("boolean", "True"), ("boolean", "False"), ("null", "None")]
            if layout.python_words and not strings and not keywords & _HAS_VALUES:
                value = choice([value, *(Text(word) for kind, word in words if kind in kinds)])
            options.append(self._json((layout.json_middle or layout.middle).rstrip("\n"), value))
        return choice(options)

    @property
    def _close(self) -> Node:
        return self.literal(self.layout.close)

    @property
    def _without(self) -> tuple[str, ...]:
        """What no value holds, see `Tagged`."""
        return tuple(dict.fromkeys((self.layout.close, *self.layout.markers)))

    def _json(self, middle: str, value: Node) -> Node:
        return sequence(self.literal(middle), LINE, value, LINE, self._close)

    def _text(self, schema: Any) -> Node:
        """A string as it is."""
        feeds = (self.layout.middle.endswith("\n"), self.layout.after.startswith("\n"))
        close = (self.layout.close,) if self._never else ()
        without = tuple(text for text in self._without if text not in close)
        return RawString(schema, (*without, *self._barred), feeds, self._never)
