"""One call, read by the layout of its format.

Purpose: walks the parts of a `Wire` over a `Source` and reports the call as it comes: its beginning with name
and id, its arguments as fragments of JSON, its end.  Literals are read by `read_literals.py`.
Invariant: what is reported of a call joins to one JSON object; whitespace around markers is the reader's to
skip.
Complexity: linear in the text.
Rejected: regular expressions over the finished text (arguments hold every marker that there is, inside
strings).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from tokenform.errors import ToolError
from tokenform.frontends.tools.call import NOTATIONS
from tokenform.frontends.tools.layout import (
    Either,
    Format,
    Id,
    JsonArguments,
    JsonCall,
    MarkedArguments,
    Maybe,
    Name,
    Part,
    PythonArguments,
    Wire,
)
from tokenform.frontends.tools.openers import stops_after
from tokenform.frontends.tools.places import Place
from tokenform.frontends.tools.read_literals import ArgumentsReader, CallReport, LiteralReader
from tokenform.frontends.tools.read_values import (
    fail,
    json_string,
    json_value,
    object_in_string,
    whole_json_string,
)
from tokenform.frontends.tools.source import Reading, Source
from tokenform.frontends.tools.tool import Tool

_ID = re.compile(r"[\w.-]*")
_NAMES = ("name", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters")
_IDS = ("id", "tool_call_id")


class CallReader(LiteralReader):
    """Reads calls of one format."""

    def __init__(self, form: Format, tools: dict[str, Tool], source: Source, report: CallReport) -> None:
        super().__init__(form, tools, source, report)
        self._id = ""
        self._wrong: ToolError | None = None
        self._begun = False
        self._readers: dict[tuple[Part, str], ArgumentsReader] = {}

    def call(self, wire: Wire) -> Reading[None]:
        """One call, without what stands between calls.

        A call of an unknown tool is read to its end before it is refused (the error's `passed` is true),
        unless it is a guess that a call is meant at all.
        """
        self._tool, self._id, self._begun = None, "", False
        self._wrong, self._guess = None, wire.guess
        self.afresh()
        try:
            yield from self._parts(wire.call, wire)
        except ToolError as error:
            if error.cut and self.whole and not wire.guess:
                error.cut = False  # nothing is missing but the last marker, which a stop took
            elif self._wrong is None:
                raise
            if self._wrong is not None:
                self._wrong.passed, self._wrong.cut = False, error.cut
        if not self._begun:  # a layout of calls without arguments
            self._begin()
            self.fragment("{}")
        if wire.call[-1] == "}" and not self.over:
            yield from self.braces(())
        self._finish()

    def addressed(self, name: str) -> Reading[None]:
        """One call whose name was read already: its arguments."""
        self._tool, self._id, self._wrong, self._guess = None, "", None, False
        self._tool = self.find(name)
        self._begin()
        yield from self._json_arguments(True, self.fragment)
        yield from self.braces(())
        self._finish()

    def _begin(self) -> None:
        self._begun = True
        if self._tool is not None:
            self.report.begin(self._tool, self._id)
        elif self._wrong is None:
            raise fail(self.source, "the call has no name")

    def _finish(self) -> None:
        if self._wrong is not None:
            raise self._wrong
        self.report.finish()

    def _parts(self, parts: Sequence[Part], wire: Wire) -> Reading[None]:
        for index, part in enumerate(parts):
            rest = parts[index + 1 :]
            if self.over:
                return
            before = not self._begun and self._tool is None and self._wrong is None
            if before and isinstance(part, str):
                yield from self.opening(part, rest, wire)
            elif before and self._named and isinstance(part, Id):
                pass  # it went with what is missing
            elif isinstance(part, str):
                yield from self.literal(part, wire)
            elif isinstance(part, Either):
                for text in part.texts[1:]:
                    if (yield from self.try_literal(text)):
                        break
                else:
                    take = self.opening(part.texts[0], rest, wire) if before else None
                    yield from take or self.literal(part.texts[0], wire)
            elif isinstance(part, Name):
                yield from self._name(rest, wire)
            elif isinstance(part, Id):
                yield from self._read_id(part)
            elif isinstance(part, Maybe):
                mark = self.source.mark()
                yield from self.source.blank()
                first = part.parts[0]
                there = isinstance(first, str) and (yield from self.source.matches(first))
                if there:
                    self.source.release(mark)
                    yield from self._parts(part.parts, wire)
                else:
                    self.source.undo(mark)
            elif isinstance(part, JsonCall):
                yield from self._json_call(part, rest, wire)
                self.whole = True
                yield from self.braces(rest)
            else:
                self._begin()
                yield from self._arguments(part, rest)

    def _arguments(self, part: Part, rest: Sequence[Part]) -> Reading[None]:
        """The arguments in a part of their own; `rest` comes after it."""
        if isinstance(part, JsonArguments):
            yield from self._json_arguments(True, self.fragment)
            self.whole = True
            yield from self.braces(rest)
        else:
            yield from self._reader(part, rest).arguments()
        self._read = True

    def _reader(self, part: Part, rest: Sequence[Part]) -> ArgumentsReader:
        """What reads the arguments of the tool that is called; a tool that is not known says nothing."""
        key = part, self._tool.name if self._tool else ""
        if key not in self._readers:
            place = Place(self._tool.parameters if self._tool else True)
            read = NOTATIONS[type(part)].reader
            self._readers[key] = read(self, part, place, stops_after(self.form, rest))
        return self._readers[key]

    def find(self, name: str, counted: bool = False) -> Tool | None:
        """The tool of this name; None: there is none.  counted: a bare number stands for the only tool."""
        if counted and name.isdigit() and len(self.tools) == 1:
            self._id = name
            return next(iter(self.tools.values()))
        if name not in self.tools:
            self._refuse(f"there is no tool {name!r}; there are {', '.join(map(repr, self.tools)) or 'none'}")
        return self.tools.get(name)

    def _refuse(self, message: str) -> None:
        """The call means nothing, but its text may go on."""
        error = fail(self.source, message, asked=False)
        if self._guess:
            raise error
        error.passed = True
        self._tool, self._wrong = None, self._wrong or error

    def _name(self, following: Sequence[Part], wire: Wire) -> Reading[None]:
        stops = stops_after(self.form, following)
        if any(isinstance(part, MarkedArguments) for part in following):
            stops.append("(")  # models write calls as Python does
        pieces: list[str] = []
        # a name that runs into another marker is none, and what follows may be the next call
        others = [
            mark for mark in self.form.special if not any(mark in stop or stop in mark for stop in stops)
        ]
        start = self.source.mark()
        stop = yield from self.source.until([*stops, *others], pieces.append)
        name = "".join(pieces).strip()
        python = any(isinstance(part, PythonArguments) for part in following)
        broken = stop not in stops or "\n" in name or (python and not name.replace(".", "_").isidentifier())
        if stop in stops and broken:
            self.source.back(start)
        self.source.release(start)
        if stop not in stops and self._only_a_name(name, stops, stop):
            return
        if broken:
            raise fail(self.source, "the call's name does not end")
        counted = any(isinstance(p, Maybe) and any(isinstance(i, Id) for i in p.parts) for p in wire.call)
        self._tool = self.find("".join(pieces).strip(), counted and ":" in stops)

    def _only_a_name(self, text: str, stops: Sequence[str], stop: str | None) -> bool:
        """Whether the call of a tool that needs no arguments is over: its end is missing, or a part of it."""
        ends = [
            text.removesuffix(s[:n]).strip() for s in stops for n in range(2, len(s)) if text.endswith(s[:n])
        ]
        names = [name for name in (text, *ends) if name in self.tools and self.tools[name].takes_none]
        if not names or (stop is None and text in self.tools):
            return False
        self._tool = self.find(names[0])
        self._begin()
        self.fragment("{}")
        self.over = self.whole = True
        return True

    def _read_id(self, part: Id) -> Reading[None]:
        yield from self.source.blank()
        text = yield from self.source.word(_ID)
        if not re.fullmatch(part.pattern, text):
            raise fail(self.source, f"{text!r} is no id of a call")
        self._id = part.full.format(id=text, name=self._tool.name if self._tool else "")

    def _json_call(self, layout: JsonCall, rest: Sequence[Part], wire: Wire) -> Reading[None]:
        """The call as one object, its members in any order, members of other names passed over."""
        seen: set[str] = set()
        yield from self._members(layout, rest, wire, seen, [])
        if "arguments" not in seen and self._takes_none():
            seen.add("arguments")
            self._begin()
            self.fragment("{}")
        for part in ("name", "arguments"):
            if part not in seen:
                self._refuse(f"the call has no {part}")
        if self._tool is None and self._wrong is None:
            self._refuse("the call's name must be a string")

    def _members(
        self, layout: JsonCall, rest: Sequence[Part], wire: Wire, seen: set[str], early: list[str]
    ) -> Reading[None]:
        """The members of the call's object.  early: the arguments, where they come before the name."""
        yield from self.literal("{")
        while True:
            yield from self.source.blank()
            key = yield from whole_json_string(self.source)
            if key.lower() in (layout.name, layout.arguments, *_NAMES, *_ARGUMENTS):
                key = key.lower()
            yield from self.literal(":")
            yield from self.source.blank()
            kind = "name" if key in (layout.name, *_NAMES) else key
            kind = "arguments" if key in (layout.arguments, *_ARGUMENTS) and key != layout.name else kind
            if kind in seen:
                self._refuse(f"the call has {key!r} twice")
            first = yield from self.source.peek()
            if kind == "name" and first == '"':
                self._tool = self.find((yield from whole_json_string(self.source)))
                if "arguments" in seen and self._tool is not None:
                    self._begin()
                    self.fragment("".join(early))
            elif key == "function" and first == "{" and "name" not in seen:  # as conversations have it
                yield from self._members(layout, (), wire, seen, early)
            elif kind == "arguments":
                yield from self._json_arguments(self._tool is not None and kind not in seen, early.append)
            else:
                other: list[str] = []
                yield from json_value(self.source, other.append)
                if key in _IDS:
                    self._id = str(json.loads("".join(other)))
            seen.add(kind)
            yield from self.source.blank()
            if (yield from self.source.accept("}")) or (yield from self._unclosed(rest, wire, seen)):
                return
            if not (yield from self.source.accept(",")):
                raise fail(self.source, "the call's object needs ',' or '}' here")

    def _unclosed(self, rest: Sequence[Part], wire: Wire, seen: set[str]) -> Reading[bool]:
        """Whether the call's object is over although its brace is missing: the call's end comes here."""
        if (self._guess and not wire.section) or not {"name", "arguments"} <= seen:
            return False
        for part in rest[:1]:
            if isinstance(part, str) and (yield from self.source.matches(self.form.tokens(part)[0])):
                return True
        return (yield from self.source.peek()) == "" or (yield from self.behind(wire))

    def _takes_none(self) -> bool:
        """Whether the tool can be called without arguments."""
        return self._tool is not None and self._tool.takes_none and not self._guess

    def _json_arguments(self, known: bool, keep: Callable[[str], None]) -> Reading[None]:
        """The arguments, told on if the call's name is known, else kept for later."""
        yield from self.source.blank()
        closers = yield from self._wrapped()
        if (yield from self.source.peek()) == '"':
            # an object as JSON text, which some servers write back into conversations
            pieces: list[str] = []
            yield from json_string(self.source, pieces.append)
            inside = object_in_string("".join(pieces))
            if inside is None:
                self._refuse("the arguments must be a JSON object")
            elif known:
                if not self._begun:
                    self._begin()
                self.fragment(inside)
            else:
                keep(inside)
        elif (yield from self.source.peek()) not in ("{", ""):
            self._refuse("the arguments must be a JSON object")
            yield from json_value(self.source, keep)
        else:
            if known and not self._begun:
                self._begin()
            yield from self.object(self.fragment if known else keep)
        for closer in closers:
            yield from self.literal(closer)

    def _wrapped(self) -> Reading[list[str]]:
        """Take a code block's or a parenthesis' beginning; gives what closes it."""
        for opener, closer in (("```json", "```"), ("```", "```"), ("(", ")")):
            if (yield from self.try_literal(opener)):
                yield from self.source.blank()
                return [closer]
        return []
