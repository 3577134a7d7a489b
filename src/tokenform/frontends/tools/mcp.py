"""Tools of a server of the Model Context Protocol, by a session with it.

Purpose: what a session lists becomes `Tool`s whose calls go to the session; what comes back becomes the text
of an answer.
Invariant: nothing of the protocol is done here; a session is whatever has `list_tools` and `call_tool`.
Complexity: one request for each page of the list, one for each call.
Source: Model Context Protocol 2025-11-25, "Tools".
Rejected: importing the package `mcp` (its classes changed their members' names from one version to the next);
waiting for a session in a thread (its streams belong to the loop that runs).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeGuard, get_args, get_type_hints

from tokenform.errors import ToolError
from tokenform.frontends.tools.definitions import read_tools
from tokenform.frontends.tools.tool import Tool

# Most pages of a list of tools; a server that never ends is an error.
PAGES = 1000


class ToolSession(Protocol):
    """What a session has: `ClientSession` of the package `mcp`, or a stand-in."""

    def list_tools(self) -> Any: ...
    def call_tool(self, name: str, arguments: dict[str, Any]) -> Any: ...


def is_session(value: Any) -> TypeGuard[ToolSession]:
    """Whether it is a session."""
    return callable(getattr(value, "list_tools", None)) and callable(getattr(value, "call_tool", None))


async def mcp_tools(session: ToolSession) -> tuple[Tool, ...]:
    """The tools that a session of the Model Context Protocol lists.

    Their calls go back to it: `await call()` gives the result, `call.answer(await call())` the message.

    Example:
        >>> tools = await tf.tool_formats.mcp_tools(session)                          # doctest: +SKIP
        >>> grammar = tf.tools(tools, format="hermes")                    # doctest: +SKIP
    Raises:
        ToolError: what it lists are no tools.
    """
    listed: list[Any] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await _page(session, cursor)
        listed += getattr(page, "tools", page)
        cursor = _member(page, "next_cursor", "nextCursor")
        if not cursor:
            return read_tools([_tool(session, one) for one in listed])
    raise ToolError(f"the session's list of tools has more than {PAGES} pages")


async def _page(session: ToolSession, cursor: str | None) -> Any:
    ask: Callable[..., Any] = session.list_tools
    if not cursor:
        return await _awaited(ask())
    parameters = inspect.signature(ask).parameters
    if "cursor" in parameters:
        return await _awaited(ask(cursor=cursor))
    if "params" in parameters:  # the class of what it takes stands in its annotation
        kind = next(one for one in get_args(get_type_hints(ask)["params"]) if one is not type(None))
        return await _awaited(ask(params=kind(cursor=cursor)))
    return await _awaited(ask(cursor))


async def _awaited(value: Any) -> Any:
    return await value if isinstance(value, Awaitable) else value


def _member(value: Any, *names: str) -> Any:
    """The first member of these names that is there: versions of the package spell them in two ways."""
    for name in names:
        found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if found is not None:
            return found
    return None


def _tool(session: ToolSession, listed: Any) -> Tool:
    name = _member(listed, "name")
    if not isinstance(name, str):
        raise ToolError(f"a session lists what has no name: {listed!r}")
    definition = {
        "name": name,
        "description": _member(listed, "description", "title") or "",
        "parameters": _member(listed, "input_schema", "inputSchema") or {"type": "object", "properties": {}},
    }
    (tool,) = read_tools([definition])

    async def call(**arguments: Any) -> Any:
        return await _awaited(session.call_tool(name, arguments))

    return Tool(tool.name, tool.description, tool.parameters, tool.convert, call, tool.strings_in, tool.shown)


def is_result(value: Any) -> bool:
    """Whether it is what a session gives for a call."""
    return isinstance(_member(value, "content"), list) and _member(value, "is_error", "isError") is not None


def result_text(result: Any) -> str:
    """A result as the model reads it: its texts, its data as JSON, and what else there is by its kind."""
    parts: list[str] = []
    for part in _member(result, "content") or []:
        inner = _member(part, "resource")
        text = _member(part, "text") or (_member(inner, "text") if inner is not None else None)
        kind = _member(part, "type")
        parts.append(
            text if isinstance(text, str) else f"[{kind}: {_member(part, 'mimeType', 'mime_type', 'uri')}]"
        )
    data = _member(result, "structured_content", "structuredContent")
    if data is not None and not parts:
        parts = [json.dumps(data, ensure_ascii=False)]
    text = "\n".join(parts)
    return f"Error: {text}" if _member(result, "is_error", "isError") else text
