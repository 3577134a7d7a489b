"""One call, read by the layout of its format.

Purpose: walks the parts of a `Wire` over a `Source` and reports the call as it comes: its beginning with name
and id, its arguments as fragments of JSON, its end.
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
from dataclasses import dataclass
from typing import Any

from tokenform.errors import TokenformError, ToolError
from tokenform.frontends.tools.conjuncts import TYPES, types_of
from tokenform.frontends.tools.definitions import Tool
from tokenform.frontends.tools.grammar import stops_after
from tokenform.frontends.tools.judge import fault
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
from tokenform.frontends.tools.members import Case, argument, member_cases, still
from tokenform.frontends.tools.read_nested import NestedReader, Place, marked_object
from tokenform.frontends.tools.read_told import Report
from tokenform.frontends.tools.read_values import (
    fail,
    inside_string,
    json_string,
    json_value,
    python_value,
    whole_json_string,
)
from tokenform.frontends.tools.source import Reading, Source
from tokenform.frontends.tools.tagged import heads

_ID = re.compile(r"[\w.-]*")
_KEY = re.compile(r"\w*")
_NAMES = ("name", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters")
_IDS = ("id", "tool_call_id")
_WORDS = {"true": True, "false": False, "none": None, "null": None}


class CallReader:
    """Reads calls of one format.

    Each method takes from the source; ToolError says where the text is no call of these tools.
    """

    def __init__(self, form: Format, tools: dict[str, Tool], source: Source, report: Report) -> None:
        self.form, self.tools, self.source, self.report = form, tools, source, report
        self._tool: Tool | None = None
        self._id = ""
        self._wrong: ToolError | None = None
        self._guess = False
        self._begun = False
        self._aside: list[str] | None = None
        # What ends the call after its arguments; whether these were read, and their end too.
        self._ends: tuple[str, ...] = ()
        self._read = self._whole = False
        self._arguments: dict[str, dict[tuple[Any, ...], Argument]] = {}
        self._cases: dict[str, list[Case] | None] = {}
        self._left: list[Case] | None = None
        self._value: list[str] = []
        self._places: dict[str, Place] = {}
        self._heads_of: dict[str, list[str]] = {}
        self._tokens: dict[str, tuple[str, ...]] = {}

    def call(self, wire: Wire) -> Reading[None]:
        """One call, without what stands between calls.

        A call of an unknown tool is read to its end before it is refused (the error's `passed` is true),
        unless it is a guess that a call is meant at all.
        """
        self._tool, self._id, self._begun = None, "", False
        self._wrong, self._guess, self._aside = None, wire.guess, None
        self._ends, self._read, self._whole, self._left = (), False, False, None
        try:
            yield from self._parts(wire.call, wire)
        except ToolError as error:
            if error.cut and self._whole and not wire.guess:
                error.cut = False  # nothing is missing but the last marker, which a stop took
            elif self._wrong is None:
                raise
            if self._wrong is not None:
                self._wrong.passed, self._wrong.cut = False, error.cut
        if not self._begun:  # a layout of calls without arguments
            self._begin()
            self._fragment("{}")
        self._finish()

    def addressed(self, name: str) -> Reading[None]:
        """One call whose name was read already: its arguments."""
        self._tool, self._id, self._wrong, self._guess = None, "", None, False
        self._tool = self.find(name)
        self._begin()
        yield from self._object(self._fragment)
        self._finish()

    def _begin(self) -> None:
        self._begun = True
        if self._tool is not None:
            self.report.begin(self._tool, self._id)
        elif self._wrong is None:
            raise fail(self.source, "the call has no name")

    def _fragment(self, text: str) -> None:
        if self._aside is not None:
            self._aside.append(text)
        elif self._tool is not None:
            self._value.append(text)
            self.report.fragment(text)

    def _finish(self) -> None:
        if self._wrong is not None:
            raise self._wrong
        self.report.finish()

    def tokens(self, literal: str) -> tuple[str, ...]:
        """The literal cut at special tokens and whitespace, see `Format.tokens`."""
        if literal not in self._tokens:
            self._tokens[literal] = self.form.tokens(literal)
        return self._tokens[literal]

    def _parts(self, parts: Sequence[Part], wire: Wire) -> Reading[None]:
        for index, part in enumerate(parts):
            if isinstance(part, str):
                yield from self.literal(part)
            elif isinstance(part, Either):
                for text in part.texts[1:]:
                    if (yield from self.try_literal(text)):
                        break
                else:
                    yield from self.literal(part.texts[0])
            elif isinstance(part, Name):
                yield from self._name(parts[index + 1 :], wire)
            elif isinstance(part, Id):
                yield from self._read_id(part)
            elif isinstance(part, Maybe):
                mark = self.source.mark()
                yield from self.source.blank()
                first = part.parts[0]
                there = isinstance(first, str) and (yield from self.source.matches(first))
                if not there:
                    self.source.back(mark)
                self.source.release(mark)
                if there:
                    yield from self._parts(part.parts, wire)
            elif isinstance(part, JsonArguments):
                self._begin()
                yield from self._object(self._fragment)
                self._whole = True
            elif isinstance(part, JsonCall):
                yield from self._json_call(part)
                self._whole = True
            elif isinstance(part, PythonArguments):
                self._begin()
                yield from self._python()
            elif isinstance(part, MarkedArguments):
                self._begin()
                yield from marked_object(self.source, part, self.report.fragment, self._place())
                self._whole = True
            elif isinstance(part, Elements):
                self._begin()
                yield from NestedReader(self.source, part, self.form).arguments(
                    self.report.fragment, self._place()
                )
            else:
                self._begin()
                after = stops_after(parts[index + 1 :])
                self._ends = tuple(tokens[0] for tokens in map(self.tokens, after) if tokens)
                yield from self._tagged(part)
                self._read = True

    def literal(self, text: str) -> Reading[None]:
        """Take a literal, with any whitespace before and inside it."""
        for token in self.tokens(text):
            yield from self.source.blank()
            if not (yield from self.source.accept(token)):
                here = yield from self.source.peek(len(token))
                if self.source.ended and token.startswith(here):
                    self.source.take(len(here))
                raise fail(self.source, f"{token!r} is needed here" + (f", not {here!r}" if here else ""))
            self._whole = self._whole or self._read

    def try_literal(self, text: str) -> Reading[bool]:
        """Take a literal if it is there."""
        mark = self.source.mark()
        for token in self.tokens(text):
            yield from self.source.blank()
            if not (yield from self.source.accept(token)):
                self.source.back(mark)
                self.source.release(mark)
                return False
        self.source.release(mark)
        return True

    def over(self) -> Reading[bool]:
        """Whether the text ends right here, after a whole call: a stop took the last markers."""
        if not self._whole:
            return False
        mark = self.source.mark()
        yield from self.source.blank()
        found = (yield from self.source.peek()) == ""
        if not found:
            self.source.back(mark)
        self.source.release(mark)
        return found

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
        stops = [tokens[0] for tokens in map(self.tokens, stops_after(following)) if tokens]
        taken: list[str] = []
        # a name that runs into another marker is none, and what follows may be the next call
        others = [
            mark for mark in self.form.special if not any(mark in stop or stop in mark for stop in stops)
        ]
        if (yield from self.source.until([*stops, *others], taken.append)) not in stops:
            raise fail(self.source, "the call's name does not end")
        counted = any(isinstance(p, Maybe) and any(isinstance(i, Id) for i in p.parts) for p in wire.call)
        self._tool = self.find("".join(taken).strip(), counted and ":" in stops)

    def _read_id(self, part: Id) -> Reading[None]:
        yield from self.source.blank()
        taken: list[str] = []
        yield from self.source.run(_ID, taken.append)
        text = "".join(taken)
        if not re.fullmatch(part.pattern, text):
            raise fail(self.source, f"{text!r} is no id of a call")
        self._id = part.full.format(id=text, name=self._tool.name if self._tool else "")

    def _object(self, emit: Callable[[str], None]) -> Reading[None]:
        yield from self.source.blank()
        if (yield from self.source.peek()) != "{":
            raise fail(self.source, "the arguments must be a JSON object")
        yield from json_value(self.source, emit)

    def _json_call(self, layout: JsonCall) -> Reading[None]:
        """The call as one object, its members in any order, members of other names passed over."""
        seen: set[str] = set()
        early: list[str] = []
        yield from self.literal("{")
        while True:
            yield from self.source.blank()
            key = yield from whole_json_string(self.source)
            yield from self.literal(":")
            yield from self.source.blank()
            kind = "name" if key in (layout.name, *_NAMES) else key
            kind = "arguments" if key in (layout.arguments, *_ARGUMENTS) and key != layout.name else kind
            if kind in seen:
                self._refuse(f"the call has {key!r} twice")
            if kind == "name" and (yield from self.source.peek()) == '"':
                self._tool = self.find((yield from whole_json_string(self.source)))
                if "arguments" in seen and self._tool is not None:
                    self._begin()
                    self._fragment("".join(early))
            elif kind == "arguments":
                yield from self._json_arguments(self._tool is not None and kind not in seen, early.append)
            else:
                other: list[str] = []
                yield from json_value(self.source, other.append)
                if key in _IDS:
                    self._id = str(json.loads("".join(other)))
            seen.add(kind)
            yield from self.source.blank()
            if (yield from self.source.accept("}")):
                break
            if not (yield from self.source.accept(",")):
                raise fail(self.source, "the call's object needs ',' or '}' here")
        if "arguments" not in seen and self._takes_none():
            seen.add("arguments")
            self._begin()
            self._fragment("{}")
        for part in ("name", "arguments"):
            if part not in seen:
                self._refuse(f"the call has no {part}")
        if self._tool is None and self._wrong is None:
            self._refuse("the call's name must be a string")

    def _takes_none(self) -> bool:
        """Whether the tool can be called without arguments."""
        return self._tool is not None and self._tool.takes_none and not self._guess

    def _json_arguments(self, known: bool, keep: Callable[[str], None]) -> Reading[None]:
        """The arguments, told on if the call's name is known, else kept for later."""
        if (yield from self.source.peek()) == '"':
            # an object as JSON text, which some servers write back into conversations
            taken: list[str] = []
            yield from json_string(self.source, taken.append)
            inside = _object_in_string("".join(taken))
            if inside is None:
                self._refuse("the arguments must be a JSON object")
            elif known:
                self._begin()
                self._fragment(inside)
            else:
                keep(inside)
            return
        if (yield from self.source.peek()) not in ("{", ""):
            self._refuse("the arguments must be a JSON object")
            yield from json_value(self.source, keep)
            return
        if known:
            self._begin()
        yield from self._object(self._fragment if known else keep)

    def _python(self) -> Reading[None]:
        seen: set[str] = set()
        self._fragment("{")
        yield from self.source.blank()
        while not (yield from self.source.matches(")")):
            taken: list[str] = []
            yield from self.source.run(_KEY, taken.append)
            key = "".join(taken)
            if not key or (key in seen and self._argument(key).declared):
                raise fail(
                    self.source, f"the argument {key!r} is given twice" if key else "an argument needs a name"
                )
            yield from self.literal("=")
            yield from self.source.blank()
            self._fragment((", " if seen else "") + json.dumps(key, ensure_ascii=False) + ": ")
            yield from python_value(self.source, self._fragment)
            seen.add(key)
            yield from self.source.blank()
            if not (yield from self.source.accept(",")) and not (yield from self.source.matches(")")):
                raise fail(self.source, "a call needs ',' or ')' here")
            yield from self.source.blank()
        self._fragment("}")

    def _tagged(self, layout: Tagged) -> Reading[None]:
        seen: set[str] = set()
        yield from self.source.blank()
        if (yield from self.source.matches("{")):
            yield from self._object(self._fragment)
            return
        self._fragment("{")
        while (yield from self.try_literal(layout.before)):
            taken: list[str] = []
            middles = [m for m in (layout.middle, layout.json_middle, layout.open_middle) if m]
            stops = [self.tokens(m)[0].partition("{type}")[0] for m in middles]
            yield from self.source.until(stops, taken.append)
            key = "".join(taken).strip()
            if not key or (key in seen and self._argument(key).declared):
                raise fail(
                    self.source, f"the argument {key!r} is given twice" if key else "an argument needs a name"
                )
            between, name = ", " if seen else "", json.dumps(key, ensure_ascii=False)
            if key in layout.wrappers and not self._argument(key).declared:
                self._aside = []
                yield from self._tagged_value(layout, key)
                value, self._aside = "".join(self._aside), None
                inside = self._unwrapped(value)
                seen |= set(inside) or {key}
                text = json.dumps(inside, ensure_ascii=False)[1:-1] if inside else f"{name}: {value}"
                self._fragment(between + text)
                continue
            self._fragment(f"{between}{name}: ")
            seen.add(key)
            self._value = []
            yield from self._tagged_value(layout, key)
            self._leave(key, "".join(self._value))
        self._fragment("}")

    def _unwrapped(self, text: str) -> dict[str, Any]:
        """The arguments in an object, or in a string of one, if all are declared; else nothing."""
        value = json.loads(_object_in_string(text) or text)
        whole = isinstance(value, dict) and all(self._argument(key).declared for key in value)
        return value if whole else {}

    def _tagged_value(self, layout: Tagged, key: str) -> Reading[None]:
        argument = self._argument(key)
        kinds = argument.kinds
        text_only, json_only = kinds == {"string"}, False
        if layout.json_middle is None:
            yield from self.literal(layout.middle)
        elif (yield from self.try_literal(layout.middle)):
            text_only = "string" in kinds
        elif layout.open_middle is None or not (yield from self.try_literal(layout.open_middle)):
            yield from self._json_middle(layout)
            text_only, json_only = False, True
        if layout.middle.endswith("\n"):
            yield from self.source.accept("\n")
        if text_only:
            self._fragment('"')
            yield from self._raw(layout, lambda text: self._fragment(inside_string(text)))
            self._fragment('"')
            return
        strings = "string" in kinds

        def fits(value: Any) -> bool:
            marked = json_only or not isinstance(value, str)
            return not strings or (marked and fault(value, argument.text) is None)

        if (json_only or kinds - {"string"}) and (yield from self._tagged_json(layout, fits)):
            return
        taken: list[str] = []
        yield from self._raw(layout, taken.append)
        value = self._word_or_text("".join(taken), argument, key)
        self._fragment(json.dumps(value, ensure_ascii=False))

    def _json_middle(self, layout: Tagged) -> Reading[None]:
        """What stands before a JSON value."""
        if "{type}" in (layout.json_middle or ""):
            for kind in TYPES:
                if (yield from self.try_literal((layout.json_middle or "").replace("{type}", kind))):
                    return
        yield from self.literal(layout.json_middle or layout.middle)

    def _tagged_json(self, layout: Tagged, fits: Callable[[Any], bool]) -> Reading[bool]:
        """A value that is JSON up to the closing marker, which may stand in its strings; False: it is none,
        or none that fits."""
        taken: list[str] = []
        mark = self.source.mark()
        found = False
        try:
            yield from json_value(self.source, taken.append)
            yield from self.source.blank()
            if (yield from self.source.accept(layout.close)):
                found = fits(json.loads("".join(taken)))
        except (ToolError, ValueError, RecursionError):
            found = False
        if found:
            self._fragment("".join(taken).strip())
        else:
            self.source.back(mark)
        self.source.release(mark)
        return found

    def _raw(self, layout: Tagged, emit: Callable[[str], None]) -> Reading[None]:
        """Text up to the closing marker, without the line feed that the layout writes before it."""
        ends = [layout.close]
        if layout.after.startswith("\n"):
            ends.append("\n" + layout.close)
        begun = self._heads(layout)
        barred = [m for m in layout.markers if m != layout.close]
        stop = yield from self.source.until([*ends, *begun, *barred], emit)
        if stop in begun:  # the closing marker is missing: the next argument begins
            if stop.startswith("\n"):
                self.source.take(1)
            return
        if stop not in ends:
            raise fail(
                self.source, f"an argument needs {layout.close!r}" + (f", not {stop!r}" if stop else "")
            )
        mark, held = self.source.mark(), [self.source.take(len(stop or ""))]
        first = len(held[0])
        barred = list(dict.fromkeys([*barred, *begun, *self.form.special, *self._ends]))
        barred = [text for text in barred if text not in ends]
        while not (yield from self._followed(layout)):
            # text that looks like the marker, if one comes that something follows
            stop = yield from self.source.until([*ends, *barred], held.append)
            if stop not in ends:
                self.source.back(mark)
                self.source.take(first)
                held = held[:1]
                break
            held.append(self.source.take(len(stop or "")))
        self.source.release(mark)
        emit("".join(held[:-1]))

    def _followed(self, layout: Tagged) -> Reading[bool]:
        """Whether what stands here may follow an argument: another one, or the end of the call."""
        mark = self.source.mark()
        yield from self.source.blank()
        found = (yield from self.source.peek()) == ""
        for text in (self.tokens(layout.before)[0], *self._ends):
            found = found or (yield from self.source.matches(text))
        self.source.back(mark)
        self.source.release(mark)
        return found

    def _heads(self, layout: Tagged) -> list[str]:
        """What the arguments that the tool declares begin with, see `heads`."""
        if self._tool is None:
            return []
        name = self._tool.name
        if name not in self._heads_of:
            self._heads_of[name] = heads(layout, self._tool.parameters)
        return self._heads_of[name]

    def _word_or_text(self, text: str, argument: Argument, key: str) -> Any:
        """A raw value that is no JSON: the text itself where a string may stand, else a word of Python's."""
        if "string" in argument.kinds:
            return text
        word = text.strip().lower()
        if (
            word in _WORDS
            and argument.kinds & {"boolean", "null"}
            and fault(_WORDS[word], argument.text) is None
        ):
            return _WORDS[word]
        raise fail(self.source, f"the value of the argument {key!r} is no JSON")

    def _place(self) -> Place:
        """What the tool says of its arguments."""
        tool = self._tool
        name = tool.name if tool else ""
        if name not in self._places:
            self._places[name] = Place(tool.parameters if tool else True)
        return self._places[name]

    def _argument(self, key: str) -> Argument:
        """What the tool says of this argument."""
        if self._tool is None:
            return _ANYTHING
        name = self._tool.name
        known = self._arguments.setdefault(name, {})
        at = (key, *map(id, self._left or ()))
        if at not in known:
            known[at] = _argument_of(self._tool, self._left or self._all_cases(), key)
        return known[at]

    def _all_cases(self) -> list[Case] | None:
        """The ways in which the tool's arguments may stand together; None: they are not known."""
        if self._tool is None:  # no tool has the name that was called
            return None
        name = self._tool.name
        if name not in self._cases:
            try:
                self._cases[name] = member_cases(self._tool.parameters, name, strict=False)
            except (TokenformError, RecursionError):  # what the schema says is judged with the whole call
                self._cases[name] = None
        return self._cases[name]

    def _leave(self, key: str, text: str) -> None:
        """An argument was read: only some cases are left, which tell what the others are."""
        cases = self._left or self._all_cases()
        if cases is not None and len(cases) > 1:
            try:
                self._left = still(cases, key, json.loads(text))
            except (ToolError, ValueError):  # judged with the whole call
                self._left = None


@dataclass(frozen=True)
class Argument:
    """An argument's schema as text, the types that it allows, and whether the tool declares it.

    One that is not declared may come twice; the last counts.
    """

    text: str
    kinds: frozenset[str]
    declared: bool = False


_ANYTHING = Argument("true", frozenset(TYPES))


def _object_in_string(text: str) -> str | None:
    """The object that a JSON string holds as JSON once more."""
    try:
        inside = json.loads(text)
        return inside if isinstance(inside, str) and isinstance(json.loads(inside), dict) else None
    except (ValueError, RecursionError):
        return None


def _argument_of(tool: Tool, cases: list[Case] | None, key: str) -> Argument:
    if cases is None:
        return Argument("true", frozenset(TYPES), key in tool.parameters.get("properties", {}))
    schema, declared = argument(cases, tool.parameters, tool.name, key)
    return Argument(json.dumps(schema), types_of(schema, tool.name), declared)
