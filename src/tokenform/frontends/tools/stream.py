"""Outputs read: whole by `parse_tool_calls`, or in pieces as the deltas of OpenAI's streaming API.

Purpose: `feed` takes a piece as it comes from the model, as text or as bytes, and gives the deltas that it
completes.
Invariant: the deltas of a text, joined, are the result of `parse_tool_calls`, for any way of cutting it.
Complexity: linear in the text.
Source: OpenAI's API reference, "chat completion chunk object"; `reasoning_content` as vLLM and SGLang name
it.
Rejected: a delta per character (clients rebuild the message from whatever comes).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.calls import ToolCalls
from tokenform.frontends.tools.definitions import ToolLike
from tokenform.frontends.tools.detect import find_format
from tokenform.frontends.tools.read_turn import Event
from tokenform.frontends.tools.reader import Reader, read_turn


def parse_tool_calls(
    text: str,
    tools: Iterable[ToolLike],
    *,
    format: Any,
    reasoning: str = "auto",
    prompt: str | None = None,
    validate: bool = True,
) -> ToolCalls:
    """The calls of an output, with its content and its reasoning.

    Args:
        text: the output, special tokens included as text, without the prompt.
        tools: as for `tools`.
        format: a format's name, or a tokenizer whose chat template shows it.
        reasoning: "auto": a block that is closed before the first call is reasoning, whether the output or
            the prompt opened it; "open": the prompt opened one; "none": there is none.
        prompt: the prompt as the chat template renders it; with "auto", its end tells whether it opened one.
        validate: check the arguments against the tool's schema.
    Raises:
        ToolError: a call that is malformed, of an unknown tool or with wrong arguments; the message says
            where.  `calls` holds all that was read beside it, `cut` says that the text just ended.
    """
    form = find_format(format)
    return read_turn(text, tools, format=form, reasoning=reasoning, prompt=prompt, validate=validate)


class ToolCallStream:
    """The streaming reader of one output.

    With `reasoning="auto"` text is held back until it is known whether the prompt had opened a reasoning
    block, that is to the first marker.  Give the rendered prompt, or say "open" or "none", to have it at
    once.

    Attributes:
        result: the calls, content and reasoning so far.
    """

    def __init__(
        self,
        tools: Iterable[ToolLike],
        *,
        format: Any,
        reasoning: str = "auto",
        prompt: str | None = None,
        validate: bool = True,
    ) -> None:
        form = find_format(format)
        self._reader = Reader(form, tools, reasoning=reasoning, prompt=prompt, validate=validate)
        self._decoder = codecs.getincrementaldecoder("utf-8")("strict")
        self._index = -1
        self._began = False

    @property
    def result(self) -> ToolCalls:
        return self._reader.result

    @property
    def errors(self) -> list[ToolError]:
        """The calls that were refused so far; their deltas break off."""
        return self._reader.errors

    @property
    def finish_reason(self) -> str:
        """What the last chunk says: "tool_calls" if there was a call, else "stop"."""
        return "tool_calls" if self.result else "stop"

    def feed(self, piece: str | bytes) -> list[dict[str, Any]]:
        """The deltas that this piece completes; a character cut in two waits for its rest.

        Raises:
            ToolError: the output is not UTF-8.
        """
        return self._deltas(self._reader.feed(self._decode(piece, False)))

    def close(self, *, cut: bool = False) -> list[dict[str, Any]]:
        """The last deltas; the output is over.

        Args:
            cut: it breaks off, as where a budget ended it: a call in the making is no error.
        Raises:
            ToolError: a call was refused, as `parse_tool_calls` says; its `calls` are the result.
        """
        rest = "" if cut else self._decode(b"", True)
        deltas = self._deltas(self._reader.feed(rest)) if rest else []
        deltas += self._deltas(self._reader.close())
        if not cut:
            self._reader.check()
        return deltas

    def _decode(self, piece: str | bytes, final: bool) -> str:
        if isinstance(piece, str):
            if self._decoder.getstate()[0]:
                raise ToolError("text was fed after bytes that end within a character")
            return piece
        try:
            return self._decoder.decode(piece, final)
        except UnicodeDecodeError as error:
            raise ToolError(f"the output is not UTF-8: {error}") from None

    def _deltas(self, events: list[Event]) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = []
        for name, joined in _runs(events):
            if name == "content":
                deltas.append({"content": joined})
            elif name == "reasoning":
                deltas.append({"reasoning_content": joined})
            elif name == "call":
                self._index, tool, id = joined
                function = {"name": tool, "arguments": ""}
                entry = {"index": self._index, "id": id, "type": "function", "function": function}
                deltas.append({"tool_calls": [entry]})
            elif name == "arguments":
                deltas.append({"tool_calls": [{"index": self._index, "function": {"arguments": joined}}]})
        if deltas and not self._began:
            self._began = True
            deltas[0] = {"role": "assistant", **deltas[0]}
        return deltas


def _runs(events: list[Event]) -> Iterator[tuple[str, Any]]:
    """The events with neighbouring texts of one kind joined."""
    for name, run in groupby(events, key=itemgetter(0)):
        if name in ("content", "reasoning", "arguments"):
            yield name, "".join(text for _, text in run)
        elif name == "call":
            yield from ((name, event[1:]) for event in run)
