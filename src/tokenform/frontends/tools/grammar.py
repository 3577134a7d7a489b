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

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from keyword import iskeyword
from typing import Any

from tokenform.errors import InvalidSchema, OptionError, ToolError, UnsupportedSchema
from tokenform.frontends import forms
from tokenform.frontends.tools import fenced, harmony
from tokenform.frontends.tools.definitions import Tool, ToolLike, read_tools
from tokenform.frontends.tools.elements import Nested
from tokenform.frontends.tools.formats import FORMATS, named
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
    Wire,
)
from tokenform.frontends.tools.marked import Marked
from tokenform.frontends.tools.members import close, dump
from tokenform.frontends.tools.notation import loosened
from tokenform.frontends.tools.pythonic import Pythonic
from tokenform.frontends.tools.shape import (
    BLANK,
    LAST,
    LINE,
    SPACE,
    Choice,
    Follows,
    Free,
    Json,
    Kept,
    Node,
    Regex,
    Repeat,
    Seq,
    Shape,
    Slot,
    Special,
    Text,
    Trigger,
    choice,
    optional,
    sequence,
)
from tokenform.frontends.tools.tagged import tagged_arguments
from tokenform.frontends.tools.turn import Reasoning, read_choice, told_reasoning


def tool_shape(
    tools: Iterable[ToolLike],
    *,
    format: Any,
    tool_choice: Any = "auto",
    parallel: bool | int = True,
    strict: bool = True,
    reasoning: Reasoning = "auto",
    order: str = "declared",
    prompt: str | None = None,
) -> Shape:
    """The tree of a model's turn that may call tools.

    Args:
        tools: definitions, pydantic models or functions (see `read_tools`).
        format: a format or its name.
        tool_choice: "auto" (text, calls or both), "required" or "any" (at least one call, no text beside the
            reasoning), "none" (no call), the name of the one tool to call, or an object of OpenAI's API
            ("function", "allowed_tools").
        parallel: several calls in one turn; a number is the most there may be.
        strict: arguments that the schema does not declare are forbidden, unless it speaks of them itself.
        reasoning: "auto": a reasoning block may come first; "open": the prompt has opened it; "none": there
            is none.
        order: "declared" or "any": how formats that write each argument by itself order them.
        prompt: the prompt as the chat template renders it; with "auto", its end tells whether it has opened
            the reasoning block.
    Raises:
        ToolError, InvalidSchema, InvalidType: the definitions, see `read_tools`; a name that the format can't
            write.
        UnsupportedSchema: arguments that the format can't keep to their schema.
        OptionError: an option's value.
    """
    form = named(format)
    known = read_tools(tools)
    most = _most(parallel)
    try:
        return _shape(form, known, tool_choice, most, strict, told_reasoning(reasoning, prompt, form), order)
    except RecursionError:
        raise InvalidSchema("the parameters of a tool are nested too deeply for this format") from None


def _shape(
    form: Format,
    known: Sequence[Tool],
    tool_choice: Any,
    most: int | None,
    strict: bool,
    told: str,
    order: str,
) -> Shape:
    choice = read_choice(tool_choice, known)
    most = 1 if choice.single else most
    builder = Builder(form, choice.tools, strict, order)
    if form.channels:
        for tool in choice.tools:
            builder.check_name(form.wire.call[1:], tool)
        return Shape(harmony.turn(builder.json, choice.tools, choice.mode, most, told), builder.rules)
    return Shape(builder.turn(choice.mode, most, told), builder.rules, builder.notes(), form.inner)


def _most(parallel: bool | int) -> int | None:
    if parallel is True:
        return None
    if parallel is False:
        return 1
    if not isinstance(parallel, int) or parallel < 1:
        raise OptionError(f"parallel must be True, False or a number from 1, not {parallel!r}")
    return parallel


def _by_itself(part: Part) -> bool:
    """Whether the part of a call needs no rules that other calls share."""
    if isinstance(part, Maybe):
        return all(map(_by_itself, part.parts))
    return isinstance(part, (str, Either, Name, Id, JsonArguments, JsonCall, Tagged))


