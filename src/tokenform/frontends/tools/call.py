"""One call of one tool in a format's layout, as a tree.

Purpose: the parts of a `Wire` become nodes: markers, the name, the arguments in the format's notation.
Invariant: the tree, its rules and its notes are the tool's own, so that they are the same in every list that
has the tool.
Complexity: linear in the tool's schema.
Rejected: one notation for all tools (its rules are numbered as the tools come).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from json.encoder import encode_basestring
from keyword import iskeyword
from typing import Any

from tokenform.errors import ToolError, UnsupportedSchema
from tokenform.frontends.tools.elements import Nested
from tokenform.frontends.tools.layout import (
    Either,
    Elements,
    Format,
    Id,
    JsonArguments,
    JsonCall,
    MarkedArguments,
    Maybe,
    Name,
    Part,
    PythonArguments,
    Tagged,
)
from tokenform.frontends.tools.marked import Marked
from tokenform.frontends.tools.members import close, dump
from tokenform.frontends.tools.notation import Notation, loosened
from tokenform.frontends.tools.openers import stops_after
from tokenform.frontends.tools.pythonic import Pythonic
from tokenform.frontends.tools.shape import (
    BLANK,
    LINE,
    SPACE,
    Json,
    Node,
    Regex,
    Seq,
    Slot,
    Special,
    Text,
    choice,
    optional,
    sequence,
)
from tokenform.frontends.tools.tagged import Tags
from tokenform.frontends.tools.tool import Tool

# What writes the arguments that are not JSON; each knows its reader.
NOTATIONS: dict[type, type[Notation]] = {
    PythonArguments: Pythonic,
    MarkedArguments: Marked,
    Elements: Nested,
    Tagged: Tags,
}
# Stands for any tool; its arguments are a `Slot`.
ANY_TOOL = Tool("x", "", {})


class CallWriter:
    """Writes calls of one tool.

    Args:
        literals: those of the format that are known, by what they are made of; more are added.
        values: the same of arguments, by their layout.
        scope: what the names of rules begin with.
    Attributes:
        rules: that the trees name.
    """

    def __init__(
        self,
        form: Format,
        tool: Tool,
        strict: bool,
        order: str,
        literals: dict[tuple[str, Node], Node],
        values: dict[Part, dict[Any, Node]],
        scope: str,
    ) -> None:
        self.form, self.tool, self.strict, self.order, self.scope = form, tool, strict, order, scope
        self.rules: dict[str, Node] = {}
        self._literals, self._values = literals, values
        self._loosened: list[str] = []
        self._notations: dict[Part, Notation] = {}

    def notes(self) -> tuple[str, ...]:
        """What the schema allows and the format can't write."""
        notes = [note for made in self._notations.values() for note in made.notes]
        return tuple(dict.fromkeys([*self._loosened, *notes]))

    def parts(self, parts: tuple[Part, ...]) -> Node:
        """These parts of a call, one after the other."""
        check_name(self.form, parts, self.tool)
        return sequence(*self.row(parts))

    def row(self, parts: Sequence[Part], most: int | None = None) -> list[Node]:
        """So many of the parts, with what may stand behind each."""
        made: list[Node] = []
        for index, part in enumerate(parts[:most]):
            made += [self.part(part, parts[index + 1 :]), self.gap(parts[index : index + 2])]
        return made

    def turned(self, part: JsonCall, after: tuple[Part, ...]) -> Node:
        """A call's object with the arguments before the name."""
        head = sequence(Text("{"), LINE, self._key(part.arguments), self.json(), Text(","), LINE)
        name = sequence(self._key(part.name), Text(dump(self.tool.name)), LINE, Text("}"))
        return sequence(head, name, self.gap((part, *after)[:2]), *self.row(after))

    def gap(self, pair: Sequence[Part]) -> Node:
        """What may stand between two parts: whitespace, but not beside a name or within a marker."""
        if len(pair) < 2:
            return Seq(())
        left, right = (
            part.parts[side]
            if isinstance(part, Maybe)
            else part.texts[0]
            if isinstance(part, Either)
            else part
            for part, side in zip(pair, (-1, 0), strict=True)
        )
        if isinstance(right, (Tagged, Elements)):
            return BLANK  # a call without arguments has an empty line in some templates
        if isinstance(left, (Name, Tagged, Elements)) or isinstance(right, Name):
            return Seq(())
        if not all(isinstance(part, (str, Id, Maybe, Either)) for part in (left, right)):
            return LINE
        ends = isinstance(left, str) and self.form.pieces(left)[-1][0] in self.form.special
        begins = isinstance(right, str) and self.form.pieces(right)[0][0] in self.form.special
        return LINE if ends or begins else Seq(())

    def head(self, part: JsonCall) -> Node:
        """A call's object up to the name."""
        number: Node = Seq(())
        if part.id:
            number = sequence(self._key(part.id), Text('"'), Regex("[0-9]+"), Text('"'), Text(","), LINE)
        return sequence(Text("{"), LINE, number, self._key(part.name))

    def _key(self, key: str) -> Node:
        return sequence(Text(dump(key)), Text(":"), SPACE)

    def part(self, part: Part, after: Sequence[Part] = ()) -> Node:
        """One of them, before others."""
        tool = self.tool
        owner = f"tool {tool.name!r}"
        if isinstance(part, str):
            return self.literal(part, LINE)
        if isinstance(part, Either):
            return choice([self.literal(text, LINE) for text in part.texts])
        if isinstance(part, Name):
            return Text(tool.name)
        if isinstance(part, Id):
            return Regex(part.pattern)
        if isinstance(part, JsonArguments):
            return self.json()
        if isinstance(part, JsonCall):
            comma = sequence(Text(","), LINE)
            last: Node = Seq(())
            if part.last_id:
                last = optional(sequence(comma, self._key("id"), Text('"'), Regex(part.last_id), Text('"')))
            arguments = sequence(self._key(part.arguments), self.json())
            return sequence(Text(dump(tool.name)), comma, arguments, last, LINE, Text("}"))
        if isinstance(part, Maybe):
            inside = sequence(*self.row(part.parts))
            return inside if part.written else optional(inside)
        if tool.strings_in:
            if tool.convert is not None:  # its reader judges the strings
                self._loosened.append(loosened(owner, "contentSchema"))
                self.tool = replace(tool, strings_in={})
                return self.part(part, after)
            raise UnsupportedSchema(
                f"{owner}: a format that writes each argument by itself can't hold strings of a grammar;"
                " choose a format that writes JSON"
            )
        return self._notation(part, after).arguments(tool.parameters, owner, self.strict)

    def _notation(self, part: Part, after: Sequence[Part]) -> Notation:
        """What writes the arguments, before other parts."""
        if part not in self._notations:
            values = self._values.setdefault(part, {})
            made = NOTATIONS[type(part)](part, self.rules, self.order, self.literal, self.scope, values)
            if isinstance(made, Tags):
                made.form, made.ends = self.form, stops_after(self.form, after)
            self._notations[part] = made
        return self._notations[part]

    def json(self) -> Node:
        """The arguments as one JSON object."""
        if self.tool is ANY_TOOL:
            return Slot()
        schema = close(self.tool.parameters) if self.strict else dict(self.tool.parameters)
        return Json(schema, strings_in=tuple(self.tool.strings_in.items()))

    def literal(self, text: str, blank: Node = BLANK) -> Node:
        """A literal with its special tokens as special tokens, and blanks where it has whitespace or may.

        Inside a longer marker nothing stands beside a special token, and words are spaced as they are.
        """
        if (text, blank) in self._literals:
            return self._literals[text, blank]
        made: list[Node] = []
        joined, inside = True, False
        for piece, special in self.form.pieces(text):
            inner = piece in self.form.embedded
            if not (joined or inner):
                made.append(blank)
            if special:
                made.append(Special(piece))
            else:
                gaps = r"(\s+$|\s*\n\s*)" if inside else r"(^\s+|\s+$|\s*\n\s*)"
                words = re.split(gaps, piece)
                made += [blank if word.isspace() else Text(word) for word in words]
            joined = inside = inner
        return self._literals.setdefault((text, blank), sequence(*made))


