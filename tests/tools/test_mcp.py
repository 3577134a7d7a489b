"""Sessions of the Model Context Protocol: their tools, their calls, and what comes back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

import tokenform as tf
from tokenform.errors import ToolError

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


class Session:
    """Two pages of tools, as objects with the members' older names and as mappings with newer ones."""

    def __init__(self) -> None:
        self.called: list[Any] = []

    async def list_tools(self, cursor: str | None = None) -> Any:
        if cursor is None:
            tool = SimpleNamespace(name="weather", description="The weather.", inputSchema=SCHEMA)
            return SimpleNamespace(tools=[tool], nextCursor="2")
        return SimpleNamespace(tools=[{"name": "now", "input_schema": {"type": "object"}}], next_cursor=None)

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        self.called.append((name, arguments))
        text = SimpleNamespace(type="text", text=f"rain in {arguments.get('city')}")
        image = SimpleNamespace(type="image", data="", mimeType="image/png")
        return SimpleNamespace(content=[text, image], isError=False, structuredContent=None)


def test_a_grammar_of_a_session_is_awaited_and_its_calls_go_back() -> None:
    session = Session()

    async def run() -> dict[str, Any]:
        grammar = await tf.tools(session, format="hermes", tool_choice="required")
        assert [one["function"]["name"] for one in grammar.tools] == ["weather", "now"]
        assert grammar.tools[0]["function"]["description"] == "The weather."
        (call,) = grammar.parse(CALL)
        return call.answer(await call())

    message = asyncio.run(run())
    assert session.called == [("weather", {"city": "Oslo"})]
    assert message["role"] == "tool" and message["content"] == "rain in Oslo\n[image: image/png]"


def test_the_tools_alone() -> None:
    tools = asyncio.run(tf.tool_formats.mcp_tools(Session()))
    assert [tool.name for tool in tools] == ["weather", "now"]
    assert tf.tools(tools, format="glm47", tool_choice="weather").report == []


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": [], "structuredContent": {"n": 1}, "isError": False}, '{"n": 1}'),
        ({"content": [{"type": "text", "text": "no such city"}], "isError": True}, "Error: no such city"),
        (
            {"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "body"}}], "isError": False},
            "body",
        ),
        ({"temperature": 3}, '{"temperature": 3}'),
    ],
)
def test_what_comes_back(result: Any, text: str) -> None:
    (call,) = tf.parse_tool_calls(CALL, [{"name": "weather", "parameters": SCHEMA}], format="hermes")
    assert call.answer(result)["content"] == text


@dataclass
class Params:
    cursor: str | None = None


class OfParams(Session):
    """Asks for pages as `ClientSession` of the second version does."""

    async def list_tools(self, *, params: Params | None = None) -> Any:  # type: ignore[override]
        return await Session.list_tools(self, params.cursor if params else None)


def test_pages_by_parameters() -> None:
    tools = asyncio.run(tf.tool_formats.mcp_tools(OfParams()))
    assert [tool.name for tool in tools] == ["weather", "now"]


def test_what_is_no_list_of_tools() -> None:
    class Wrong(Session):
        async def list_tools(self, cursor: str | None = None) -> Any:
            return [{"title": "x"}]

    with pytest.raises(ToolError, match="no name"):
        asyncio.run(tf.tool_formats.mcp_tools(Wrong()))

    class Endless(Session):
        async def list_tools(self, cursor: str | None = None) -> Any:
            return SimpleNamespace(tools=[], nextCursor="again")

    with pytest.raises(ToolError, match="pages"):
        asyncio.run(tf.tool_formats.mcp_tools(Endless()))


def test_a_session_of_the_package() -> None:
    """With a server of the package `mcp` in this process, where it is installed."""
    pytest.importorskip("mcp", reason="mcp is not installed")
    from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

    listed = Tool.model_validate({"name": "weather", "inputSchema": SCHEMA})
    made = CallToolResult.model_validate(
        {"content": [TextContent(type="text", text="rain")], "isError": False}
    )

    class Real(Session):
        async def list_tools(self, cursor: str | None = None) -> Any:
            return ListToolsResult(tools=[listed])

        async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
            return made

    async def run() -> str:
        grammar = await tf.tools(Real(), format="hermes")
        (call,) = grammar.parse(CALL)
        return str(call.answer(await call())["content"])

    assert asyncio.run(run()) == "rain"
