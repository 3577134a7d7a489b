"""A tool, and a list of tools that were read.

Purpose: a name, a description, the JSON Schema of the arguments as one object, and the way from a dictionary
of arguments to an instance or a result.  How callers' definitions become tools: `definitions.py`.
Invariant: the names of `Tools` differ, and each `parameters` is a valid JSON Schema of an object.
Complexity: what is made of a tool (its parameters as values, closed ones, its report) is made when it is
asked for, and kept by the tool.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tokenform import _core
from tokenform.errors import InvalidType, ToolError
from tokenform.frontends import forms
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.json_text import loads
from tokenform.frontends.pattern_dialects import DIALECT, without_dialects
from tokenform.frontends.tools.judge import fault, report
from tokenform.frontends.tools.members import close


class Definitions(tuple[dict[str, Any], ...]):
    """Definitions as prompts show them, with the format in which the tools are called."""

    format: Any

    def __new__(cls, definitions: Iterable[dict[str, Any]], format: Any) -> Definitions:
        made = super().__new__(cls, definitions)
        made.format = format
        return made

    def __reduce__(self) -> Any:
        return Definitions, (tuple(self), self.format)


@dataclass(frozen=True, eq=False)
class Tool:
    """One tool.

    Attributes:
        name: what a call names it by.
        description: for the prompt; may be empty.
        parameters: the JSON Schema of the arguments; its instances are objects.
        convert: turns a valid dictionary of arguments into what `instance` gives; None: the dictionary
            itself.
        function: what `call` calls with the converted arguments as keywords; None: the tool can't be called.
        strings_in: grammars of strings in the arguments by JSON Pointer, as `json_schema` takes them; for
            formats that write the arguments as one JSON object.
        shown: the parameters as prompts show them, where they are others.
        text: the parameters as JSON text.
        written: what formats made of it, by format and options.
        branches: what the engine read of that.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    convert: Callable[[dict[str, Any]], Any] | None = field(default=None, repr=False)
    function: Callable[..., Any] | None = field(default=None, repr=False)
    strings_in: Mapping[str, Grammar] = field(default_factory=dict, repr=False)
    shown: Mapping[str, Any] | None = field(default=None, repr=False)
    text: str = field(default="", repr=False)
    written: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    branches: _core.OfTool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "branches", _core.OfTool(self.name))
        if not self.text:
            object.__setattr__(self, "text", forms.written(self.parameters))

    @classmethod
    def of_text(cls, name: str, description: str, text: str, closed: str | None) -> Tool:
        """The tool whose parameters are those of a text; closed: see there."""
        made = cls.__new__(cls)
        made.__dict__.update(
            name=name,
            description=description,
            text=text,
            strings_in={},
            written={},
            branches=_core.OfTool(name),
        )
        if closed is not None:
            made.__dict__["closed"] = closed
        return made

    def __getattr__(self, name: str) -> Any:
        """The parameters of a text are read when somebody asks for them."""
        if name != "parameters":
            raise AttributeError(name)
        return self.__dict__.setdefault(name, loads(self.text))

    @cached_property
    def closed(self) -> str:
        """The parameters as JSON text, with members forbidden that they do not speak of."""
        return forms.written(close(self.parameters))

    def __reduce__(self) -> Any:
        arguments = (self.name, self.description, self.parameters, self.convert, self.function)
        return Tool, (*arguments, self.strings_in, self.shown, self.text)

    @property
    def report(self) -> list[str]:
        """What is ignored or loosened of the parameters, and keys of them that look misspelt."""
        return self.lines(report(self.text))

    def lines(self, report: Iterable[str]) -> list[str]:
        """Lines of a report with the name of the tool."""
        return [f"tool {self.name!r}: {line}" for line in report]

    @cached_property
    def told(self) -> list[str]:
        """What reading the parameters told: its report without what nothing satisfies."""
        report = self.branches.report
        return self.report if report is None else self.lines(report)

    def validate(self, arguments: Any) -> None:
        """Raise ToolError, with the JSON Pointer of the fault, unless the arguments satisfy the schema."""
        if not isinstance(arguments, dict):
            raise ToolError(f"the arguments of {self.name!r} must be a JSON object")
        found = fault(arguments, self.text)
        if found is not None:
            place, message = found
            where = f" at {place}" if place else ""
            raise ToolError(
                f"the arguments of {self.name!r} do not satisfy its schema{where}: {message}", pointer=place
            )

    @cached_property
    def takes_none(self) -> bool:
        """Whether a call without arguments satisfies the schema."""
        try:
            return fault({}, self.text) is None
        except ToolError:
            return False

    def instance(self, arguments: dict[str, Any]) -> Any:
        """The arguments as the type that the tool was made from (a model instance, converted keywords)."""
        if self.convert is None:
            return arguments
        try:
            return self.convert(arguments)
        except (ValueError, InvalidType) as error:
            raise ToolError(f"the arguments of {self.name!r} were refused by its type: {error}") from None

    def call(self, arguments: dict[str, Any]) -> Any:
        """The function's result; ToolError where the tool is no function."""
        if self.function is None:
            raise ToolError(f"the tool {self.name!r} has no function to call; make it from a Python function")
        return self.function(**self.instance(arguments))

    def to_openai(self) -> dict[str, Any]:
        """The definition as chat templates take it; the caller's own."""
        return copy.deepcopy(self.definition)

    @cached_property
    def definition(self) -> dict[str, Any]:
        """The same for all that have the tool, which nobody may change."""
        function = {"name": self.name, "description": self.description, "parameters": self._parameters_shown}
        return {"type": "function", "function": function}

    @cached_property
    def _parameters_shown(self) -> Any:
        shown = self.parameters if self.shown is None else self.shown
        # few speak of dialects: a look at the text is a fraction of the copy
        if self.shown is None and DIALECT not in self.text:
            return shown
        return without_dialects(shown)


ANY_OBJECT = {"type": "object", "additionalProperties": True}


def any_arguments(tool: Tool) -> Tool:
    """The tool with any JSON object as its arguments; prompts show what it was given."""
    shown = tool.parameters if tool.shown is None else tool.shown
    return replace(tool, parameters=ANY_OBJECT, strings_in={}, shown=shown, text="")


class Tools(tuple[Tool, ...]):
    """Tools that were read: their names differ."""

    @cached_property
    def listed(self) -> _core.ListedTools:
        """The same for the engine."""
        return _core.ListedTools.of([tool.branches for tool in self])

    def __reduce__(self) -> Any:
        return Tools, (tuple(self),)

    @cached_property
    def by_name(self) -> dict[str, Tool]:
        """The tools under their names."""
        return {tool.name: tool for tool in self}
