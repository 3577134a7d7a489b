"""The literals of a layout, as models write them.

Purpose: markers with any whitespace beside them; what of them may be missing where what comes shows that the
name, the next call or the end of the section is here.  `ArgumentsReader` is what readers of arguments have of
the reader of their call.
Invariant: what is only looked at is not taken.
Complexity: linear in the text that is looked at, times the tools where a name is looked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tokenform.errors import ToolError
from tokenform.frontends.tools.layout import Format, JsonCall, Maybe, Name, Part, Wire
from tokenform.frontends.tools.openers import stops_after
from tokenform.frontends.tools.places import Place
from tokenform.frontends.tools.read_values import Emit, fail, json_value
from tokenform.frontends.tools.source import Reading, Source
from tokenform.frontends.tools.tool import Tool

# Most characters of arguments that are read again in another reading; beyond it, there is the first alone.
REREAD = 50_000


class CallReport(Protocol):
    """Who is told of a call as it is read."""

    def begin(self, tool: Tool, id: str) -> None: ...
    def fragment(self, text: str) -> None: ...
    def finish(self) -> None: ...


class Nobody:
    """Is told nothing: the text is only passed over."""

    def begin(self, tool: Tool, id: str) -> None: ...
    def fragment(self, text: str) -> None: ...
    def finish(self) -> None: ...


class LiteralReader:
    """Reads the literals of one format's layouts.

    Each method takes from the source; ToolError says where the text is no call of these tools.
    """

    def __init__(self, form: Format, tools: dict[str, Tool], source: Source, report: CallReport) -> None:
        self.form, self.tools, self.source, self.report = form, tools, source, report
        self.more = ""  # what a further argument begins with
        self._tool: Tool | None = None
        self._guess = False  # whether it is not sure that a call is meant
        self.afresh()

    def afresh(self) -> None:
        """Nothing of a call was read."""
        # Whether a part of what opens the call was there; whether its name comes although another is not.
        self._opened = self._named = False
        # Whether the arguments were read, and their end; whether what comes next shows that the call is over.
        self._read = self.whole = self.over = False

    def fragment(self, text: str) -> None:
        """Report a piece of the arguments."""
        if self._tool is not None:
            self.report.fragment(text)

    def object(self, emit: Emit) -> Reading[None]:
        """An object of JSON."""
        yield from self.source.blank()
        if (yield from self.source.peek()) != "{":
            raise fail(self.source, "the arguments must be a JSON object")
        yield from json_value(self.source, emit, not self._guess)

    def literal(self, text: str, wire: Wire | None = None) -> Reading[None]:
        """Take a literal, with any whitespace before and inside it.

        wire: the layout whose literal it is: after the arguments it may be missing where what comes next
        shows that the call is over.
        """
        start = self.source.mark()
        try:
            for token in self.form.tokens(text):
                yield from self.source.blank()
                if (yield from self.source.accept(token)):
                    self.whole = self.whole or self._read
                    continue
                here = yield from self.source.peek(len(token))
                if wire is not None and not wire.guess and (self._read or self.whole):
                    place = self.source.mark()
                    self.source.back(start)
                    self.over = yield from self.behind(wire)
                    if not self.over:
                        self.source.back(place)
                    self.source.release(place)
                if self.over:
                    break
                if self.source.ended and token.startswith(here):
                    self.source.take(len(here))
                    # it can't be the beginning of a further argument
                    self.whole = self.whole or (self._read and not self.more.startswith(here))
                raise fail(self.source, f"{token!r} is needed here" + (f", not {here!r}" if here else ""))
        finally:
            self.source.release(start)

    def opening(self, text: str, rest: Sequence[Part], wire: Wire) -> Reading[None]:
        """Take a literal before the call's name; parts of it may be missing where the name comes all the
        same, in a section or behind another part."""
        for token in self._words(text):
            yield from self.source.blank()
            if (yield from self.source.accept(token)):
                self._opened = True
            elif not self._named:
                meant = not wire.guess and (self._opened or wire.section)
                self._named = bool(meant) and (yield from self._name_comes(text, rest))
                if not self._named:
                    yield from self.literal(token, wire)

    def _words(self, literal: str) -> list[str]:
        """The literal cut at every special token, those within longer markers too."""
        return [word for piece, _ in self.form.pieces(literal) for word in piece.split()]

    def _name_comes(self, text: str, rest: Sequence[Part]) -> Reading[bool]:
        """Whether, behind what is there of the literals, a tool's name comes with what follows it, or the
        object of a call; nothing is taken."""
        start = self.source.mark()
        at = next((n for n, part in enumerate(rest) if isinstance(part, (Name, JsonCall))), None)
        before = [text, *(part.parts[0] if isinstance(part, Maybe) else part for part in rest[:at])]
        for token in (token for part in before if isinstance(part, str) for token in self._words(part)):
            yield from self.source.blank()
            yield from self.source.accept(token)
        yield from self.source.blank()
        found = False
        if at is not None and isinstance(rest[at], JsonCall):
            found = yield from self.source.matches("{")
        elif at is not None:
            stops = stops_after(self.form, rest[at + 1 :])
            name = self.source.mark()
            for one in self.tools:
                if not found and (yield from self.source.accept(one)):
                    yield from self.source.blank()
                    for stop in stops:
                        found = found or (yield from self.source.matches(stop))
                    self.source.back(name)
            self.source.release(name)
        self.source.undo(start)
        return found

    def behind(self, wire: Wire) -> Reading[bool]:
        """Whether the end of the section or the next call comes here; nothing is taken."""
        first = wire.call[0]
        opener = self.form.tokens(first) if isinstance(first, str) else ("{",) * isinstance(first, JsonCall)
        rows = [(*self.form.tokens(wire.between), *opener)] if opener else []
        if wire.section:
            rows.append(self.form.tokens(wire.section[1]))
        for row in rows:
            mark = self.source.mark()
            there = bool(row)
            for token in row:
                yield from self.source.blank()
                there = there and (yield from self.source.accept(token))
            self.source.undo(mark)
            if there:
                return True
        return False

    def braces(self, rest: Sequence[Part]) -> Reading[None]:
        """Pass over closing braces that nothing has opened, unless one comes next in the layout."""
        if not (rest and isinstance(rest[0], str) and rest[0].strip().startswith("}")):
            while (yield from self.try_literal("}")):
                pass

    def try_literal(self, text: str) -> Reading[bool]:
        """Take a literal if it is there."""
        mark = self.source.mark()
        for token in self.form.tokens(text):
            yield from self.source.blank()
            if not (yield from self.source.accept(token)):
                self.source.undo(mark)
                return False
        self.source.release(mark)
        return True

    def ends(self, closer: str, cut: bool = True) -> Reading[bool]:
        """Take what closes a section, if it comes.

        cut: behind a whole call a stop may have taken its rest, or the turn ends.
        """
        whole = self.whole and cut
        mark = self.source.mark()
        found = True
        for token in self.form.tokens(closer):
            yield from self.source.blank()
            if (yield from self.source.accept(token)):
                continue
            found = whole and (yield from self.source.within(token))
            if found:
                self.source.take(len((yield from self.source.peek(len(token)))))
                break
            self.source.back(mark)
            yield from self.source.blank()
            for end in self.form.dropped if whole else ():
                found = found or (yield from self.source.matches(end))
            if not found:
                self.source.back(mark)
            break
        self.source.release(mark)
        return found


class ArgumentsReader:
    """Reads the arguments of one tool in one layout.

    place: what the tool says of them.  ends: what may follow them.
    """

    def __init__(self, calls: LiteralReader, layout: Any, place: Place, ends: Sequence[str]) -> None:
        self.calls, self.source = calls, calls.source
        self.layout, self.place, self.ends = layout, place, ends
        self._reread = 0

    def arguments(self) -> Reading[None]:
        """All of them, reported as one object of JSON."""
        raise NotImplementedError

    def settled(
        self, read: Callable[[Place, Emit], Reading[None]], place: Place, emit: Emit
    ) -> Reading[None]:
        """What `read` reads here: of the readings the first whose value the place takes, else the first.

        Where there are several, nothing is told of the value before its end.
        """
        return self._settled(read, place, emit) if place.readings else read(place, emit)

    def _settled(
        self, read: Callable[[Place, Emit], Reading[None]], place: Place, emit: Emit
    ) -> Reading[None]:
        mark = self.source.mark()
        first: tuple[list[str], int, ToolError | None] | None = None
        for reading in (place, *place.readings):
            pieces: list[str] = []
            wrong = None
            try:
                yield from read(reading, pieces.append)
            except ToolError as error:
                wrong = error
            found = wrong is None and _takes(place, "".join(pieces))
            first = (pieces, self.source.position, wrong) if found or first is None else first
            self._reread += 0 if found else self.source.position - mark
            self.source.back(mark)
            if found or self._reread > REREAD:
                break
        self.source.release(mark)
        assert first is not None
        pieces, end, wrong = first
        self.source.back(end)
        for piece in pieces:
            emit(piece)
        if wrong is not None:
            raise wrong

    def key(self, key: str, seen: set[str], once: bool, emit: Emit) -> None:
        """Tells of the name of a member of an object; once: it may not come again."""
        if not key or (once and key in seen):
            raise fail(
                self.source, f"the argument {key!r} is given twice" if key else "an argument needs a name"
            )
        emit((", " if seen else "") + json.dumps(key, ensure_ascii=False) + ": ")
        seen.add(key)


def _takes(place: Place, text: str) -> bool:
    """Whether the place takes the value of a JSON text; no, where that is unclear."""
    try:
        return place.takes(json.loads(text))
    except (ToolError, ValueError, RecursionError):
        return False
