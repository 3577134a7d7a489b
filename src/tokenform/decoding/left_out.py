"""What a chat template leaves out, tools and the calls of earlier turns, is put into the messages.

Purpose: a model that is not told of tools can't call them rightly, and an assistant's turn that was a call
alone would be empty.
Invariant: messages whose template shows tools and calls are not changed.
Complexity: one more rendering where there are tools, and one where there are calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tokenform.frontends.tools.formats import FORMATS
from tokenform.frontends.tools.shown import shown_tools, written_call

Render = Callable[[list[Any], Sequence[Mapping[str, Any]]], list[int]]


def completed(render: Render, messages: Sequence[Any], tools: Sequence[Mapping[str, Any]]) -> list[int]:
    """The ids of a conversation, with what its template leaves out.

    Args:
        render: the template: (messages, tools) -> ids; it may raise anything.
        tools: definitions, with the `format` in which they are called (`Definitions`).
    """
    form = getattr(tools, "format", None) or FORMATS["json"]
    told, calling = list(messages), any(_calls(one) for one in messages)
    if calling and _alike(render, told, [_without(one) for one in told], tools, tools):
        told = [_spelled(one, form) for one in told]
    if tools and _alike(render, told, told, tools, ()):
        told = _with_system(told, shown_tools(tools, form))
    return render(told, tools)


def _alike(render: Render, one: list[Any], other: list[Any], tools: Any, fewer: Any) -> bool:
    """Whether the template writes both the same; a template that refuses the second shows what is missing."""
    first = render(one, tools)
    try:
        return first == render(other, fewer)
    except Exception:  # a template is a program and may raise anything
        return False


def _calls(message: Any) -> Any:
    return message.get("tool_calls") if isinstance(message, Mapping) else None


def _without(message: Any) -> Any:
    return {name: value for name, value in message.items() if name != "tool_calls"}


def _spelled(message: Any, form: Any) -> Any:
    """The message with its calls as text, after what was said beside them."""
    calls = _calls(message)
    if not calls:
        return message
    called = [call.get("function", call) for call in calls]
    texts = [written_call(one["name"], _arguments(one["arguments"]), form) for one in called]
    said = message.get("content")
    return {**_without(message), "content": "\n".join([*([said] if said else []), *texts])}


def _arguments(given: Any) -> Mapping[str, Any]:
    read: Mapping[str, Any] = json.loads(given) if isinstance(given, str) else given
    return read


def _with_system(messages: list[Any], text: str) -> list[Any]:
    """The messages with a text at the end of the system message, or as one."""
    if messages and messages[0].get("role") == "system":
        first = messages[0]
        return [{**first, "content": f"{first.get('content', '')}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]
