"""What was read of a turn: content, reasoning, calls, and what happened.

Invariant: whitespace at the edges of content and thoughts is held back until it is known to stand within;
while it is not sure that calls are meant, what they report is held back.
Complexity: linear in the text.
"""

from __future__ import annotations

import json
import secrets
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.calls import ToolCall, ToolCalls
from tokenform.frontends.tools.layout import Format
from tokenform.frontends.tools.places import Place, whole_numbers
from tokenform.frontends.tools.read_call import CallReader
from tokenform.frontends.tools.source import WHITESPACE, Source
from tokenform.frontends.tools.tool import Tool

# What happens: ("content" | "reasoning" | "arguments", text), ("call", index, name, id), ("end", call).
Event = tuple[Any, ...]


class TurnRead:
    """`result` is what was read so far, `errors` are about the calls that were refused, `check` raises the
    first of them."""

    def __init__(self, form: Format, tools: dict[str, Tool], reasoning: str, validate: bool) -> None:
        """reasoning: what is known of the thought (`turn.thought_state`)."""
        self.form, self.reasoning, self._validate = form, reasoning, validate
        self.source = Source()
        self.calls = CallReader(form, tools, self.source, self)
        self.errors: list[ToolError] = []
        self._result = ToolCalls()
        self._said: list[str] = []
        self._thoughts: list[str] | None = None
        self._events: list[Event] = []
        self._held: list[Event] | None = None
        self._hold = "none"
        self._tool: Tool | None = None
        self._id = ""
        self._fragments: list[str] = []
        self._begun = 0
        self._waiting: list[str] | None = []
        self._skip = ""
        self._feeds: list[str] = []

    @property
    def result(self) -> ToolCalls:
        """The calls, content and reasoning so far."""
        if len(self._said) > 1:
            self._said = ["".join(self._said)]
        self._result.content = self._said[0] if self._said else None
        if self._thoughts and len(self._thoughts) > 1:
            self._thoughts = ["".join(self._thoughts)]
        self._result.reasoning = None if self._thoughts is None else "".join(self._thoughts)
        return self._result

    def check(self) -> None:
        """Raise the first error; its `calls` are the result."""
        if self.errors:
            self.errors[0].calls = self.result
            raise self.errors[0]

    def happened(self, *event: Any) -> None:
        (self._events if self._held is None else self._held).append(event)

    @property
    def has_content(self) -> bool:
        return bool(self._said)

    @property
    def has_thoughts(self) -> bool:
        """Whether there is reasoning that is not empty."""
        return bool(self._thoughts)

    def content(self, text: str) -> None:
        """Text outside calls; whitespace is held back until it is known to stand before text."""
        if self._waiting is not None:
            rest = text.lstrip(WHITESPACE + self._skip)
            self._waiting.append(text[: len(text) - len(rest)])
            if not rest:
                return
            first = not self._skip and not self._begun and self._thoughts is None
            text, self._waiting = ("".join(self._waiting) if first else "") + rest, None
        self._said.append(text)
        self.happened("content", text)

    def think(self) -> None:
        """There is reasoning, and be it empty."""
        self._thoughts = self._thoughts or []

    def thought(self, text: str) -> None:
        """Text of the reasoning block; line feeds at its edges are no part of it."""
        self.think()
        assert self._thoughts is not None
        if not self._thoughts:
            text = text.lstrip("\n")
        body = text.rstrip("\n")
        if body:
            feeds = "".join(self._feeds)
            self._feeds = [text[len(body) :]]
            self._thoughts.append(feeds + body)
            self.happened("reasoning", feeds + body)
        else:
            self._feeds.append(text)

    def begin(self, tool: Tool, id: str) -> None:
        made = secrets.token_hex(5)[:9] if self.form.short_ids else f"call_{secrets.token_hex(12)}"
        self._tool, self._id, self._fragments = tool, id or made, []
        if self._hold == "name":
            self.commit()
        self.happened("call", self._begun, tool.name, self._id)
        self._begun += 1

    def fragment(self, text: str) -> None:
        if text:
            if self._hold == "argument" and text.strip() not in ("", "{", "}"):
                self.commit()
            self._fragments.append(text)
            self.happened("arguments", text)

    def finish(self) -> None:
        assert self._tool is not None
        self._waiting, self._skip = [], WHITESPACE
        try:
            try:
                arguments = json.loads("".join(self._fragments))
            except (ValueError, RecursionError) as error:
                raise ToolError(f"the arguments of {self._tool.name!r} can't be read: {error}") from None
            if self._validate:
                self._tool.validate(arguments)
                if any("." in piece or "e" in piece.lower() for piece in self._fragments):
                    arguments = whole_numbers(arguments, Place(self._tool.parameters))
        except ToolError as error:
            if self._held is not None:
                raise
            self.errors.append(error)
            return
        call = ToolCall(self._tool.name, arguments, self._id, self._tool)
        self._result.append(call)
        self.happened("end", call)

    def commit(self) -> None:
        """From here on calls are meant: what was held back has happened."""
        held, self._held, self._hold = self._held, None, "none"
        self._events += held or []
