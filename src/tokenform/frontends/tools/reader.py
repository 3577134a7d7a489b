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

from collections.abc import Callable, Iterable

from tokenform.errors import ToolError
from tokenform.frontends.tools.calls import ToolCalls
from tokenform.frontends.tools.channels import read_harmony
from tokenform.frontends.tools.definitions import ToolLike, read_tools
from tokenform.frontends.tools.formats import named
from tokenform.frontends.tools.layout import Format, Name, PythonArguments, Wire
from tokenform.frontends.tools.openers import Openers, text_of
from tokenform.frontends.tools.read_call import CallReader
from tokenform.frontends.tools.read_literals import Nobody
from tokenform.frontends.tools.read_turn import Event, TurnRead
from tokenform.frontends.tools.read_values import fail, passed_over
from tokenform.frontends.tools.source import WHITESPACE, Reading
from tokenform.frontends.tools.turn import thought_state

# Most characters that are read again after what looked like a call was none; beyond it, such text is text.
REREAD = 200_000


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


def _refuse(wire: Wire, error: ToolError, start: int | None) -> Reading[bool]:
    raise error
    yield  # a reading, like `_recover`


class Reader(TurnRead):
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
        form, known = named(format), read_tools(tools).by_name
        super().__init__(form, known, thought_state(reasoning, prompt, form), validate)
        self._layouts = Openers(form, known)
        self._openers = self._layouts.table()
        self._ending = [*map(form.opener, form.written)] if form.trigger_ends_reasoning else []
        self._sure = [o for o, wires in self._openers.items() if not all(w.guess for w in wires)]
        self._reading = read_harmony(self) if self.form.channels else self._read()
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

    def _read(self) -> Reading[None]:
        yield from self._read_reasoning()
        lead = self.form.lead
        openers = list(self._openers)
        # in what may be a thought that the prompt has opened, anything may be spoken of
        sure = self.calls.tools and not (self.form.prompt_opens and self.reasoning == "auto")
        closers, inner = self._layouts.closers(), self.form.inner if sure else ()
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
        if wire.closed and not at_start and not self._layouts.has_mark(wire):
            return False  # a bracket that nothing opened tells only where nothing stands before
        is_certain = not wire.closed or (self._layouts.has_mark(wire) and not isinstance(wire.call[0], Name))
        named = at_start and wire.guess and is_certain
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
        self.commit()
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
        closed = self.form.tokens(wire.section[1] if wire.section else text_of(wire.call[-1]))
        begun = self.form.tokens(text_of(wire.call[0])) if wire.section else ()
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
                passed = True
            except ToolError as error:
                if not (yield from recover(wire, error, start)):
                    return
                passed = error.passed
            finally:
                self.source.release(start)
            if wire.section is None:
                return
            if (yield from calls.ends(wire.section[1], cut=not wire.closed)):
                return
            if not passed:
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
        if self.reasoning == "none":
            return
        # also where the prompt has opened the block: some models write the marker once more
        mark = self.source.mark()
        yield from self.source.blank()
        explicit = yield from self.source.accept(opened)
        if not explicit:
            self.source.undo(mark)
        opens = explicit or self.reasoning == "open"
        if not opens and (self.reasoning == "own" or not (yield from self._closes(closed))):
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
        closes, end = yield from self._past_calls(closed)
        if closes or end is None:
            end = self.source.position
        self.source.undo(mark)
        self.thought(self.source.take(end - mark))

    def _past_calls(self, closed: str) -> Reading[tuple[bool, int | None]]:
        """Passes over text and calls: whether the marker comes, outside of calls; where the first call is.

        What the grammar ends a thought by begins a call, and be it a broken one.
        """
        silent = CallReader(self.form, self.calls.tools, self.source, Nobody())
        stops, first = [closed, *self._sure], None
        while (stop := (yield from self.source.until(stops, lambda text: None))) not in (None, closed):
            place = self.source.position
            passed = yield from self._passes(stop, silent)
            if not passed:
                self.source.take(len(stop))
            if first is None and (passed or stop in self._ending):
                first = place
        return stop == closed, first

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
        if self.form.prompt_opens:
            found, _ = yield from self._past_calls(closed)
        else:
            found = (yield from self.source.until([closed, *self._sure], lambda text: None)) == closed
        self.source.undo(mark)
        return found
