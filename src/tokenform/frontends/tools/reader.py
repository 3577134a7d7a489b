"""Reading a model's output back: calls, text and reasoning.

Purpose: one incremental reader for all formats.  `parse_tool_calls` feeds it a whole text, `ToolCallStream`
(`stream.py`) pieces of it; the result is the same by construction (`source.py`).
Invariant: nothing is lost: every character of the output is in the content, the reasoning, a call, or is
whitespace or a marker; what looks like a call and is none is an error where the format marks calls, and
content where it does not.
Complexity: linear in the text for marked formats; where calls have no marker, each "{" or "[" that begins
like a call of a known tool and is none is read twice, up to `REREAD` characters in all.
Rejected: repairing malformed calls; guessing tools that were not given.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from typing import Any, Literal

from tokenform.errors import OptionError, ToolError
from tokenform.frontends.tools import harmony
from tokenform.frontends.tools.calls import ToolCall, ToolCalls
from tokenform.frontends.tools.definitions import Tool, ToolLike, by_name, read_tools
from tokenform.frontends.tools.formats import find_format
from tokenform.frontends.tools.layout import PythonArguments, Wire
from tokenform.frontends.tools.read_call import CallReader
from tokenform.frontends.tools.source import WHITESPACE, Reading, Source

# Most characters that are read again after what looked like a call was none; beyond it, such text is text.
REREAD = 200_000
# What happens: ("content" | "reasoning" | "arguments", text), ("call", index, name, id), ("end", call).
Event = tuple[Any, ...]


def parse_tool_calls(
    text: str,
    tools: Iterable[ToolLike],
    *,
    format: Any,
    reasoning: str = "auto",
    validate: bool = True,
) -> ToolCalls:
    """The calls of an output, with its content and its reasoning.

    Args:
        text: the output, special tokens included as text, without the prompt.
        tools: as for `tools`.
        format: a format's name, or a tokenizer whose chat template shows it.
        reasoning: "auto": a block that is closed before the first call is reasoning, whether the output or
            the prompt opened it; "open": the prompt opened one; "none": there is none.
        validate: check the arguments against the tool's schema.
    Raises:
        ToolError: a call that is malformed, of an unknown tool or with wrong arguments; the message says
            where.
    """
    reader = Reader(format, tools, reasoning=reasoning, validate=validate)
    reader.feed(text)
    reader.close()
    return reader.result


class Reader:
    """The incremental reader.  `feed` and `close` return what happened; `result` is what was read so far."""

    def __init__(
        self,
        format: Any,
        tools: Iterable[ToolLike],
        *,
        reasoning: str = "auto",
        validate: bool = True,
    ) -> None:
        if reasoning not in ("auto", "open", "none"):
            raise OptionError(f'reasoning must be "auto", "open" or "none", not {reasoning!r}')
        self.form = find_format(format)
        self.result = ToolCalls()
        self.source = Source()
        self._tools = by_name(read_tools(tools))
        self._reasoning, self._validate = reasoning, validate
        self.calls = CallReader(self.form, self._tools, self.source, self)
        self._events: list[Event] = []
        self._held: list[Event] | None = None
        self._hold = "none"
        self._tool: Tool | None = None
        self._id = ""
        self._fragments: list[str] = []
        self._begun = 0
        self._waiting: str | None = ""
        self._skip = ""
        self._feeds = ""
        self._openers = self._table()
        self._reading = harmony.read(self) if self.form.channels else self._read()
        self._done = False
        self._reread = 0

    def feed(self, piece: str) -> list[Event]:
        """Read a piece of the output."""
        if self._done:
            raise ToolError("the reader was closed; make a new one for the next output")
        self.source.feed(piece)
        return self._advance()

    def close(self) -> list[Event]:
        """Read to the end: the output is over."""
        if self._done:
            return []
        self.source.end()
        return self._advance()

    def _advance(self) -> list[Event]:
        self._events = []
        try:
            next(self._reading)
        except StopIteration:
            self._done = True
        except ToolError:
            self._done = True
            raise
        return self._events

    # What the readers of formats report.

    def happened(self, *event: Any) -> None:
        (self._events if self._held is None else self._held).append(event)

    def content(self, text: str) -> None:
        """Text outside calls; whitespace is held back until it is known to stand before text."""
        if self._waiting is not None:
            rest = text.lstrip(WHITESPACE + self._skip)
            self._waiting += text[: len(text) - len(rest)]
            if not rest:
                return
            first = not self._skip and not self.result and self.result.reasoning is None
            text, self._waiting = (self._waiting if first else "") + rest, None
        self.result.content = (self.result.content or "") + text
        self.happened("content", text)

    def thought(self, text: str) -> None:
        """Text of the reasoning block; line feeds at its edges are no part of it."""
        if not self.result.reasoning:
            text = text.lstrip("\n")
        body = text.rstrip("\n")
        if body:
            body, self._feeds = self._feeds + body, text[len(body) :]
            self.happened("reasoning", body)
        else:
            self._feeds += text
        self.result.reasoning = (self.result.reasoning or "") + body

    def begin(self, tool: Tool, id: str) -> None:
        made = secrets.token_hex(5)[:9] if self.form.short_ids else f"call_{secrets.token_hex(12)}"
        self._tool, self._id, self._fragments = tool, id or made, []
        if self._hold == "name":
            self._commit()
        self.happened("call", self._begun, tool.name, self._id)
        self._begun += 1

    def fragment(self, text: str) -> None:
        if text:
            self._fragments.append(text)
            self.happened("arguments", text)

    def finish(self) -> None:
        assert self._tool is not None
        try:
            arguments = json.loads("".join(self._fragments))
        except (ValueError, RecursionError) as error:
            raise ToolError(f"the arguments of {self._tool.name!r} can't be read: {error}") from None
        if self._validate:
            self._tool.validate(arguments)
        call = ToolCall(self._tool.name, arguments, self._id, self._tool)
        self.result.append(call)
        self.happened("end", call)
        self._waiting, self._skip = "", WHITESPACE

    # Formats whose calls stand in free text.

    def _table(self) -> dict[str, list[Wire]]:
        """The layouts by the text that they begin with; the template's own first."""
        table: dict[str, list[Wire]] = {}
        for wire in (self.form.wire, *self.form.also):
            table.setdefault(self.form.opener(wire), []).append(wire)
        return table

    def _read(self) -> Reading[None]:
        yield from self._read_reasoning()
        lead = self.form.lead
        openers = list(self._openers)
        stops = [*openers, *(lead + o for o in openers if lead), *self.form.dropped]
        while True:
            stop = yield from self.source.until(stops, self.content)
            if stop is None:
                return
            opener = stop[len(lead) :] if lead and stop.startswith(lead) else stop
            if opener in self._openers and (yield from self._take_calls(opener)):
                continue
            if stop in self.form.dropped:
                self.source.take(len(stop))
            else:
                self.content(self.source.take(1))

    def _take_calls(self, opener: str) -> Reading[bool]:
        before = self.source.before
        if self.form.whole_word and (before.isalnum() or before == "_"):
            return False
        wires = self._openers[opener]
        fault: ToolError | None = None
        for wire in wires:
            tentative = wire.guess or wire is not self.form.wire
            if tentative and self._reread > REREAD:
                continue
            read = yield from self._attempt(wire, only=len(wires) == 1)
            if read is True:
                return True
            fault = fault or (None if tentative else read)
        if fault:
            raise fault
        return False

    def _attempt(self, wire: Wire, only: bool) -> Reading[ToolError | Literal[True]]:
        """Read calls of this layout; go back, with the fault, if they are none.

        Where only this layout can be meant, the fault is raised; the template's own layout is meant as soon
        as a name is read in it.
        """
        at_start = self._waiting is not None and (not self.result.content)
        own = wire is self.form.wire and not wire.guess
        sure = own and only
        self._hold = "none" if sure else "name" if own or (at_start and wire.guess) else "all"
        self._held = None if sure else []
        mark, calls, begun = self.source.mark(), len(self.result), self._begun
        waiting, skip = self._waiting, self._skip
        try:
            yield from self._section(wire)
        except ToolError as error:
            if self._held is None:
                raise
            self._held = None
            self._reread += self.source.position - mark
            del self.result[calls:]
            self._begun, self._waiting, self._skip = begun, waiting, skip
            self.source.back(mark)
            return error
        finally:
            self.source.release(mark)
        self._commit()
        if wire.guess:
            self._skip = WHITESPACE + ";,"
        return True

    def _commit(self) -> None:
        """From here on calls are meant: what was held back has happened."""
        held, self._held, self._hold = self._held, None, "none"
        self._events += held or []

    def _section(self, wire: Wire) -> Reading[None]:
        if wire.section is None:
            yield from self.source.blank()
            yield from self.calls.call(wire)
            return
        pythonic = any(isinstance(part, PythonArguments) for part in wire.call)
        yield from self.calls.literal(wire.section[0])
        while True:
            yield from self.source.blank()
            yield from self.calls.call(wire)
            if (yield from self.calls.try_literal(wire.section[1])):
                return
            yield from self.calls.literal(wire.between)
            if pythonic and (yield from self.calls.try_literal(wire.section[1])):  # Python's last comma
                return

    def _read_reasoning(self) -> Reading[None]:
        opened, closed = self.form.reasoning
        if self._reasoning == "none":
            return
        if self._reasoning == "auto":
            mark = self.source.mark()
            yield from self.source.blank()
            explicit = yield from self.source.accept(opened)
            if not explicit:
                self.source.back(mark)
            self.source.release(mark)
            if not explicit and not (yield from self._closes(closed)):
                return
        self.result.reasoning = ""
        ends = [closed]
        if self.form.trigger_ends_reasoning:
            ends.append(self.form.opener(self.form.wire))
        if (yield from self.source.until(ends, self.thought)) == closed:
            self.source.take(len(closed))

    def _closes(self, closed: str) -> Reading[bool]:
        """Whether a block that the prompt opened is closed before the first call; nothing is taken."""
        if self.form.at_start:
            return False
        mark = self.source.mark()
        openers = [self.form.opener(self.form.wire)]
        stop = yield from self.source.until([closed, *openers], lambda text: None)
        self.source.back(mark)
        self.source.release(mark)
        return stop == closed
