"""A list of tools and a format, as the tree of the texts that the model may write.

Purpose: `tool_shape(…)` puts together what comes before the calls (reasoning, free text), the calls in the
format's own layout, and what may follow, for each `tool_choice`.
Invariant: a text of the tree reads back (`reader.py`) as calls whose names are among the tools and whose
arguments satisfy their schemas; from every prefix of a text some text of the tree goes on, so a model can't
get stuck.
Complexity: linear in the sum of the tools' schemas.
Source: OpenAI's `tool_choice` and `parallel_tool_calls`; the layouts named in `formats/`.
Rejected: `required` as a JSON list whatever the format (the model then leaves the layout that it was trained
on).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from tokenform.errors import OptionError, ToolError
from tokenform.frontends.tools import harmony
from tokenform.frontends.tools.definitions import Tool, ToolLike, read_tools
from tokenform.frontends.tools.formats import find_format
from tokenform.frontends.tools.layout import (
    Format,
    Id,
    JsonArguments,
    JsonCall,
    Maybe,
    Name,
    Part,
    PythonArguments,
    Tagged,
    Wire,
)
from tokenform.frontends.tools.members import close, dump
from tokenform.frontends.tools.pythonic import Pythonic
from tokenform.frontends.tools.shape import (
    Free,
    Json,
    Node,
    Regex,
    Repeat,
    Seq,
    Shape,
    Special,
    Text,
    Trigger,
    choice,
    optional,
    sequence,
)
from tokenform.frontends.tools.tagged import tagged_arguments

Reasoning = Literal["auto", "open", "none"]


def tool_shape(
    tools: Iterable[ToolLike],
    *,
    format: Any,
    tool_choice: str = "auto",
    parallel: bool | int = True,
    strict: bool = True,
    reasoning: Reasoning = "auto",
) -> Shape:
    """The tree of a model's turn that may call tools.

    Args:
        tools: definitions, pydantic models or functions (see `read_tools`).
        format: a format's name, or a tokenizer whose chat template shows it.
        tool_choice: "auto" (text, calls or both), "required" (at least one call, no text beside the
            reasoning), "none" (no call), or the name of the one tool to call.
        parallel: several calls in one turn; a number is the most there may be.
        strict: arguments that the schema does not declare are forbidden, unless it speaks of them itself.
            Formats that write each argument by itself only ever write declared ones.
        reasoning: "auto": a reasoning block may come first; "open": the prompt has opened it; "none": there
            is none.
    Raises:
        ToolError, InvalidSchema, InvalidType: the definitions, see `read_tools`; a name that the format can't
            write.
        UnsupportedSchema: arguments that the format can't keep to their schema.
        OptionError: an option's value.
    """
    form = find_format(format)
    known = read_tools(tools)
    most = _most(parallel)
    if reasoning not in ("auto", "open", "none"):
        raise OptionError(f'reasoning must be "auto", "open" or "none", not {reasoning!r}')
    if tool_choice not in ("auto", "required", "none"):
        known, most = (_named(known, tool_choice),), 1
        tool_choice = "required"
    builder = Builder(form, known, strict)
    if form.channels:
        call = builder.call(form.wire)
        return Shape(harmony.turn(call, tool_choice, reasoning), builder.rules)
    return Shape(builder.turn(tool_choice, most, reasoning), builder.rules)


def _most(parallel: bool | int) -> int | None:
    if parallel is True:
        return None
    if parallel is False:
        return 1
    if not isinstance(parallel, int) or parallel < 1:
        raise OptionError(f"parallel must be True, False or a number from 1, not {parallel!r}")
    return parallel


def _named(known: Sequence[Tool], name: str) -> Tool:
    for tool in known:
        if tool.name == name:
            return tool
    names = ", ".join(repr(t.name) for t in known)
    raise ToolError(
        f'tool_choice {name!r} is neither "auto", "required", "none" nor a tool; there are {names}'
    )


class Builder:
    """The trees of one format for one list of tools."""

    def __init__(self, form: Format, known: Sequence[Tool], strict: bool) -> None:
        self.form = form
        self.known = known
        self.strict = strict
        self._python = Pythonic()
        self.rules = self._python.rules

    def turn(self, tool_choice: str, most: int | None, reasoning: str) -> Node:
        """The whole output."""
        block = self.reasoning(reasoning)
        if tool_choice == "required":
            return sequence(
                block, optional(Text(self.form.lead)) if self.form.lead else Seq(()), self.calls(most)
            )
        if self.form.at_start:
            text = Free(not_prefix=self.beginnings(), allow=self.allowed())
            if tool_choice == "none":
                return sequence(block, text)
            return sequence(block, choice([self.calls(most), text]))
        text = Free(until=self.triggers(), allow=self.allowed())
        if tool_choice == "none":
            return sequence(block, text)
        before = Free(until=self.triggers(), allow=self.allowed(), word_end=self.form.whole_word)
        if self.form.wire.section:
            return sequence(block, optional(sequence(before, self.calls(most))), text)
        return sequence(block, Repeat(sequence(before, self.call(self.form.wire)), 0, most), text)

    def reasoning(self, reasoning: str) -> Node:
        """The block that may come first, unconstrained inside."""
        if reasoning == "none":
            return Seq(())
        opened, closed = self.form.reasoning
        ends = [Trigger(closed, special=closed in self.form.special)]
        if self.form.trigger_ends_reasoning:
            ends += self.triggers()
        last = sequence(self.literal(closed), Regex("\n{0,2}"))
        inside = tuple(m for m in self.form.special if m not in {e.text for e in ends})
        body = sequence(Free(until=tuple(ends), allow=inside), optional(last) if len(ends) > 1 else last)
        # Some models write a line feed before the block.
        return (
            body if reasoning == "open" else optional(sequence(Regex("\n{0,2}"), self.literal(opened), body))
        )

    def triggers(self) -> tuple[Trigger, ...]:
        text = self.form.opener(self.form.wire)
        return (Trigger(text, special=text in self.form.special, whole_word=self.form.whole_word),)

    def allowed(self) -> tuple[str, ...]:
        """Special tokens that are part of free text."""
        return tuple(m for m in self.form.reasoning if m in self.form.special) + (self.form.content or ())

    def beginnings(self) -> tuple[str, ...]:
        """What only a call may begin with, in a format whose calls have no marker."""
        first = self.form.wire.call[0]
        opened = self.form.wire.section[0] if self.form.wire.section else ""
        if isinstance(first, JsonCall):
            start = f'{{"{first.name}": "'
            return (opened + start, start) if self.form.bare else (opened + start,)
        return tuple(f"{opened}{tool.name}(" for tool in self.known)

    def calls(self, most: int | None) -> Node:
        """One call, or several in a row, with the section around them."""
        wire = self.form.wire
        one = self.call(wire)
        several: Node = one if most == 1 else Repeat(one, 1, most, self.literal(wire.between))
        prefix = optional(Special(self.form.prefix)) if self.form.prefix else Seq(())
        if wire.section is None:
            return sequence(prefix, several)
        node = sequence(prefix, self.literal(wire.section[0]), several, self.literal(wire.section[1]))
        return choice([one, node]) if self.form.bare else node

    def call(self, wire: Wire) -> Node:
        """One call of any of the tools."""
        before: list[Node] = []
        for index, part in enumerate(wire.call):
            if isinstance(part, (Name, JsonCall)):
                rest = wire.call[index:]
                return sequence(*before, choice([self._rest(rest, tool) for tool in self.known]))
            before.append(self._part(part, self.known[0]))
        raise AssertionError(f"the layout of {self.form.name} has no name")

    def _rest(self, parts: tuple[Part, ...], tool: Tool) -> Node:
        self._check_name(parts, tool)
        return sequence(*(self._part(part, tool) for part in parts))

    def _part(self, part: Part, tool: Tool) -> Node:
        owner = f"tool {tool.name!r}"
        if isinstance(part, str):
            return self.literal(part)
        if isinstance(part, Name):
            return Text(tool.name)
        if isinstance(part, Id):
            return Regex(part.pattern)
        if isinstance(part, JsonArguments):
            return self.json(tool)
        if isinstance(part, JsonCall):
            number = sequence(Text(f'"{part.id}": "'), Regex("[0-9]+"), Text('", ')) if part.id else Seq(())
            keys = Text(f'"{part.name}": {dump(tool.name)}, "{part.arguments}": ')
            last = sequence(Text(', "id": "'), Regex(part.last_id), Text('"')) if part.last_id else None
            end = optional(last) if last else Seq(())
            return sequence(Text("{"), number, keys, self.json(tool), end, Text("}"))
        if isinstance(part, PythonArguments):
            return self._python.arguments(tool.parameters, owner)
        if isinstance(part, Tagged):
            return tagged_arguments(part, tool.parameters, owner, self.literal)
        inside = sequence(*(self._part(p, tool) for p in part.parts))
        return inside if part.written else optional(inside)

    def json(self, tool: Tool) -> Node:
        """The arguments as one JSON object."""
        return Json(close(tool.parameters) if self.strict else dict(tool.parameters))

    def literal(self, text: str) -> Node:
        """A literal with its special tokens as special tokens."""
        return sequence(*(Special(t) if special else Text(t) for t, special in self.form.pieces(text)))

    def _check_name(self, parts: tuple[Part, ...], tool: Tool) -> None:
        """Raise unless the reader can tell where the name ends."""
        if not isinstance(parts[0], Name):
            return
        name = tool.name
        stops = [self.form.tokens(p)[0] for p in stops_after(parts[1:]) if self.form.tokens(p)]
        spaced = name != name.strip() or "\n" in name or (self.form.channels and len(name.split()) > 1)
        if spaced or any(stop in name for stop in stops):
            raise ToolError(
                f"the tool name {name!r} can't be written in the format {self.form.name!r}; rename it"
            )


def stops_after(parts: Sequence[Part]) -> list[str]:
    """The literals that may come right after a name, up to the first that has to."""
    stops: list[str] = []
    for part in parts:
        if isinstance(part, str):
            if part.strip():
                return [*stops, part]
        elif isinstance(part, Maybe):
            stops += [p for p in part.parts[:1] if isinstance(p, str)]
        elif isinstance(part, Tagged):
            stops.append(part.before)
        elif isinstance(part, PythonArguments):
            return stops
        elif isinstance(part, JsonArguments):
            return [*stops, "{"]
    return stops
