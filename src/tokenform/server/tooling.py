"""Tools of a request: the grammar of a turn that may call them, and the reader of what was written.

Invariant: what the grammar accepts is read back as calls whose arguments satisfy their schemas.
Tools whose input is text, free or of a grammar ("custom" tools), are called with one argument, `input`.
Rejected: custom tools in the format's free text (formats have no place for text that is not JSON or marked).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenform.errors import TokenformError
from tokenform.frontends import Grammar
from tokenform.frontends.tools import Tool, ToolCallStream, tools
from tokenform.server.constraints import ConstraintReader
from tokenform.server.faults import Refused, about, check_names

INPUT = "input"
_MEMBERS = frozenset(("name", "description", "parameters", "strict", "type", "function"))
_CUSTOM = {
    "type": "object",
    "properties": {INPUT: {"type": "string"}},
    "required": [INPUT],
    "additionalProperties": False,
}


@dataclass
class CallLayout:
    """How tools are called.

    Attributes:
        tools: definitions.
        custom: names of the tools that take text.
        format: the model's layout of calls.
        grammar: of the whole turn.
    """

    tools: Sequence[Tool | Mapping[str, Any]]
    format: Any
    grammar: Grammar
    custom: set[str] = field(default_factory=set)

    def reader(self) -> ToolCallStream:
        """Reads one output as it comes."""
        return ToolCallStream(self.tools, format=self.format, reasoning="none")


def read_turn(
    listed: Sequence[Mapping[str, Any]] | None,
    choice: Any,
    parallel: bool | None,
    format: Any,
    final: Grammar | None,
    reader: ConstraintReader,
) -> CallLayout | None:
    """The turn of a request with tools; None where it has none, or may not call any.

    Args:
        format: the model's, or the error of finding it.
        reader: reads the grammars of custom tools.
        final: what an answer without calls is bound to.
    """
    if not listed:
        if choice not in (None, "none", "auto"):
            raise Refused("tool_choice asks for a call, but there are no tools.", param="/tool_choice")
        return None
    custom: set[str] = set()
    definitions = [
        tool if _is_function(tool) else _tool(tool, f"/tools/{place}", reader, custom)
        for place, tool in enumerate(listed)
    ]
    if choice == "none":
        return None
    if isinstance(format, TokenformError):
        message = str(format).replace("name one with format=", "start the server with --tool-format NAME")
        raise Refused(f"this model can't call tools: {message}", param="/tools", code="no_tools")
    required = choice if final is None or choice not in (None, "auto") else "required"
    options: dict[str, Any] = {
        "format": format,
        "tool_choice": _choice(required),
        "parallel": parallel is not False,
        "reasoning": "none",
    }
    grammar = _grammar_of_turn(definitions, [_is_strict(tool) for tool in listed], options)
    usable = (
        grammar.tool_reader["tools"] if grammar.tool_reader else definitions
    )  # a bad one takes any arguments
    if final is not None and choice in (None, "auto"):
        grammar = grammar | final  # calls, or an answer in its form
    return CallLayout(usable, format, grammar, custom)


def _grammar_of_turn(
    definitions: Sequence[Tool | Mapping[str, Any]], strict: Sequence[bool], options: Mapping[str, Any]
) -> Grammar:
    """The grammar of calls.  A tool whose schema can't be kept takes any arguments, unless it is strict."""
    try:
        return tools(definitions, **options, on_bad_tool="raise" if any(strict) else "any")
    except TokenformError as error:
        if any(strict):
            return _grammar_without_bad(definitions, strict, options)
        with about("/tool_choice" if "tool_choice" in str(error) else "/tools"):
            raise


def _grammar_without_bad(
    definitions: Sequence[Tool | Mapping[str, Any]], strict: Sequence[bool], options: Mapping[str, Any]
) -> Grammar:
    """The grammar of calls, none of whose strict tools is bad by itself."""
    for place, tool in enumerate(definitions):
        if strict[place]:
            holder = "/function" if isinstance(tool, Mapping) and "function" in tool else ""
            with about(f"/tools/{place}{holder}/parameters"):
                tools([tool], **{**options, "tool_choice": "auto"}, on_bad_tool="raise")
    return _grammar_of_turn(definitions, (), options)


def _is_strict(tool: Mapping[str, Any]) -> bool:
    return _body(tool, "function", "/tools").get("strict") is True and tool.get("type") != "custom"


def _choice(choice: Any) -> Any:
    if isinstance(choice, Mapping) and choice.get("type") == "custom":
        named = _body(choice, "custom", "/tool_choice")
        return {"type": "function", "function": {"name": named.get("name")}}
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        body = _body(choice, "allowed_tools", "/tool_choice")
        if not isinstance(body.get("tools"), list):
            raise Refused("allowed_tools needs tools.", param="/tool_choice/tools")
        listed = [_renamed(tool) for tool in body["tools"]]
        return {"type": "allowed_tools", "mode": body.get("mode", "auto"), "tools": listed}
    return "auto" if choice is None else choice


def _renamed(tool: Any) -> Any:
    return _choice(tool) if isinstance(tool, Mapping) and tool.get("type") == "custom" else tool


def _is_function(tool: Mapping[str, Any]) -> bool:
    """Whether a definition is a function's, of members that are known; `_tool` says what is wrong."""
    body = tool.get("function")
    return isinstance(body, dict) and tool.get("type") == "function" and body.keys() <= _MEMBERS


def _tool(
    tool: Mapping[str, Any], param: str, reader: ConstraintReader, custom: set[str]
) -> Tool | Mapping[str, Any]:
    """A definition; those that take text are noted."""
    kind = tool.get("type", "function")
    if kind == "function":
        body = _body(tool, "function", param)
        check_names(body, _MEMBERS, param)
        return tool
    if kind == "custom":
        body = _body(tool, "custom", param)
        name = body.get("name")
        if not isinstance(name, str):
            raise Refused(f"{param} has no name.", param=f"{param}/name")
        custom.add(name)
        bound = _input_grammar(body.get("format"), f"{param}/format", reader)
        places = {} if bound is None else {f"/properties/{INPUT}": bound}
        return Tool(name, str(body.get("description") or ""), _CUSTOM, strings_in=places)
    raise Refused(
        f"{param} is of the type {kind!r}; this server runs no tools itself: give functions or custom tools.",
        param=f"{param}/type",
    )


def _body(tool: Mapping[str, Any], kind: str, param: str) -> Mapping[str, Any]:
    body = tool.get(kind, tool)
    if not isinstance(body, dict):
        raise Refused(f"{param}/{kind} is an object.", param=f"{param}/{kind}")
    return body


def _input_grammar(format: Any, param: str, reader: ConstraintReader) -> Grammar | None:
    """What binds the text that a tool is called with."""
    if format is None or (isinstance(format, Mapping) and format.get("type") == "text"):
        return None
    inner = format.get("grammar", format) if isinstance(format, Mapping) else None
    if not isinstance(inner, Mapping) or format.get("type") != "grammar":
        raise Refused(f"{param} is text or a grammar.", param=f"{param}/type")
    syntax, definition = inner.get("syntax"), inner.get("definition")
    if syntax not in ("lark", "regex") or not isinstance(definition, str):
        raise Refused(f"{param} needs a syntax, lark or regex, and a definition.", param=f"{param}/syntax")
    return reader.grammar("grammar" if syntax == "lark" else "regex", definition, f"{param}/definition")
