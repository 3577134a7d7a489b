"""What the calls of a format begin with and end with, and what ends a name in them.

Purpose: the layouts by the text by which a reader knows that a call of them begins, and those of which models
leave the beginning out.
Complexity: linear in the layouts, and in the tools where names begin calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tokenform.frontends.tools.layout import (
    Either,
    Elements,
    Format,
    JsonArguments,
    JsonCall,
    MarkedArguments,
    Maybe,
    Name,
    Part,
    PythonArguments,
    Tagged,
    Wire,
)


def text_of(part: Part) -> str:
    """The part itself where it is a literal."""
    return part.texts[0] if isinstance(part, Either) else part if isinstance(part, str) else ""


class Openers:
    """Those of one format.  names: of the tools."""

    def __init__(self, form: Format, names: Iterable[str]) -> None:
        self.form, self.names = form, names

    def table(self) -> dict[str, list[Wire]]:
        """The layouts by the text that they begin with; the template's own first."""
        table: dict[str, list[Wire]] = {}
        known = (self.form.wire, *self.form.also)
        for wire in known:
            table.setdefault(self.form.opener(wire), []).append(wire)
        taken = frozenset(table)
        for bare in (bare for wire in known for bare in self._without(wire, taken)):
            for opener in self._begins(bare):
                table.setdefault(opener, []).append(bare)
        return table

    def _begins(self, wire: Wire) -> list[str]:
        """What calls of this layout begin with: names, where nothing stands before them."""
        if wire.section == ("", wire.section[1] if wire.section else None) and isinstance(wire.call[0], Name):
            return [name + text_of(wire.call[1]) for name in self.names]
        return [self.form.opener(wire)]

    def _without(self, wire: Wire, known: frozenset[str]) -> list[Wire]:
        """The layout without what it begins with, which models leave out, where calls can be told all the
        same: by a marker of their own, or by one behind them."""
        first, last = wire.call[0], wire.call[-1]
        if wire.section is None:
            if wire.guess or not isinstance(first, str) or not isinstance(last, str):
                return []
            objects = len(wire.call) == 3 and isinstance(wire.call[1], JsonCall)
            rest = "".join(self.form.tokens(first)[1:])
            marked = rest[:1] == "<" and rest not in known
            made = [(rest, *wire.call[1:])] * marked + [wire.call[1:]] * objects
            return [replace(wire, call=call, guess=True) for call in made]
        bare = replace(wire, section=None)
        if isinstance(first, str) and len(self.form.opener(bare)) > 3:
            return [bare] if self.form.opener(bare) not in known else []
        opener = self.form.tokens(wire.section[0])
        return [
            replace(wire, section=(rest, wire.section[1]), guess=True, closed=True)
            for rest in dict.fromkeys(("".join(opener[1:]), ""))
            if rest not in known
        ]

    def has_mark(self, wire: Wire) -> bool:
        """Whether a special token closes the section."""
        closer = self.form.tokens(wire.section[1])[-1] if wire.section else ""
        return closer in (*self.form.special, *self.form.embedded)

    def closers(self) -> set[str]:
        """Tokens that close calls and sections."""
        literals = {
            literal.strip()
            for wire in (self.form.wire, *self.form.also)
            for literal in (wire.section[1] if wire.section else "", text_of(wire.call[-1]))
        }
        return {
            text
            for text in literals
            if text in self.form.special or any(t in text for t in self.form.embedded)
        }


def call_heads(form: Format) -> tuple[str, ...]:
    """What a call of the format's own layout begins with, as its template writes it."""
    first = form.wire.call[0]
    return (first,) if isinstance(first, str) else ()


def stops_after(form: Format, parts: Sequence[Part]) -> list[str]:
    """The words that may come right after a name, up to the first that has to."""
    stops: list[str] = []
    for part in parts:
        if isinstance(part, str):
            stops.append(part)
        elif isinstance(part, Either):
            stops += part.texts
        elif isinstance(part, Maybe):
            stops += [p for p in part.parts[:1] if isinstance(p, str)]
        elif isinstance(part, Tagged):
            stops.append(part.before)
        elif isinstance(part, Elements):
            stops.append(part.marker)
        elif isinstance(part, JsonArguments | MarkedArguments):
            stops.append("{")
        if isinstance(part, str) and part.strip():
            break
        if isinstance(part, Either | JsonArguments | MarkedArguments | PythonArguments):
            break
    return [words[0] for words in map(form.tokens, stops) if words]
