"""Tools of a request: the grammar of a turn that may call them, and the reader of what was written.

Invariant: what the grammar accepts is read back as calls whose arguments satisfy their schemas.
Tools whose input is free text in a grammar ("custom" tools) are called with one argument, `input`; a regex is
its pattern.
Rejected: custom tools in the format's free text (formats have no place for text that is not JSON or marked).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenform.errors import TokenformError
from tokenform.frontends import Grammar
from tokenform.frontends.tools import ToolCallStream, tools
from tokenform.frontends.tools.calls import ToolCall
from tokenform.server.faults import Refused, about

INPUT = "input"


@dataclass
class Turn:
    """How tools are called.

    Attributes:
        tools: definitions, in OpenAI's form.
        custom: names of the tools that take text.
        format: the model's layout of calls.
        grammar: of the whole turn.
    """

    tools: list[dict[str, Any]]
    format: Any
    grammar: Grammar
    custom: set[str] = field(default_factory=set)

    def reader(self) -> ToolCallStream:
        """Reads one output as it comes."""
        return ToolCallStream(self.tools, format=self.format, reasoning="none")

    def input(self, call: ToolCall) -> str:
        """The text that a custom tool is called with."""
        return str(call.arguments.get(INPUT, ""))


def read_turn(
    listed: Sequence[Mapping[str, Any]] | None,
    choice: Any,
    parallel: bool | None,
    format: Any,
    final: Grammar | None,
    param: str = "/tools",
) -> Turn | None:
    """The turn of a request with tools; None where it has none, or may not call any.

    Args:
        format: the model's, or the error of finding it.
        final: what an answer without calls is bound to.
    """
    if not listed:
        if choice not in (None, "none", "auto"):
            raise Refused("tool_choice asks for a call, but there are no tools.", param="/tool_choice")
        return None
    custom: set[str] = set()
    known = [_tool(tool, f"{param}/{place}", custom) for place, tool in enumerate(listed)]
    if choice == "none":
        return None
    if isinstance(format, TokenformError):
        raise Refused(f"this model can't call tools: {format}", param=param, code="no_tools")
    required = choice if final is None or choice not in (None, "auto") else "required"
    try:
        made = tools(
            known,
            format=format,
            tool_choice=_choice(required),
            parallel=parallel is not False,
            reasoning="none",
        )
    except TokenformError as error:
        place = "/tool_choice" if "tool_choice" in str(error) else param
        with about(place):
            raise
    if final is not None and choice in (None, "auto"):
        made = made | final  # calls, or an answer in its form
    return Turn(known, format, made, custom)


def _choice(choice: Any) -> Any:
    if isinstance(choice, Mapping) and choice.get("type") == "custom":
        named = choice.get("custom", choice)
        return {"type": "function", "function": {"name": named.get("name") if named else None}}
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        body = choice.get("allowed_tools", choice)
        listed = [_renamed(tool) for tool in body.get("tools", ())]
        return {"type": "allowed_tools", "mode": body.get("mode", "auto"), "tools": listed}
    return "auto" if choice is None else choice


def _renamed(tool: Any) -> Any:
    return _choice(tool) if isinstance(tool, Mapping) and tool.get("type") == "custom" else tool


def _tool(tool: Mapping[str, Any], param: str, custom: set[str]) -> dict[str, Any]:
    """A definition in OpenAI's form; those that take text are noted."""
    kind = tool.get("type", "function")
    if kind == "function":
        body = tool.get("function", tool)
        allowed = {"name", "description", "parameters", "strict", "type", "function"}
        for name in body:
            if name not in allowed:
                raise Refused(f"{param}/{name} is not known.", param=f"{param}/{name}", code="unknown_field")
        made = {
            name: body[name] for name in ("name", "description", "parameters") if body.get(name) is not None
        }
        return {"type": "function", "function": made}
    if kind == "custom":
        body = tool.get("custom", tool)
        made = {"name": body.get("name"), "description": body.get("description") or ""}
        made["parameters"] = _input_schema(body.get("format"), f"{param}/format")
        custom.add(str(body.get("name")))
        return {"type": "function", "function": made}
    raise Refused(
        f"{param} is of the type {kind!r}; this server runs no tools itself: give functions or custom tools.",
        param=f"{param}/type",
    )


def _input_schema(format: Any, param: str) -> dict[str, Any]:
    """The arguments of a tool that takes text."""
    text: dict[str, Any] = {"type": "string"}
    if format is not None and format.get("type") == "grammar":
        inner = format.get("grammar", format)
        if inner.get("syntax") == "regex":
            text["pattern"] = f"^(?:{inner.get('definition')})$"
        else:
            raise Refused(
                f"the syntax {inner.get('syntax')!r} is not known here; give a regex.",
                param=f"{param}/syntax",
            )
    return {
        "type": "object",
        "properties": {INPUT: text},
        "required": [INPUT],
        "additionalProperties": False,
    }


def arguments_text(call: ToolCall) -> str:
    """A call's arguments as JSON text."""
    return json.dumps(call.arguments, ensure_ascii=False)
