"""A list of tools and a format, as the tree of the texts that the model may write.

Purpose: `Builder.shape` puts together what comes before the calls (reasoning, free text), the calls in the
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
from collections.abc import Sequence
from functools import partial
from typing import Any

from tokenform.errors import InvalidSchema
from tokenform.frontends.tools.call import ANY_TOOL, CallWriter, Named, check_name
from tokenform.frontends.tools.channels import fenced_turn, harmony_call, harmony_turn
from tokenform.frontends.tools.formats import FORMATS
from tokenform.frontends.tools.layout import Format, JsonCall, Name, Wire
from tokenform.frontends.tools.shape import (
    BLANK,
    LAST,
    CachedOption,
    Choice,
    Follows,
    Free,
    Kind,
    Node,
    OneOf,
    Repeat,
    Seq,
    Shape,
    Special,
    Trigger,
    choice,
    optional,
    sequence,
    without,
)
from tokenform.frontends.tools.tool import Tool, Tools

# By format, strictness, order and what is named: a few for each format of the library.
_KINDS: dict[Any, Kind] = {}


class Builder:
    """The trees of one format for one list of tools.

    mode: "auto", "required" or "none".  most: calls; None: any number.  thought: see `thought_state`.
    """

    def __init__(
        self,
        form: Format,
        known: Sequence[Tool],
        strict: bool,
        order: str,
        mode: str,
        most: int | None,
        thought: str,
    ) -> None:
        self.form, self.strict, self.order = form, strict, order
        self.known = known if isinstance(known, Tools) else Tools(known)
        self.mode, self.most, self.thought = mode, most, thought
        self.rules: dict[str, Node] = {}
        self._notes: list[str] = []
        self._literals: dict[tuple[str, Node], Node] = {}
        self._values: dict[Any, dict[Any, Node]] = {}
        self._any = self.writer(ANY_TOOL)
        self.literal = self._any.literal
        # formats of this library are few; those of others' own are not kept by tools
        self._own = FORMATS.get(form.name) is form
        self._slotted: list[bool] = []

    def writer(self, tool: Tool, number: int = 0) -> CallWriter:
        """Writes calls of a tool; number: sets the names of rules apart from those of other writers."""
        given = self.form, tool, self.strict, self.order, self._literals, self._values
        return CallWriter(*given, _scope(tool, number))

    @property
    def slotted(self) -> bool:
        """Whether each call that was asked for has one document, its tool's own: the grammar tells of it."""
        return any(self._slotted) and all(self._slotted)

    def notes(self) -> tuple[str, ...]:
        """What the schemas allow and the format can't write."""
        return tuple(dict.fromkeys(self._notes))

    def shape(self) -> Shape:
        """The tree of the turn.

        Raises:
            InvalidSchema: a tool's parameters are nested too deeply.
        """
        try:
            if self.form.channels:
                one = harmony_call(self.named, self.form.wire.call[1:]) if self.known else Choice(())
                return Shape(harmony_turn(one, self.mode, self.most, self.thought), self.rules)
            root = self.turn(self.mode, self.most, self.thought)
            return Shape(root, self.rules, self.notes(), self.form.inner)
        except RecursionError:
            raise InvalidSchema("the parameters of a tool are nested too deeply for this format") from None

    @property
    def key(self) -> Any:
        """Equal for turns whose trees differ in what is `OneOf` alone; None: none is known."""
        parts = [part for wire in self.form.written for part in wire.call]
        turned = any(isinstance(part, JsonCall) and part.turned for part in parts)
        by_names = self.form.at_start and self.mode != "required" and isinstance(self.form.wire.call[0], Name)
        if not self._own or turned or by_names:
            return None
        return self.form.name, self.strict, self.order, self.mode, self.most, self.thought, bool(self.known)

    def turn(self, tool_choice: str, most: int | None, reasoning: str) -> Node:
        """The whole output."""
        if self.form.fenced:
            return fenced_turn(self.form, self.literal, self.calls(most), tool_choice, reasoning)
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
        marked = [wire for wire in self.form.written if self.form.opener(wire) in self.form.special]
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
        texts = dict.fromkeys(map(self.form.opener, self.form.written))
        whole = self.form.whole_word
        return tuple(Trigger(text, special=text in self.form.special, whole_word=whole) for text in texts)

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
        return choice([self._calls(wire, most) for wire in self.form.written])

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
        return choice([self.call(wire) for wire in self.form.written if wire.section is None])

    def call(self, wire: Wire) -> Node:
        """One call of any of the tools; what stands before the name is written once for all of them."""
        if not self.known:
            return Choice(())
        at = next(i for i, part in enumerate(wire.call) if isinstance(part, (Name, JsonCall)))
        part, named = wire.call[at], self.named(Named(wire.call[at:]))
        if isinstance(part, JsonCall):
            named = sequence(self._any.head(part), named)
            if part.turned:
                rest = wire.call[at + 1 :]
                named = choice([named, *(self.writer(tool).turned(part, rest) for tool in self.known)])
        return sequence(*self._any.row(wire.call, at), named)

    def named(self, calls: Named) -> Node:
        """Calls of any of the tools, from their names on."""
        return OneOf(tuple(self.options(calls)), calls)

    def options(self, calls: Named) -> list[Node]:
        """The calls of each tool; in formats of this library the same for every list of tools."""
        kind = self.kind(calls)
        if kind is None:
            return [self._option(calls, tool, None) for tool in self.known]
        made: list[Any] = [tool.written.get(kind) for tool in self.known]
        for at in [at for at, option in enumerate(made) if option is None]:
            tool = self.known[at]
            made[at] = tool.written[kind] = self._option(calls, tool, kind)
        if calls.alike:
            self._slotted.append(all(type(one) is CachedOption for one in made))
            return made
        for one in made:
            self._notes += one.notes
            self.rules.update(one.follows.rules)
        return made

    def kind(self, calls: Named) -> Kind | None:
        """The kind of calls; None: nobody keeps them."""
        self._slotted.append(self._own and calls.alike)
        if not self._own:
            return None
        key = self.form.name, self.strict, self.order, calls
        kind = _KINDS.get(key)
        if kind is None:
            rest = None
            if calls.alike:
                node = calls.write(self._any, calls.parts)
                rest = Follows(partial(without, node, calls.head(ANY_TOOL)))
            kind = _KINDS.setdefault(key, Kind(len(_KINDS), rest))
        return kind

    def texts(self, calls: Named, tool: Tool) -> tuple[str, str]:
        """What a call that is like all others begins with, and the schema of its arguments as JSON text."""
        check_name(self.form, calls.parts, tool)
        return calls.head(tool), tool.closed if self.strict else tool.text

    def _option(self, calls: Named, tool: Tool, kind: Kind | None) -> Node:
        """The calls of a tool; kind: None where nobody keeps them."""
        head = calls.head(tool)
        number = kind.number if kind else len(self.rules)
        # what is kept knows nothing of this list
        again = partial(_again, self.form, tool, self.strict, self.order, number, calls)
        if kind and kind.follows and not tool.strings_in:
            head, schema = self.texts(calls, tool)
            return CachedOption((kind, tool.branches), head, kind.follows, schema, again)
        writer = self.writer(tool, number)
        node = calls.write(writer, calls.parts)
        if kind and not kind.follows:
            return CachedOption.alone((kind, tool.branches), head, node, writer.rules, again, writer.notes())
        self._notes += writer.notes()
        self.rules.update(writer.rules)
        return Seq(node.parts) if isinstance(node, Seq) else node


def _scope(tool: Tool, number: int) -> str:
    """What the names of a tool's rules begin with."""
    return f"{tool.name} {number} "


def _again(form: Format, tool: Tool, strict: bool, order: str, number: int, calls: Named) -> Node:
    """The calls of a tool by itself."""
    return calls.write(CallWriter(form, tool, strict, order, {}, {}, _scope(tool, number)), calls.parts)