def check_name(form: Format, parts: Sequence[Part], tool: Tool) -> None:
    """Raise unless readers can tell where the name ends, and Python can read it where it is to."""
    if not isinstance(parts[0], Name):
        return
    name = tool.name
    stops = stops_after(form, parts[1:])
    python = any(isinstance(part, PythonArguments) for part in parts)
    spaced = name != name.strip() or "\n" in name or (form.channels and len(name.split()) > 1)
    foreign = python and not all(n.isidentifier() and not iskeyword(n) for n in name.split("."))
    if spaced or foreign or any(stop in name for stop in stops):
        raise ToolError(f"the tool name {name!r} can't be written in the format {form.name!r}; rename it")


@dataclass(frozen=True)
class Named:
    """Calls from the tool's name on.

    parts: of a layout.  write: makes one call's tree of them, which begins with the name.
    """

    parts: tuple[Part, ...]
    write: Callable[[CallWriter, tuple[Part, ...]], Node] = CallWriter.parts

    @cached_property
    def alike(self) -> bool:
        """Whether they are the same for all tools but for the name and the arguments' JSON."""
        return sum(isinstance(part, (JsonArguments, JsonCall)) for part in self.parts) == 1

    def head(self, tool: Tool) -> str:
        """The text that they begin with."""
        return encode_basestring(tool.name) if isinstance(self.parts[0], JsonCall) else tool.name
