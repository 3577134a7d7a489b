"""Chat messages of an API in the form of prompts: only roles, text, calls and answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tokenform.server.faults import Refused

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_TEXT = ("text", "input_text", "output_text", "refusal")


def read_messages(listed: Sequence[Any], param: str = "/messages") -> list[dict[str, Any]]:
    """Messages of OpenAI's chats.

    Raises:
        Refused: a role, or a part that is not text.
    """
    if not listed:
        raise Refused("there are no messages.", param=param)
    return [read_message(one, f"{param}/{place}") for place, one in enumerate(listed)]


def read_message(message: Any, param: str) -> dict[str, Any]:
    """One message of OpenAI's chats, at its place."""
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str) or role not in _ROLES:
        raise Refused(f"{param}/role is one of {', '.join(_ROLES)}.", param=f"{param}/role")
    read: dict[str, Any] = {
        "role": _ROLES[role],
        "content": text_of(message.get("content"), f"{param}/content"),
    }
    if message.get("tool_calls"):
        calls = message["tool_calls"]
        if not isinstance(calls, list):
            raise Refused(f"{param}/tool_calls is a list of calls.", param=f"{param}/tool_calls")
        read["tool_calls"] = [_call(one, f"{param}/tool_calls/{i}") for i, one in enumerate(calls)]
    for name in ("tool_call_id", "name", "reasoning_content"):
        if isinstance(message.get(name), str):
            read[name] = message[name]
    return read


def text_of(content: Any, param: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise Refused(f"{param} is a text or a list of parts.", param=param)
    texts = []
    for place, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get("text", part.get("refusal")) if isinstance(part, dict) else part
        if (kind not in _TEXT and not isinstance(part, str)) or not isinstance(text, str):
            raise Refused(
                f"{param}/{place} is of the type {kind!r}; this server reads text alone.",
                param=f"{param}/{place}",
                code="unsupported_content",
            )
        texts.append(text)
    return "".join(texts)


def _call(call: Any, param: str) -> dict[str, Any]:
    """A call in the form of templates: the arguments are a mapping."""
    body = call.get("function") or call.get("custom") if isinstance(call, dict) else None
    if not isinstance(body, dict) or not isinstance(body.get("name"), str):
        raise Refused(f"{param} is no call of a function.", param=param)
    if "input" in body:
        arguments: Any = {"input": body["input"]}
    else:
        arguments = read_arguments(body.get("arguments", "{}"), f"{param}/function/arguments")
    function = {"name": body["name"], "arguments": arguments}
    return {"id": call.get("id", ""), "type": "function", "function": function}


def read_arguments(text: Any, param: str) -> Any:
    """The arguments of a call, which APIs write as JSON text."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise Refused(f"{param} is no JSON.", param=param) from None