# Stands for any tool; its arguments are a `Slot`.
_ANY_TOOL = Tool("x", "", {})
# What follows the names of tools, by format, strictness and parts: a few for each format of the library.
_FOLLOWS: dict[Any, Follows] = {}


class Builder:
    """The trees of one format for one list of tools."""

    def __init__(self, form: Format, known: Sequence[Tool], strict: bool, order: str) -> None:
        self.form = form
        self.known = known
        self.strict = strict
        self.order = order
        self.rules: dict[str, Node] = {}
        self.tagged_notes: list[str] = []
        self._notations: dict[Part, Pythonic | Marked | Nested] = {}
        self._literals: dict[tuple[str, Node], Node] = {}
        # formats of this library are few; those of others' own are not kept by tools
        self._own = (form.name, strict) if FORMATS.get(form.name) is form else None

    def notes(self) -> tuple[str, ...]:
        """What the schemas allow and the format can't write."""
        told = [note for made in self._notations.values() for note in made.notes]
        return tuple(dict.fromkeys([*self.tagged_notes, *told]))

    def turn(self, tool_choice: str, most: int | None, reasoning: str) -> Node:
        """The whole output."""
        if self.form.fenced:
            return fenced.turn(self.form, self.literal, self.calls(most), tool_choice, reasoning)
        if tool_choice == "required":
            return sequence(self.reasoning(reasoning), BLANK, self.calls(most), LAST)
        if self.form.at_start:
            text = Free(not_prefix=self.beginnings(), allow=self.allowed())
            options = [text] if tool_choice == "none" else [text, *self.calls_at_start(most)]
            return sequence(self.reasoning(reasoning, False), choice(options))
        if tool_choice == "none":
            text = Free(until=self.triggers(), allow=self.allowed())
            return sequence(self.reasoning(reasoning, False), text)
        after_thought = sequence(self.reasoning(reasoning, False), self.free_and_calls(most, 0, ()))
        if not self.form.trigger_ends_reasoning or reasoning == "none":
            return after_thought
        # Calls end the thought only where no closing marker follows them, see `reader.py`.
        closed = (Trigger(self.form.reasoning[1], special=self.form.reasoning[1] in self.form.special),)
        return choice(
            [after_thought, sequence(self.opening(reasoning), self.free_and_calls(most, 1, closed))]
        )

    def calls_at_start(self, most: int | None) -> list[Node]:
        """The calls of a format that has no marker for them; of its layouts with one, text may come first.

        What follows them is text, if it can't be the beginning of a call.
        """
        rest = Free(not_prefix=(r"[\s;,]*[\[{<]", r"\s*[;,\]}]"), allow=self.allowed())
        ways: list[Node] = [sequence(BLANK, self.calls(most), rest)]
        marked = [wire for wire in self.wires() if self.form.opener(wire) in self.form.special]
        if marked:
            until = tuple(Trigger(t, special=True) for t in dict.fromkeys(map(self.form.opener, marked)))
            before = Free(until=until, not_prefix=self.beginnings(), allow=self.allowed())
            ways.append(sequence(before, choice([self._calls(wire, most) for wire in marked]), rest))
        return ways

    def free_and_calls(self, most: int | None, least: int, barred: tuple[Trigger, ...]) -> Node:
        """Text with calls in it; no trigger of `barred` occurs in the text."""
        until = self.triggers() + barred
        allow = tuple(m for m in self.allowed() if m not in {t.text for t in barred})
        before = Free(until=until, allow=allow, word_end=self.form.whole_word)
        text = Free(until=until, allow=allow)
        if self.form.wire.section:
            called = sequence(before, self.calls(most))
            return sequence(called if least else optional(called), text)
        return sequence(Repeat(sequence(before, self.one()), least, most), text)

    def reasoning(self, reasoning: str, calls_end: bool = True) -> Node:
        """The block that may come first, unconstrained inside; calls_end: a call may end it, if one can."""
        if reasoning == "none":
            return Seq(())
        closed = self.form.reasoning[1]
        ends = [Trigger(closed, special=closed in self.form.special)]
        last = sequence(self.literal(closed), BLANK)
        inside = tuple(m for m in self.form.special if m != closed)
        if calls_end and self.form.trigger_ends_reasoning:
            ends += self.triggers()
            inside = tuple(m for m in inside if m not in {t.text for t in self.triggers()})
            last = optional(last)
        body = sequence(self.opening(reasoning), Free(until=tuple(ends), allow=inside), last)
        return body if reasoning == "open" else optional(body)

    def opening(self, reasoning: str) -> Node:
        """What opens the reasoning block, unless the prompt has."""
        if reasoning == "open":
            return Seq(())
        opener = sequence(BLANK, self.literal(self.form.reasoning[0]))
        return optional(opener) if self.form.prompt_opens and reasoning == "auto" else opener

    def triggers(self) -> tuple[Trigger, ...]:
        texts = dict.fromkeys(map(self.form.opener, self.wires()))
        whole = self.form.whole_word
        return tuple(Trigger(text, special=text in self.form.special, whole_word=whole) for text in texts)

    def wires(self) -> tuple[Wire, ...]:
        """The layouts that the grammar allows."""
        return (self.form.wire, *(wire for wire in self.form.also if wire.written))

    def allowed(self) -> tuple[str, ...]:
        """Special tokens that are part of free text."""
        return tuple(m for m in self.form.reasoning + self.form.content if m in self.form.special)

    def beginnings(self) -> tuple[str, ...]:
        """Patterns of what only a call may begin with, in a format whose calls have no marker."""
        first = self.form.wire.call[0]
        opened = (
            r"\s*" + "".join(re.escape(t) + r"\s*" for t in self.form.tokens(self.form.wire.section[0]))
            if self.form.wire.section
            else r"\s*"
        )
        if isinstance(first, JsonCall):
            start = rf'\{{\s*"{re.escape(first.name)}"\s*:\s*"'
            return (opened + start, r"\s*" + start) if self.form.bare else (opened + start,)
        return tuple(rf"{opened}{re.escape(tool.name)}\(" for tool in self.known)

    def calls(self, most: int | None) -> Node:
        """One call, or several in a row, with the section around them, in any of the layouts."""
        return choice([self._calls(wire, most) for wire in self.wires()])

    def _calls(self, wire: Wire, most: int | None) -> Node:
        one = self.call(wire)
        between = sequence(BLANK, self.literal(wire.between), BLANK)
        several: Node = one if most == 1 else Repeat(one, 1, most, between)
        prefix = sequence(optional(Special(self.form.prefix)), BLANK) if self.form.prefix else Seq(())
        if wire.section is None:
            return sequence(prefix, several)
        opened, closed = map(self.literal, wire.section)
        node = sequence(prefix, opened, BLANK, several, BLANK, closed)
        return choice([one, node]) if self.form.bare else node

    def one(self) -> Node:
        """One call, in any layout that has no section."""
        return choice([self.call(wire) for wire in self.wires() if wire.section is None])

    def call(self, wire: Wire) -> Node:
        """One call of any of the tools; what stands before the name is written once for all of them."""
        if not self.known:
            return Choice(())
        before: list[Node] = []
        for index, part in enumerate(wire.call):
            if isinstance(part, (Name, JsonCall)):
                rest = wire.call[index:]
                named: Node = Choice(tuple(self._rests(rest)))
                if isinstance(part, JsonCall):
                    named = sequence(self._head(part), named)
                    if part.turned:
                        after = wire.call[index + 1 :]
                        named = choice([named, *(self._turned(part, after, tool) for tool in self.known)])
                return sequence(*before, named)
            before += [self._part(part, self.known[0]), self._gap(wire.call[index : index + 2])]
        raise AssertionError(f"the layout of {self.form.name} has no name")

    def _rests(self, parts: tuple[Part, ...]) -> list[Node]:
        """The calls from each tool's name on; where no rule is shared, the same for every list of tools."""
        if self._own is None or not all(map(_by_itself, parts)):
            return [self._rest_here(parts, tool) for tool in self.known]
        follows = self._follows(parts)
        key: Any = follows or (*self._own, self.order, parts)
        made: list[Any] = [tool.written.get(key) for tool in self.known]
        for at, tool in enumerate(self.known) if None in made else ():
            if made[at] is None:
                made[at] = tool.written[key] = (
                    self._rest(parts, tool, follows) if follows else self._rest_alone(parts, tool)
                )
        if follows is None:
            self.tagged_notes += [note for one in made for note in one.notes]
        return made

    def _rest_alone(self, parts: tuple[Part, ...], tool: Tool) -> Node:
        """What follows the name is the tool's own."""
        told = len(self.tagged_notes)
        node = self._rest_here(parts, tool)
        notes, self.tagged_notes[told:] = self.tagged_notes[told:], []
        first, *rest = _parts(node)
        assert isinstance(first, Text) and first.text.startswith(tool.name)
        follows = Follows(sequence(Text(first.text[len(tool.name) :]), *rest))
        return Kept(tool.name, follows, None, lambda: node, notes)

    def _rest(self, parts: tuple[Part, ...], tool: Tool, follows: Follows) -> Node:
        if tool.strings_in:
            return Seq(_parts(self._rest_here(parts, tool)))
        self.check_name(parts, tool)
        head = tool.name if isinstance(parts[0], Name) else dump(tool.name)
        schema = close(tool.parameters) if self.strict else tool.parameters
        return Kept(head, follows, forms.written(schema), lambda: self._rest_here(parts, tool))

    def _follows(self, parts: tuple[Part, ...]) -> Follows | None:
        """What follows the names of tools, where that is the same for all but for the arguments' JSON."""
        if sum(isinstance(part, (JsonArguments, JsonCall)) for part in parts) != 1:
            return None
        key = self._own, parts
        if key not in _FOLLOWS:
            first, *rest = _parts(self._rest_here(parts, _ANY_TOOL))
            head = _ANY_TOOL.name if isinstance(parts[0], Name) else dump(_ANY_TOOL.name)
            assert isinstance(first, Text) and first.text.startswith(head)
            _FOLLOWS[key] = Follows(sequence(Text(first.text[len(head) :]), *rest))
        return _FOLLOWS[key]

    def _rest_here(self, parts: tuple[Part, ...], tool: Tool) -> Node:
        self.check_name(parts, tool)
        made: list[Node] = []
        for index, part in enumerate(parts):
            made += [self._part(part, tool, parts[index + 1 :]), self._gap(parts[index : index + 2])]
        return sequence(*made)

    def _turned(self, part: JsonCall, after: tuple[Part, ...], tool: Tool) -> Node:
        """A call's object with the arguments before the name."""
        head = sequence(Text("{"), LINE, self._key(part.arguments), self.json(tool), Text(","), LINE)
        made: list[Node] = [head, self._key(part.name), Text(dump(tool.name)), LINE, Text("}")]
        for index, inner in enumerate(after):
            made += [self._gap((part, *after)[index : index + 2]), self._part(inner, tool)]
        return sequence(*made)

    def _gap(self, pair: tuple[Part, ...]) -> Node:
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
        if any(
            isinstance(part, (JsonArguments, JsonCall, MarkedArguments, PythonArguments))
            for part in (left, right)
        ):
            return LINE
        ends = isinstance(left, str) and self.form.pieces(left)[-1][0] in self.form.special
        begins = isinstance(right, str) and self.form.pieces(right)[0][0] in self.form.special
        return LINE if ends or begins else Seq(())

    def _head(self, part: JsonCall) -> Node:
        """A call's object up to the name."""
        number: Node = Seq(())
        if part.id:
            number = sequence(self._key(part.id), Text('"'), Regex("[0-9]+"), Text('"'), Text(","), LINE)
        return sequence(Text("{"), LINE, number, self._key(part.name))

    def _key(self, key: str) -> Node:
        return sequence(Text(dump(key)), Text(":"), SPACE)

    def _part(self, part: Part, tool: Tool, after: Sequence[Part] = ()) -> Node:
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
            return self.json(tool)
        if isinstance(part, JsonCall):
            comma = sequence(Text(","), LINE)
            last: Node = Seq(())
            if part.last_id:
                last = optional(sequence(comma, self._key("id"), Text('"'), Regex(part.last_id), Text('"')))
            arguments = sequence(self._key(part.arguments), self.json(tool))
            return sequence(Text(dump(tool.name)), comma, arguments, last, LINE, Text("}"))
        if tool.strings_in and isinstance(part, (PythonArguments, MarkedArguments, Elements, Tagged)):
            if tool.convert is not None:  # its reader judges the strings
                self.tagged_notes.append(loosened(owner, "contentSchema"))
                return self._part(part, replace(tool, strings_in={}), after)
            raise UnsupportedSchema(
                f"{owner}: a format that writes each argument by itself can't hold strings of a grammar;"
                " choose a format that writes JSON"
            )
        if isinstance(part, (PythonArguments, MarkedArguments, Elements)):
            return self._notation(part).arguments(tool.parameters, owner, self.strict)
        if isinstance(part, Tagged):
            return tagged_arguments(
                part,
                tool.parameters,
                owner,
                self.literal,
                order=self.order,
                strict=self.strict,
                loosen=lambda keyword: self.tagged_notes.append(loosened(owner, keyword)),
                ends=[self.form.tokens(text)[0] for text in stops_after(after) if self.form.tokens(text)],
                special=self.form.special,
                embedded=self.form.embedded,
                call_heads=call_heads(self.form),
            )
        made: list[Node] = []
        for index, inner in enumerate(part.parts):
            made += [self._part(inner, tool), self._gap(part.parts[index : index + 2])]
        inside = sequence(*made)
        return inside if part.written else optional(inside)

    def _notation(self, part: PythonArguments | MarkedArguments | Elements) -> Pythonic | Marked | Nested:
        """What writes the arguments, one for all tools."""
        if part not in self._notations:
            made: Pythonic | Marked | Nested
            if isinstance(part, PythonArguments):
                made = Pythonic(self.rules, self.order, part.json_words)
            elif isinstance(part, MarkedArguments):
                made = Marked(self.rules, self.order, part, self.literal)
            else:
                made = Nested(self.rules, self.order, part, self.literal)
            self._notations[part] = made
        return self._notations[part]

    def json(self, tool: Tool) -> Node:
        """The arguments as one JSON object."""
        if tool is _ANY_TOOL:
            return Slot()
        schema = close(tool.parameters) if self.strict else dict(tool.parameters)
        return Json(schema, strings_in=tuple(tool.strings_in.items()))

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

    def check_name(self, parts: tuple[Part, ...], tool: Tool) -> None:
        """Raise unless readers can tell where the name ends, and Python can read it where it is to."""
        if not isinstance(parts[0], Name):
            return
        name = tool.name
        stops = [self.form.tokens(p)[0] for p in stops_after(parts[1:]) if self.form.tokens(p)]
        spaced = name != name.strip() or "\n" in name or (self.form.channels and len(name.split()) > 1)
        python = any(isinstance(part, PythonArguments) for part in parts)
        foreign = python and not all(n.isidentifier() and not iskeyword(n) for n in name.split("."))
        if spaced or foreign or any(stop in name for stop in stops):
            raise ToolError(
                f"the tool name {name!r} can't be written in the format {self.form.name!r}; rename it"
            )


def _parts(node: Node) -> tuple[Node, ...]:
    return node.parts if isinstance(node, Seq) else (node,)


def call_heads(form: Format) -> tuple[str, ...]:
    """What a call of the format's own layout begins with, as its template writes it."""
    first = form.wire.call[0]
    return (first,) if isinstance(first, str) else ()


def stops_after(parts: Sequence[Part]) -> list[str]:
    """The literals that may come right after a name, up to the first that has to."""
    stops: list[str] = []
    for part in parts:
        if isinstance(part, str):
            if part.strip():
                return [*stops, part]
        elif isinstance(part, Maybe):
            stops += [p for p in part.parts[:1] if isinstance(p, str)]
        elif isinstance(part, Either):
            return [*stops, *part.texts]
        elif isinstance(part, Tagged):
            stops.append(part.before)
        elif isinstance(part, Elements):
            stops.append(part.marker)
        elif isinstance(part, PythonArguments):
            return stops
        elif isinstance(part, (JsonArguments, MarkedArguments)):
            return [*stops, "{"]
    return stops
