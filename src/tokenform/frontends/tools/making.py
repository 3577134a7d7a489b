"""The grammar of a turn in a format that is known, and which tool a fault is about.

Purpose: definitions are read, the turn's tree is compiled, and what can't be written in the format is named,
left out, or given any arguments, as was asked.
Invariant: an error names the first tool whose calls alone raise it too.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenform import _core
from tokenform.errors import TokenformError, ToolError, UnsatisfiableGrammar
from tokenform.frontends import forms
from tokenform.frontends.garbage import collected_later
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.tools.compiled import shape_form
from tokenform.frontends.tools.definitions import ToolLike, read_tools
from tokenform.frontends.tools.formats import named
from tokenform.frontends.tools.grammar import Builder
from tokenform.frontends.tools.layout import Format
from tokenform.frontends.tools.linked import turn_form
from tokenform.frontends.tools.reader import read_turn
from tokenform.frontends.tools.shape import Shape
from tokenform.frontends.tools.tool import Definitions, Tool, Tools, any_arguments
from tokenform.frontends.tools.turn import Reasoning, most_calls, read_choice, thought_state


@dataclass(frozen=True)
class TurnOptions:
    """The options of `tools`, see there; the format is found, `spelling` and `bad` are read."""

    format: Format
    tool_choice: Any = "auto"
    parallel: bool | int = True
    strict: bool = True
    reasoning: Reasoning = "auto"
    prompt: str | None = None
    spelling: Mapping[str, str] = field(default_factory=dict)
    bad: str = "raise"

    def builder(self, tools: Sequence[Tool]) -> Builder:
        """What makes the tree of the turn.

        Raises:
            ToolError: it asks for a tool that there is not.
            OptionError: an option's value.
        """
        most, thought = most_calls(self.parallel), thought_state(self.reasoning, self.prompt, self.format)
        choice, order = read_choice(self.tool_choice, tools), self.spelling.get("order", "declared")
        most = 1 if choice.single else most
        return Builder(self.format, choice.tools, self.strict, order, choice.mode, most, thought)


def tool_shape(tools: Iterable[ToolLike], *, format: Any, order: str = "declared", **options: Any) -> Shape:
    """The tree of a model's turn that may call tools.

    Args:
        tools: definitions, pydantic models or functions (see `read_tools`).
        format: a format or its name.
        order: "declared" or "any": how formats that write each argument by itself order them.
        options: `tool_choice`, `parallel`, `strict`, `reasoning`, `prompt`, as of `tokenform.tools`.
    Raises:
        ToolError, InvalidSchema, InvalidType: the definitions, see `read_tools`; a name that the format can't
            write.
        UnsupportedSchema: arguments that the format can't keep to their schema.
        OptionError: an option's value.
    """
    turn_options = TurnOptions(named(format), spelling={"order": order}, **options)
    return turn_options.builder(read_tools(tools)).shape()


def grammar_of_tools(
    tools: Iterable[ToolLike], options: TurnOptions, listed: _core.ListedTools | None = None
) -> tuple[Grammar, list[str]]:
    """The grammar of a turn, and the report of reading the tools; raises what `tools` does.

    listed: what is cached of each, see `read_tools`.
    """
    aside: dict[str, str] = {}
    omit, form = options.bad == "omit", options.format

    def put_aside(tool: Tool, error: Exception) -> None:
        what = "is left out" if omit else "takes any JSON object"
        reason = str(error).removeprefix(f"tool {tool.name!r}: ")
        aside.setdefault(tool.name, f"tool {tool.name!r} {what}: {reason}")

    with collected_later():  # what is made on the way is gone before collections go on
        known = read_tools(tools, None if options.bad == "raise" else put_aside, listed)
        if omit and aside:
            known = Tools(tool for tool in known if tool.name not in aside)
        source = f"tools({known.listed.names()}; {form.name})"
        try:
            core, notes, has_reports = _put_together(known, options, source)
        except (TokenformError, RecursionError):
            usable = _usable(known, options, put_aside) if options.bad != "raise" else known
            if usable == known:
                raise
            known = Tools(usable)
            core, notes, has_reports = _put_together(known, options, source)
    before = [*aside.values()]
    grammar = Grammar(
        core,  # whose form is read when it is asked for: few grammars of tools are a part of others
        notes=functools.partial(_report, before, known, notes),
        read=functools.partial(
            read_turn, tools=known, format=form, reasoning=options.reasoning, prompt=options.prompt
        ),
        source=source,
        tools=functools.partial(_definitions, known, form),
        manner=functools.partial(_in_manner, known, options, source),
    )
    lines = [line for tool in known for line in tool.told] if has_reports else []
    return grammar, [*before, *lines, *notes]


def _definitions(known: Sequence[Tool], form: Format) -> Definitions:
    return Definitions([tool.definition for tool in known], form)


def _in_manner(
    known: Sequence[Tool], options: TurnOptions, source: str, spelling: Mapping[str, str]
) -> Grammar | None:
    """The grammar of the same turn whose documents are written so; None: they are already."""
    narrowed = forms.narrower(options.spelling, spelling)
    if not narrowed:
        return None
    text, lists = turn_form(options.builder(known), options.spelling, narrowed)
    return Grammar(forms.composite(text, lists, name=source), source=source)


def _report(before: list[str], known: Sequence[Tool], after: Sequence[str]) -> list[str]:
    return [*before, *(line for tool in known for line in tool.report), *after]


def _put_together(
    known: Sequence[Tool], options: TurnOptions, source: str
) -> tuple[_core.Grammar, Sequence[str], bool]:
    """The core's grammar, what the format can't write of the schemas, and whether tools have reports."""
    builder = options.builder(known)
    try:
        core = forms.composite(*turn_form(builder, options.spelling), name=source)
    except TokenformError as error:
        raise _blamed(error, known, options) from None
    return core, builder.notes(), bool(core.notes) or not builder.slotted


def _usable(
    known: Sequence[Tool], options: TurnOptions, put_aside: Callable[[Tool, Exception], None]
) -> tuple[Tool, ...]:
    """The tools without those that can't be written by themselves, or with any arguments for these."""
    usable: list[Tool] = []
    for tool in known:
        error = _alone(tool, options)
        if error is None:
            usable.append(tool)
            continue
        put_aside(tool, error)
        if options.bad == "any":
            loose = any_arguments(tool)
            if _alone(loose, options) is not None:  # a name that the format can't write
                raise error
            usable.append(loose)
    return tuple(usable)


def _alone(tool: Tool, options: TurnOptions) -> TokenformError | None:
    """The error of a tool by itself, where it has to be called."""
    try:
        shape = tool_shape([tool], format=options.format, tool_choice="required", strict=options.strict)
        forms.compiled(shape_form(shape, options.spelling), tool.name)
    except UnsatisfiableGrammar:
        return _unsatisfiable(tool)
    except TokenformError as error:
        return error
    return None


def _unsatisfiable(tool: Tool) -> TokenformError:
    """Why no call of a tool can be written: its schema has no value, or none that the format can write."""
    try:
        _core.json_schema(tool.text)
    except TokenformError as error:
        return error
    return ToolError("no arguments of it can be written in this format; choose a format that writes JSON")


def _blamed(error: TokenformError, known: Sequence[Tool], options: TurnOptions) -> TokenformError:
    """The error with the name of the tool that it is about."""
    for tool in known:
        own = _alone(tool, options)
        if own is not None and (isinstance(own, type(error)) or isinstance(error, UnsatisfiableGrammar)):
            message = re.sub(r"^(?:JSON|[{\"].*?) \(\d+\): ", "", str(own))
            return type(own)(f"tool {tool.name!r}: {message}", pointer=own.pointer, keyword=own.keyword)
    return error
