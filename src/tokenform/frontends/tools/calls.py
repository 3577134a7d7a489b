"""What reading gives: calls, and the text and reasoning around them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.mcp import is_result, result_text
from tokenform.frontends.tools.tool import Tool


@dataclass(frozen=True)
class ToolCall:
    """One call.

    Attributes:
        name: the tool's name.
        arguments: the arguments, parsed and, unless the reader was told not to, validated.
        id: the id that the model wrote, or one made for the answer to refer to.
        tool: the definition.
    """

    name: str
    arguments: dict[str, Any]
    id: str = field(default="", compare=False)
    tool: Tool | None = field(default=None, compare=False, repr=False)

    @property
    def value(self) -> Any:
        """The arguments as the type that the tool was made from; from JSON, the dictionary itself."""
        return self.tool.instance(self.arguments) if self.tool else self.arguments

    def __call__(self) -> Any:
        """Call the function that the tool was made from; ToolError where there is none.

        Of an asynchronous function, and of a tool of an MCP session, the result is awaited: `await call()`.
        """
        if self.tool is None:
            raise ToolError(f"the call of {self.name!r} has no tool to call")
        return self.tool.call(self.arguments)

    def to_openai(self) -> dict[str, Any]:
        """The call as a message of OpenAI's API holds it: the arguments are JSON text."""
        return self._entry(json.dumps(self.arguments, ensure_ascii=False))

    def _entry(self, arguments: Any) -> dict[str, Any]:
        """The call in a message, with its arguments as they are given."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}}

    def answer(self, content: Any) -> dict[str, Any]:
        """The message that answers this call: a text, a result of an MCP session, or what JSON can write."""
        if is_result(content):
            content = result_text(content)
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
        return {"role": "tool", "tool_call_id": self.id, "name": self.name, "content": text}


class ToolCalls(list[ToolCall]):
    """The calls in order; `content` is the text outside, `reasoning` the block's; None: there is none."""

    def __init__(
        self, calls: Iterable[ToolCall] = (), content: str | None = None, reasoning: str | None = None
    ) -> None:
        super().__init__(calls)
        self.content = content
        self.reasoning = reasoning

    def __repr__(self) -> str:
        return f"ToolCalls({super().__repr__()}, content={self.content!r}, reasoning={self.reasoning!r})"

    def to_message(self) -> dict[str, Any]:
        """The assistant's message as chat templates take it, to be put before the tools' answers.

        The arguments are a mapping and the content is a text: there are templates that write arguments given
        as text wrongly, and others that fail without content.
        """
        return self._message(self.content or "", [call._entry(call.arguments) for call in self])

    def to_openai(self) -> dict[str, Any]:
        """The assistant's message as OpenAI's API takes it, with arguments as JSON text.

        Most chat templates quote such text once more: 43 of 50 write another call.  Give them `to_message`.
        """
        return self._message(self.content, [call.to_openai() for call in self])

    def _message(self, content: str | None, calls: list[dict[str, Any]]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if self.reasoning is not None:
            message["reasoning_content"] = self.reasoning
        if calls:
            message["tool_calls"] = calls
        return message
