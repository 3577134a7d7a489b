"""What a turn may do: which calls are allowed or asked for, and whether the prompt has opened a thought.

Purpose: the options of a turn as APIs spell them, read once, as plain values.
Invariant: every spelling of the same wish gives the same value; what is no such spelling is an error.
Complexity: linear in the option.
Source: OpenAI's API reference (`tool_choice` of Chat Completions and of Responses, "allowed_tools"),
Anthropic's (`{"type": "any"}`, `{"type": "tool"}`), Mistral's ("any").
Rejected: telling a thought from the model's name (the same template opens one or not, as the request asks).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tokenform.errors import OptionError, ToolError
from tokenform.frontends.tools.layout import Format
from tokenform.frontends.tools.tool import Tool

Reasoning = Literal["auto", "open", "none"]
_MODES = {"auto": "auto", "required": "required", "any": "required", "none": "none"}


@dataclass(frozen=True)
class ToolChoice:
    """Of a turn: `mode` is "auto", "required" or "none"; `tools` are those that may be called.

    single: there is one call at most.
    """

    mode: str
    tools: tuple[Tool, ...]
    single: bool = False


def read_choice(tool_choice: Any, known: Sequence[Tool]) -> ToolChoice:
    """The choice that an API's `tool_choice` makes among the tools.

    Raises:
        ToolError: it names a tool that there is not, or asks for a call where there is no tool.
        OptionError: it is no choice.
    """
    choice = _read(tool_choice, known if isinstance(known, tuple) else tuple(known))
    if choice.mode != "none" and not choice.tools:
        if choice.mode == "required":
            raise ToolError(f"tool_choice {tool_choice!r} asks for a call, but there is no tool to call")
        return ToolChoice("none", ())
    return choice


def _read(tool_choice: Any, known: tuple[Tool, ...]) -> ToolChoice:
    if tool_choice is None:
        return ToolChoice("auto", known)
    if isinstance(tool_choice, str):
        return ToolChoice(_MODES[tool_choice], known) if tool_choice in _MODES else _named(tool_choice, known)
    if not isinstance(tool_choice, Mapping):
        raise OptionError(
            f"tool_choice is a str or a mapping of OpenAI's API, not {type(tool_choice).__name__}"
        )
    kind = tool_choice.get("type")
    if isinstance(kind, str) and kind in _MODES:
        return ToolChoice(_MODES[kind], known)
    if kind in ("function", "tool"):
        return _named(_name(tool_choice), known)
    if kind == "allowed_tools":
        body = tool_choice.get("allowed_tools", tool_choice)
        mode = body.get("mode", "auto") if isinstance(body, Mapping) else None
        listed = body.get("tools") if isinstance(body, Mapping) else None
        if (
            not isinstance(mode, str)
            or mode not in _MODES
            or not isinstance(listed, Sequence)
            or isinstance(listed, str)
        ):
            raise OptionError('"allowed_tools" of tool_choice needs "mode" ("auto", "required") and "tools"')
        allowed = {_named(_name(tool), known).tools[0].name for tool in listed}
        return ToolChoice(_MODES[mode], tuple(tool for tool in known if tool.name in allowed))
    raise OptionError(
        f'tool_choice of type {kind!r} is not known; choose "function", "allowed_tools", "auto", "required"'
        ' or "none"'
    )


def _name(entry: Any) -> str:
    """The name in `{"function": {"name": …}}` or `{"name": …}`."""
    body = entry.get("function", entry) if isinstance(entry, Mapping) else {"name": entry}
    name = body.get("name") if isinstance(body, Mapping) else None
    if not isinstance(name, str):
        raise OptionError(f'tool_choice needs the "name" of a tool, not {entry!r}')
    return name


def _named(name: str, known: tuple[Tool, ...]) -> ToolChoice:
    for tool in known:
        if tool.name == name:
            return ToolChoice("required", (tool,), single=True)
    names = ", ".join(repr(tool.name) for tool in known) or "none"
    raise ToolError(
        f'tool_choice {name!r} is neither "auto", "required", "none" nor a tool; there are {names}'
    )


def thought_state(reasoning: str, prompt: str | None, form: Format) -> str:
    """Whether the output begins inside a thought: "open", "none", "own" (it may open one itself) or "auto".

    prompt: the rendered prompt, whose end tells; None: the output has to tell ("auto").
    Raises:
        OptionError: reasoning is neither "auto", "open" nor "none".
    """
    if reasoning not in ("auto", "open", "none"):
        raise OptionError(f'reasoning must be "auto", "open" or "none", not {reasoning!r}')
    if reasoning != "auto" or prompt is None:
        return reasoning
    if form.channels:
        return "open" if prompt.endswith("<|channel|>analysis<|message|>") else "own"
    opened, closed = form.reasoning
    tail = prompt.rstrip()
    if tail.endswith(closed.rstrip()):
        return "none"
    # earlier in a prompt a marker may just be spoken of
    return "open" if tail.endswith(opened.rstrip()) else "own"


def most_calls(parallel: bool | int) -> int | None:
    """Most calls that `parallel` allows; None: any number.

    Raises:
        OptionError: it is neither a flag nor a number from 1.
    """
    if parallel is True:
        return None
    if parallel is False:
        return 1
    if not isinstance(parallel, int) or parallel < 1:
        raise OptionError(f"parallel must be True, False or a number from 1, not {parallel!r}")
    return parallel
