"""Reading a model's output back: calls, text and reasoning.

Purpose: one incremental reader for all formats.  `parse_tool_calls` feeds it a whole text, `ToolCallStream`
pieces of it (`stream.py`); the result is the same by construction (`source.py`).
Invariant: nothing is lost: every character of the output is in the content, the reasoning, a call, or is
whitespace or a marker; what looks like a call and is none is an error where the format marks calls, and
content where it does not.  An error costs the call that it is about and no other.
Complexity: linear in the text for marked formats; where calls have no marker, each "{" or "[" that begins
like a call of a known tool and is none is read twice, up to `REREAD` characters in all.
Rejected: repairing calls of two readings; guessing tools that were not given.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools import read_harmony
from tokenform.frontends.tools.calls import ToolCall, ToolCalls
from tokenform.frontends.tools.definitions import Tool, ToolLike, read_tools
from tokenform.frontends.tools.formats import named
from tokenform.frontends.tools.layout import Either, Format, JsonCall, Name, Part, PythonArguments, Wire
from tokenform.frontends.tools.read_call import CallReader
from tokenform.frontends.tools.read_nested import NestedPlace, whole_numbers
from tokenform.frontends.tools.read_told import Nobody
from tokenform.frontends.tools.read_values import fail, passed_over
from tokenform.frontends.tools.source import WHITESPACE, Reading, Source
from tokenform.frontends.tools.turn import told_reasoning

# Most characters that are read again after what looked like a call was none; beyond it, such text is text.
REREAD = 200_000
# What happens: ("content" | "reasoning" | "arguments", text), ("call", index, name, id), ("end", call).
Event = tuple[Any, ...]


def read_turn(
    text: str,
    tools: Iterable[ToolLike],
    *,
    format: Format | str,
    reasoning: str = "auto",
    prompt: str | None = None,
    validate: bool = True,
) -> ToolCalls:
    """`parse_tool_calls` (`stream.py`) of a format that is known."""
    reader = Reader(format, tools, reasoning=reasoning, prompt=prompt, validate=validate)
    reader.source.end()  # nothing is waited for
    reader.feed(text)
    reader.check()
    return reader.result


def _text(part: Part) -> str:
    """The part itself where it is a literal."""
    return part.texts[0] if isinstance(part, Either) else part if isinstance(part, str) else ""


def _refuse(wire: Wire, error: ToolError, start: int | None) -> Reading[bool]:
    raise error
    yield  # a reading, like `_recover`


class Reader:
    """The incremental reader.

    `feed` and `close` return what happened, `result` is what was read so far, `errors` are about the calls
    that were refused, `check` raises the first of them.
    """

    def __init__(
        self,
        format: Format | str,
        tools: Iterable[ToolLike],
        *,
        reasoning: str = "auto",
        prompt: str | None = None,
        validate: bool = True,
    ) -> None:
        self.form = named(format)
        self.errors: list[ToolError] = []
        self._result = ToolCalls()
        self._said: list[str] = []
        self._thoughts: list[str] | None = None
        self.source = Source()
        self._tools = read_tools(tools).by_name
        self._reasoning = told_reasoning(reasoning, prompt, self.form)
        self._validate = validate
        self.calls = CallReader(self.form, self._tools, self.source, self)
        self._events: list[Event] = []
        self._held: list[Event] | None = None
        self._hold = "none"
        self._tool: Tool | None = None
        self._id = ""
        self._fragments: list[str] = []
        self._begun = 0
        self._waiting: list[str] | None = []
        self._skip = ""
        self._feeds: list[str] = []
        self._openers = self._table()
        self._sure = [o for o, wires in self._openers.items() if not all(w.guess for w in wires)]
        self._reading = read_harmony.read(self) if self.form.channels else self._read()
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
        if next(self._reading, self) is self:
            self._done = True
        return self._events

    @property
    def result(self) -> ToolCalls:
        """The calls, content and reasoning so far."""
        if len(self._said) > 1:
            self._said = ["".join(self._said)]
        self._result.content = self._said[0] if self._said else None
        if self._thoughts and len(self._thoughts) > 1:
            self._thoughts = ["".join(self._thoughts)]
        self._result.reasoning = None if self._thoughts is None else "".join(self._thoughts)
        return self._result

    def check(self) -> None:
        """Raise the first error; its `calls` are the result."""
        if self.errors:
            self.errors[0].calls = self.result
            raise self.errors[0]

    # What the readers of formats report.

    def happened(self, *event: Any) -> None:
        (self._events if self._held is None else self._held).append(event)

    @property
    def opened(self) -> bool:
        """Whether the prompt has opened a thought."""
        return self._reasoning == "open"

    @property
    def has_content(self) -> bool:
        return bool(self._said)

    @property
    def has_thoughts(self) -> bool:
        """Whether there is reasoning that is not empty."""
        return bool(self._thoughts)

    def content(self, text: str) -> None:
        """Text outside calls; whitespace is held back until it is known to stand before text."""
        if self._waiting is not None:
            rest = text.lstrip(WHITESPACE + self._skip)
            self._waiting.append(text[: len(text) - len(rest)])
            if not rest:
                return
            first = not self._skip and not self._begun and self._thoughts is None
            text, self._waiting = ("".join(self._waiting) if first else "") + rest, None
        self._said.append(text)
        self.happened("content", text)

    def think(self) -> None:
        """There is reasoning, and be it empty."""
        self._thoughts = self._thoughts or []

    def thought(self, text: str) -> None:
        """Text of the reasoning block; line feeds at its edges are no part of it."""
        self.think()
        assert self._thoughts is not None
        if not self._thoughts:
            text = text.lstrip("\n")
        body = text.rstrip("\n")
        if body:
            feeds = "".join(self._feeds)
            self._feeds = [text[len(body) :]]
            self._thoughts.append(feeds + body)
            self.happened("reasoning", feeds + body)
        else:
            self._feeds.append(text)

    def begin(self, tool: Tool, id: str) -> None:
        made = secrets.token_hex(5)[:9] if self.form.short_ids else f"call_{secrets.token_hex(12)}"
        self._tool, self._id, self._fragments = tool, id or made, []
        if self._hold == "name":
            self._commit()
        self.happened("call", self._begun, tool.name, self._id)
        self._begun += 1

    def fragment(self, text: str) -> None:
        if text:
            if self._hold == "argument" and text.strip() not in ("", "{", "}"):
                self._commit()
            self._fragments.append(text)
            self.happened("arguments", text)

    def finish(self) -> None:
        assert self._tool is not None
        self._waiting, self._skip = [], WHITESPACE
        try:
            try:
                arguments = json.loads("".join(self._fragments))
            except (ValueError, RecursionError) as error:
                raise ToolError(f"the arguments of {self._tool.name!r} can't be read: {error}") from None
            if self._validate:
                self._tool.validate(arguments)
                if any("." in piece or "e" in piece.lower() for piece in self._fragments):
                    arguments = whole_numbers(arguments, NestedPlace(self._tool.parameters))
        except ToolError as error:
            if self._held is not None:
                raise
            self.errors.append(error)
            return
        call = ToolCall(self._tool.name, arguments, self._id, self._tool)
        self._result.append(call)
        self.happened("end", call)

    # Formats whose calls stand in free text.

    def _table(self) -> dict[str, list[Wire]]:
        """The layouts by the text that they begin with; the template's own first."""
        table: dict[str, list[Wire]] = {}
        known = (self.form.wire, *self.form.also)
        for wire in known:
            table.setdefault(self.form.opener(wire), []).append(wire)
        taken = frozenset(table)
        for bare in (bare for wire in known for bare in self._without_opener(wire, taken)):
            for opener in self._begins(bare):
                table.setdefault(opener, []).append(bare)
        return table

    def _begins(self, wire: Wire) -> list[str]:
        """What calls of this layout begin with: names, where nothing stands before them."""
        if wire.section == ("", wire.section[1] if wire.section else None) and isinstance(wire.call[0], Name):
            return [name + _text(wire.call[1]) for name in self._tools]
        return [self.form.opener(wire)]

    def _without_opener(self, wire: Wire, known: frozenset[str]) -> list[Wire]:
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

    def _has_mark(self, wire: Wire) -> bool:
        """Whether a special token closes the section."""
        closer = self.form.tokens(wire.section[1])[-1] if wire.section else ""
        return closer in (*self.form.special, *self.form.embedded)

    def _closers(self) -> set[str]:
        """Tokens that close calls and sections."""
        literals = {
            literal.strip()
            for wire in (self.form.wire, *self.form.also)
            for literal in (wire.section[1] if wire.section else "", _text(wire.call[-1]))
        }
        return {
            text
            for text in literals
            if text in self.form.special or any(t in text for t in self.form.embedded)
        }

    def _read(self) -> Reading[None]:
        yield from self._read_reasoning()
        lead = self.form.lead
        openers = list(self._openers)
        # in what may be a thought that the prompt has opened, anything may be spoken of
        sure = self._tools and not (self.form.prompt_opens and self._reasoning == "auto")
        closers, inner = self._closers(), self.form.inner if sure else ()
        stops = [*openers, *(lead + o for o in openers if lead), *self.form.dropped, *closers, *inner]
        while True:
            stop = yield from self.source.until(stops, self.content)
            if stop is None:
                return
            opener = stop[len(lead) :] if lead and stop.startswith(lead) else stop
            if opener in self._openers and (yield from self._take_calls(opener)):
                continue
            behind_a_call = bool(self._skip) and self._waiting is not None
            if stop in self.form.dropped or (stop in closers and behind_a_call):
                self.source.take(len(stop))
            elif stop in inner:
                self.errors.append(fail(self.source, f"{stop!r} stands outside of a call", asked=False))
                self.content(self.source.take(len(stop)))
            else:
                self.content(self.source.take(1))

    def _take_calls(self, opener: str) -> Reading[bool]:
        before = self.source.before
        whole = self.form.whole_word or opener[0].isalpha()
        if whole and (before.isalnum() or before in tuple("_.")):
            return False
        wires = self._openers[opener]
        for wire in wires:
            tentative = wire.guess or wire is not self.form.wire
            if tentative and self._reread > REREAD:
                continue
            if (yield from self._attempt(wire, sure=len(wires) == 1)):
                return True
        if wires[0] is self.form.wire and not self.form.wire.guess and len(wires) > 1:
            return (yield from self._attempt(wires[0], sure=True))
        return False

    def _attempt(self, wire: Wire, sure: bool) -> Reading[bool]:
        """Read calls of this layout; where it is not sure that calls are meant, go back if they are none.

        sure: no other layout begins like this.  The template's own layout is meant as soon as an argument is
        read in it.
        """
        at_start = self._waiting is not None and not self._said
        own = wire is self.form.wire and not wire.guess
        sure = own and sure
        if wire.closed and not at_start and not self._has_mark(wire):
            return False  # a bracket that nothing opened tells only where nothing stands before
        told = not wire.closed or (self._has_mark(wire) and not isinstance(wire.call[0], Name))
        named = at_start and wire.guess and told
        self._hold = "none" if sure else "argument" if own else "name" if named else "all"
        self._held = None if sure else []
        mark, calls, begun = self.source.mark(), len(self._result), self._begun
        waiting, skip = self._waiting and list(self._waiting), self._skip
        try:
            yield from self._section(wire, self.calls, self._recover)
        except ToolError:
            self._held = None
            self._reread += self.source.position - mark
            del self._result[calls:]
            self._begun, self._waiting, self._skip = begun, waiting, skip
            self.source.back(mark)
            return False
        finally:
            self.source.release(mark)
        self._commit()
        if wire.guess:
            self._skip = WHITESPACE + ";,]}"
        return True

    def _recover(self, wire: Wire, error: ToolError, start: int | None) -> Reading[bool]:
        """Keep the error, and find the place where reading goes on: whether that is within the section.

        start: where the call begins.
        """
        if self._held is not None:
            raise error
        self.errors.append(error)
        self._waiting, self._skip = [], WHITESPACE
        if error.passed and wire.section:
            return True
        closed = self.calls.tokens(wire.section[1] if wire.section else _text(wire.call[-1]))
        begun = self.calls.tokens(_text(wire.call[0])) if wire.section else ()
        # a bracket may stand anywhere in what is broken; a marker that long is meant
        ends, begins = ([t for t in tokens if len(t) > 3] for tokens in (closed[-1:], begun[:1]))
        if wire.section and not begins and start is not None:
            marks = [*ends, *(opener for opener in self._sure if len(opener) > 3)]
            if (yield from passed_over(self.source, start, marks)):
                yield from self.calls.braces(())
                error.passed = True
                return True
        stop = yield from self.source.until([*ends, *begins, *self._openers], lambda text: None)
        if stop in ends:
            self.source.take(len(stop))
        return stop in begins

    def _commit(self) -> None:
        """From here on calls are meant: what was held back has happened."""
        held, self._held, self._hold = self._held, None, "none"
        self._events += held or []

    def _section(
        self, wire: Wire, calls: CallReader, recover: Callable[[Wire, ToolError, int | None], Reading[bool]]
    ) -> Reading[None]:
        """The calls of a section, or one call where there is none.

        recover: goes on after a call that was refused, see `_recover`.
        """
        pythonic = any(isinstance(part, PythonArguments) for part in wire.call)
        within = wire.section is not None
        try:
            if wire.section:
                yield from calls.literal(wire.section[0])
        except ToolError as error:
            within = yield from recover(wire, error, None)
            if not within:
                return
        while True:
            yield from self.source.blank()
            start = self.source.mark()
            try:
                yield from calls.call(wire)
                apart = True
            except ToolError as error:
                if not (yield from recover(wire, error, start)):
                    return
                apart = error.passed
            finally:
                self.source.release(start)
            if wire.section is None:
                return
            if (yield from calls.ends(wire.section[1], cut=not wire.closed)):
                return
            if not apart:
                continue
            try:
                yield from calls.literal(wire.between)
            except ToolError as error:
                if not (yield from recover(wire, error, None)):
                    return
            if pythonic and (yield from calls.try_literal(wire.section[1])):  # Python's last comma
                return

    def _read_reasoning(self) -> Reading[None]:
        opened, closed = self.form.reasoning
        if self._reasoning == "none":
            return
        # also where the prompt has opened the block: some models write the marker once more
        mark = self.source.mark()
        yield from self.source.blank()
        explicit = yield from self.source.accept(opened)
        if not explicit:
            self.source.back(mark)
        self.source.release(mark)
        opens = explicit or self._reasoning == "open"
        if not opens and (self._reasoning == "own" or not (yield from self._closes(closed))):
            return
        self.think()
        if (yield from self.source.until([closed, *self._sure], self.thought)) not in (None, closed):
            yield from self._thought_to(closed)
        yield from self.source.accept(closed)

    def _thought_to(self, closed: str) -> Reading[None]:
        """The rest of a block that a call stands in: to its closing marker, outside of calls, and if there is
        none to the first call.  (What the model only thinks of in a closed block is no call.)
        """
        mark = self.source.mark()
        silent = CallReader(self.form, self._tools, self.source, Nobody())
        end = mark if self.form.trigger_ends_reasoning else None
        while True:
            stop = yield from self.source.until([closed, *self._sure], lambda text: None)
            if stop is None or stop == closed:
                break
            place = self.source.position
            if not (yield from self._passes(stop, silent)):
                self.source.take(len(stop))
            elif end is None:
                end = place
        if stop == closed or end is None:
            end = self.source.position
        self.source.back(mark)
        self.source.release(mark)
        self.thought(self.source.take(end - mark))

    def _passes(self, opener: str, silent: CallReader) -> Reading[bool]:
        """Whether calls stand here, which are then passed over without a word."""
        for wire in self._openers[opener]:
            if self._reread > REREAD:
                break
            mark = self.source.mark()
            try:
                yield from self._section(wire, silent, _refuse)
            except ToolError:
                self._reread += self.source.position - mark
                self.source.back(mark)
            else:
                return True
            finally:
                self.source.release(mark)
        return False

    def _closes(self, closed: str) -> Reading[bool]:
        """Whether a block that the prompt opened is closed before the first call; nothing is taken.

        Where the prompt always opens one, calls in it are passed over.
        """
        if self.form.at_start:
            return False
        mark = self.source.mark()
        silent = CallReader(self.form, self._tools, self.source, Nobody())
        while True:
            stop = yield from self.source.until([closed, *self._sure], lambda text: None)
            if stop is None or stop == closed or not self.form.prompt_opens:
                break
            if not (yield from self._passes(stop, silent)):
                self.source.take(len(stop))
        self.source.back(mark)
        self.source.release(mark)
        return stop == closed
