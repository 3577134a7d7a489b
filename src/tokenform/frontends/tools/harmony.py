"""Harmony: the messages of gpt-oss, written and read.

Purpose: a turn is a row of messages, each in a channel: reasoning in `analysis`, remarks to the user and
calls in `commentary`, the answer in `final`.  A call is a message to `functions.NAME`.
Invariant: the prompt has ended with `<|start|>assistant`, so the first message begins with its header's rest.
Complexity: linear in the text.
Source: OpenAI's Harmony response format; the reader also takes what the model is seen to write (the recipient
in the role's header, no `<|constrain|>`, a missing `<|call|>` where the server stopped at it).
Rejected: reading channels as triggers in free text: a message has no text outside its channel.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TYPE_CHECKING

from tokenform.frontends.tools.read_values import fail
from tokenform.frontends.tools.shape import (
    Free,
    Node,
    Repeat,
    Seq,
    Special,
    Text,
    Trigger,
    choice,
    optional,
    sequence,
)

if TYPE_CHECKING:
    from tokenform.frontends.tools.reader import Reader

MARKERS = ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>")
_ENDS = ("<|end|>", "<|call|>", "<|return|>", "<|start|>")
_RECIPIENT = re.compile(r"to=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")


def turn(call: Node, tool_choice: str, reasoning: str) -> Node:
    """The messages of one turn; the last ends with `<|call|>` or `<|return|>`, which stop the model."""
    inside = Free(until=tuple(Trigger(m, special=True) for m in MARKERS))
    next_message = (Special("<|end|>"), Special("<|start|>"), Text("assistant"))

    def message(channel: str, *end: Node) -> Node:
        return sequence(Special("<|channel|>"), Text(channel), Special("<|message|>"), inside, *end)

    thoughts = message("analysis", *next_message)
    remark = message("commentary", *next_message)
    answer = message("final", optional(Special("<|return|>")))
    before = {"none": [thoughts], "required": [thoughts, remark], "auto": [thoughts, remark]}[tool_choice]
    if reasoning == "none":
        before = [m for m in before if m is not thoughts]
    opened: Node = Seq(())
    if reasoning == "open":
        opened = sequence(inside, *next_message)
    last = {"none": [answer], "required": [call], "auto": [answer, call]}[tool_choice]
    stopped = [m if m is answer else sequence(m, optional(Special("<|call|>"))) for m in last]
    several = Repeat(choice(before), 0, None) if before else Seq(())
    return sequence(opened, several, choice(stopped))


def read(reader: Reader) -> Generator[None, None, None]:
    """The messages of one turn, reported to the reader."""
    source = reader.source
    first = True
    channels: set[str] = set()
    while True:
        blank = yield from source.blank()
        head = yield from source.peek(2)
        if not head:
            return
        if head not in ("<|", "to") and first:
            reader.content(blank)
            yield from source.until(MARKERS, reader.content)
            first = False
            continue
        header: list[str] = []
        if (yield from source.until(("<|message|>",), header.append)) is None:
            raise fail(source, f"the message header {''.join(header)!r} does not end")
        yield from source.accept("<|message|>")
        yield from _message(reader, "".join(header), channels)
        for end in _ENDS[:3]:
            yield from source.accept(end)
        first = False


def _message(reader: Reader, header: str, channels: set[str]) -> Generator[None, None, None]:
    channel, recipient = _CHANNEL.search(header), _RECIPIENT.search(header)
    kind = channel.group(1) if channel else ""
    if recipient:
        yield from reader.calls.addressed(recipient.group(1).removeprefix("functions."))
        yield from reader.source.blank()
    elif kind == "analysis":
        if "analysis" in channels and reader.result.reasoning:
            reader.thought("\n")
        reader.result.reasoning = reader.result.reasoning or ""
        yield from reader.source.until(_ENDS, reader.thought)
    elif kind in ("final", "commentary"):
        if channels & {"final", "commentary"} and reader.result.content:
            reader.content("\n")
        yield from reader.source.until(_ENDS, reader.content)
    else:
        raise fail(reader.source, f"{kind!r} is no channel; there are analysis, commentary and final")
    channels.add(kind)
