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
from typing import Any, Protocol

from tokenform.errors import TokenformError, ToolError
from tokenform.frontends.tools.definitions import Tool
from tokenform.frontends.tools.grammar import stops_after
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
from tokenform.frontends.tools.members import alone, members, types_of
from tokenform.frontends.tools.read_values import (
    fail,
    inside_string,
    json_value,
    python_value,
    whole_json_string,
)
from tokenform.frontends.tools.source import Reading, Source

_ID = re.compile(r"[\w.-]*")
_KEY = re.compile(r"\w*")
_NAMES = ("name", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters")
_IDS = ("id", "tool_call_id")
_WORDS = {"true": True, "false": False, "none": None, "null": None}


class Report(Protocol):
    """Who is told of a call as it is read."""

    def begin(self, tool: Tool, id: str) -> None: ...
    def fragment(self, text: str) -> None: ...
    def finish(self) -> None: ...


class CallReader:
    """Reads calls of one format.

    Each method takes from the source; ToolError says where the text is no call of these tools.
    """

    def __init__(self, form: Format, tools: dict[str, Tool], source: Source, report: Report) -> None:
        self.form, self.tools, self.source, self.report = form, tools, source, report
        self._tool: Tool | None = None
        self._id = ""
        self._begun = False
        self._schemas: dict[str, dict[str, Any]] = {}

    def call(self, wire: Wire) -> Reading[None]:
        """One call, without what stands between calls."""
        self._tool, self._id, self._begun = None, "", False
        yield from self._parts(wire.call, wire)
        if not self._begun:  # a layout of calls without arguments
            self._begin()
            self.report.fragment("{}")
        self.report.finish()

    def addressed(self, name: str) -> Reading[None]:
        """One call whose name was read already: its arguments."""
        self._tool, self._id = self.find(name), ""
        self._begin()
        yield from self._object(self.report.fragment)
        self.report.finish()

    def _parts(self, parts: Sequence[Part], wire: Wire) -> Reading[None]:
        for index, part in enumerate(parts):
            if isinstance(part, str):
                yield from self.literal(part)
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
                yield from self._object(self.report.fragment)
            elif isinstance(part, JsonCall):
                yield from self._json_call()
            elif isinstance(part, PythonArguments):
                self._begin()
                yield from self._python()
            else:
                self._begin()
                yield from self._tagged(part)

    def literal(self, text: str) -> Reading[None]:
        """Take a literal, with any whitespace before and inside it."""
        for token in self.form.tokens(text):
            yield from self.source.blank()
            if not (yield from self.source.accept(token)):
                here = (yield from self.source.peek(len(token)))[: len(token)]
                raise fail(self.source, f"{token!r} is needed here, not {here!r}")

    def try_literal(self, text: str) -> Reading[bool]:
        """Take a literal if it is there."""
        mark = self.source.mark()
        for token in self.form.tokens(text):
            yield from self.source.blank()
            if not (yield from self.source.accept(token)):
                self.source.back(mark)
                self.source.release(mark)
                return False
        self.source.release(mark)
        return True

    def find(self, name: str, counted: bool = False) -> Tool:
        """The tool of this name.  counted: a bare number stands for the only tool."""
        if counted and name.isdigit() and len(self.tools) == 1:
            self._id = name
            return next(iter(self.tools.values()))
        if name not in self.tools:
            raise fail(
                self.source, f"there is no tool {name!r}; there are {', '.join(map(repr, self.tools))}"
            )
        return self.tools[name]

    def _name(self, following: Sequence[Part], wire: Wire) -> Reading[None]:
        stops = [tokens[0] for tokens in map(self.form.tokens, stops_after(following)) if tokens]
        taken: list[str] = []
        yield from self.source.until(stops, taken.append)
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

    def _begin(self) -> None:
        if self._tool is None:
            raise fail(self.source, "the call has no name")
        self._begun = True
        self.report.begin(self._tool, self._id)

    def _object(self, emit: Callable[[str], None]) -> Reading[None]:
        yield from self.source.blank()
        if (yield from self.source.peek()) != "{":
            raise fail(self.source, "the arguments must be a JSON object")
        yield from json_value(self.source, emit)

    def _json_call(self) -> Reading[None]:
        """The call as one object, its members in any order, members of other names passed over."""
        seen: set[str] = set()
        early: list[str] = []
        yield from self.literal("{")
        while True:
            yield from self.source.blank()
            key = yield from whole_json_string(self.source)
            yield from self.literal(":")
            yield from self.source.blank()
            kind = "name" if key in _NAMES else "arguments" if key in _ARGUMENTS else key
            if kind in seen:
                raise fail(self.source, f"the call has {key!r} twice")
            seen.add(kind)
            if kind == "name":
                self._tool = self.find((yield from whole_json_string(self.source)))
                if "arguments" in seen:
                    self._begin()
                    self.report.fragment("".join(early))
            elif kind == "arguments" and self._tool is not None:
                self._begin()
                yield from self._object(self.report.fragment)
            elif kind == "arguments":
                yield from self._object(early.append)
            else:
                other: list[str] = []
                yield from json_value(self.source, other.append)
                if key in _IDS:
                    self._id = str(json.loads("".join(other)))
            yield from self.source.blank()
            if (yield from self.source.accept("}")):
                break
            if not (yield from self.source.accept(",")):
                raise fail(self.source, "the call's object needs ',' or '}' here")
        if not {"name", "arguments"} <= seen:
            raise fail(
                self.source, "the call has no name" if "name" not in seen else "the call has no arguments"
            )

    def _python(self) -> Reading[None]:
        seen: set[str] = set()
        self.report.fragment("{")
        yield from self.source.blank()
        while not (yield from self.source.matches(")")):
            taken: list[str] = []
            yield from self.source.run(_KEY, taken.append)
            key = "".join(taken)
            if not key or key in seen:
                raise fail(
                    self.source, f"the argument {key!r} is given twice" if key else "an argument needs a name"
                )
            yield from self.literal("=")
            yield from self.source.blank()
            self.report.fragment((", " if seen else "") + json.dumps(key, ensure_ascii=False) + ": ")
            yield from python_value(self.source, self.report.fragment)
            seen.add(key)
            yield from self.source.blank()
            if not (yield from self.source.accept(",")) and not (yield from self.source.matches(")")):
                raise fail(self.source, "a call needs ',' or ')' here")
            yield from self.source.blank()
        self.report.fragment("}")

    def _tagged(self, layout: Tagged) -> Reading[None]:
        seen: set[str] = set()
        yield from self.source.blank()
        if (yield from self.source.matches("{")):
            yield from self._object(self.report.fragment)
            return
        self.report.fragment("{")
        while (yield from self.try_literal(layout.before)):
            taken: list[str] = []
            middles = [m for m in (layout.middle, layout.json_middle) if m]
            yield from self.source.until([self.form.tokens(m)[0] for m in middles], taken.append)
            key = "".join(taken).strip()
            if not key or key in seen:
                raise fail(
                    self.source, f"the argument {key!r} is given twice" if key else "an argument needs a name"
                )
            self.report.fragment((", " if seen else "") + json.dumps(key, ensure_ascii=False) + ": ")
            seen.add(key)
            yield from self._tagged_value(layout, key)
        self.report.fragment("}")

    def _tagged_value(self, layout: Tagged, key: str) -> Reading[None]:
        schema = self._schema(key)
        kinds = types_of(schema, key)
        text_only, json_only = kinds == {"string"}, False
        if layout.json_middle is None:
            yield from self.literal(layout.middle)
        elif (yield from self.try_literal(layout.middle)):
            text_only = "string" in kinds
        elif layout.open_middle is None or not (yield from self.try_literal(layout.open_middle)):
            yield from self.literal(layout.json_middle)
            text_only, json_only = False, True
        if layout.middle.endswith("\n"):
            yield from self.source.accept("\n")
        if text_only:
            self.report.fragment('"')
            yield from self._raw(layout, lambda text: self.report.fragment(inside_string(text)))
            self.report.fragment('"')
            return
        strings = "string" in kinds

        def fits(value: Any) -> bool:
            marked = json_only or not isinstance(value, str)
            return not strings or (marked and _satisfies(value, schema))

        if (json_only or kinds - {"string"}) and (yield from self._tagged_json(layout, fits)):
            return
        taken: list[str] = []
        yield from self._raw(layout, taken.append)
        value = self._word_or_text("".join(taken), schema, kinds, key)
        self.report.fragment(json.dumps(value, ensure_ascii=False))

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
            self.report.fragment("".join(taken).strip())
        else:
            self.source.back(mark)
        self.source.release(mark)
        return found

    def _raw(self, layout: Tagged, emit: Callable[[str], None]) -> Reading[None]:
        """Text up to the closing marker, without the line feed that the layout writes before it."""
        ends = [layout.close]
        if layout.after.startswith("\n"):
            ends.append("\n" + layout.close)
        stop = yield from self.source.until([*ends, *(m for m in layout.markers if m != layout.close)], emit)
        if stop not in ends:
            raise fail(
                self.source, f"an argument needs {layout.close!r}" + (f", not {stop!r}" if stop else "")
            )
        self.source.take(len(stop or ""))

    def _word_or_text(self, text: str, schema: Any, kinds: frozenset[str], key: str) -> Any:
        """A raw value that is no JSON: the text itself where a string may stand, else a word of Python's."""
        if "string" in kinds:
            return text
        word = text.strip().lower()
        if word in _WORDS and kinds & {"boolean", "null"} and _satisfies(_WORDS[word], schema):
            return _WORDS[word]
        raise fail(self.source, f"the value of the argument {key!r} is no JSON")

    def _schema(self, key: str) -> Any:
        """What the tool says of this argument."""
        if self._tool is None:
            return True
        name = self._tool.name
        if name not in self._schemas:
            parameters = self._tool.parameters
            try:
                self._schemas[name] = {m.key: m.schema for m in members(parameters, name)}
            except TokenformError:
                properties = parameters.get("properties", {})
                self._schemas[name] = {k: alone(v, parameters, name) for k, v in properties.items()}
        return self._schemas[name].get(key, True)


def _satisfies(value: Any, schema: Any) -> bool:
    import jsonschema

    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))
