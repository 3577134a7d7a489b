"""Harmony: the messages of gpt-oss, written and read.

Purpose: a turn is a row of messages, each in a channel: reasoning in `analysis`, remarks to the user and
calls in `commentary`, the answer in `final`.  A call is a message to `functions.NAME`.
Invariant: the prompt has ended with `<|start|>assistant`, so the first message begins with its header's rest;
or it has opened the first thought, too.
Complexity: linear in the text.
Source: OpenAI's Harmony response format; the reader also takes what the model is seen to write (the recipient
in the role's header, no `<|constrain|>`, a missing `<|call|>` where the server stopped at it).
Rejected: reading channels as triggers in free text: a message has no text outside its channel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from tokenform.errors import ToolError
from tokenform.frontends.tools.definitions import Tool
from tokenform.frontends.tools.read_values import fail
from tokenform.frontends.tools.shape import (
    LINE,
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
from tokenform.frontends.tools.source import Source

if TYPE_CHECKING:
    from tokenform.frontends.tools.reader import Reader

MARKERS = ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>")
_ENDS = ("<|end|>", "<|call|>", "<|return|>", "<|start|>")
_RECIPIENT = re.compile(r"to=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")


def turn(
    call: Callable[[Tool], Node], known: Sequence[Tool], tool_choice: str, most: int | None, reasoning: str
) -> Node:
    """The messages of one turn; the last ends with `<|call|>` or `<|return|>`, which stop the model.

    call: the node of a tool's arguments.
    """
    inside = Free(until=tuple(Trigger(m, special=True) for m in MARKERS))
    more = (Special("<|start|>"), Text("assistant"))

    def message(channel: str, *end: Node) -> Node:
        return sequence(Special("<|channel|>"), Text(channel), Special("<|message|>"), inside, *end)

    thoughts = message("analysis", Special("<|end|>"), *more)
    remark = message("commentary", Special("<|end|>"), *more)
    said = message("final", Special("<|end|>"), *more)
    answer = message("final", optional(choice([Special("<|return|>"), Special("<|end|>")])))
    before = {"none": [thoughts], "required": [thoughts, remark], "auto": [thoughts, remark, said]}[
        tool_choice
    ]
    if reasoning == "none":
        before = [m for m in before if m is not thoughts]
    opened: Node = sequence(inside, Special("<|end|>"), *more) if reasoning == "open" else Seq(())
    rest = Repeat(choice(before), 0, None) if before else Seq(())
    if tool_choice == "none":
        return sequence(opened, rest, answer)
    one = choice([_call(tool, call(tool)) for tool in known])
    ends = choice([Special("<|call|>"), Special("<|end|>")])
    last = sequence(one, optional(ends))
    again = sequence(rest, one, ends, *more)
    calls = sequence(Repeat(again, 0, None if most is None else most - 1), rest, last)
    if tool_choice == "required":
        return sequence(opened, calls)
    return sequence(opened, choice([calls, sequence(Repeat(again, 0, most), rest, answer)]))


def _call(tool: Tool, arguments: Node) -> Node:
    """A call's message: the recipient stands in the role, as the template puts it, or in the channel."""
    recipient = Text(f"to=functions.{tool.name}")
    channel = sequence(Special("<|channel|>"), choice([Text("commentary"), Text("analysis")]))
    space = optional(Text(" "))
    kind = optional(choice([sequence(space, Special("<|constrain|>"), Text("json")), Text(" json")]))
    heads = [sequence(space, recipient, space, channel), sequence(channel, Text(" "), recipient)]
    return sequence(choice(heads), kind, Special("<|message|>"), LINE, arguments, LINE)


def read(reader: Reader) -> Generator[None, None, None]:
    """The messages of one turn, reported to the reader; one that is broken costs itself alone."""
    source = reader.source
    first = True
    channels: set[str] = set()
    if reader.opened:
        reader.think()
        yield from source.until(_ENDS, reader.thought)
        yield from source.accept("<|end|>")
        first, channels = False, {"analysis"}
    while True:
        blank = yield from source.blank()
        head = yield from source.peek(2)
        if not head:
            return
        if first and (yield from source.accept("assistant<|")):  # the role, which the prompt has already
            source.back(source.position - 2)
            head = "<|"
        if head not in ("<|", "to") and first:
            reader.content(blank)
            yield from source.until(MARKERS, reader.content)
            first = False
            continue
        header: list[str] = []
        try:
            if (yield from source.until(("<|message|>",), header.append)) is None:
                raise fail(source, f"the message header {''.join(header)!r} does not end")
            yield from source.accept("<|message|>")
            yield from _message(reader, "".join(header), channels)
        except ToolError as error:
            reader.errors.append(error)
            yield from source.until(_ENDS, lambda text: None)
        for end in _ENDS[:3]:
            yield from source.accept(end)
        first = False


def _message(reader: Reader, header: str, channels: set[str]) -> Generator[None, None, None]:
    channel, recipient = _CHANNEL.search(header), _RECIPIENT.search(header)
    kind = channel.group(1) if channel else ""
    if recipient:
        yield from reader.calls.addressed(recipient.group(1).removeprefix("functions."))
        yield from reader.source.blank()
        yield from _ended(reader.source)
    elif kind == "analysis":
        if "analysis" in channels and reader.has_thoughts:
            reader.thought("\n")
        reader.think()
        yield from reader.source.until(_ENDS, reader.thought)
    elif kind in ("final", "commentary"):
        if channels & {"final", "commentary"} and reader.has_content:
            reader.content("\n")
        yield from reader.source.until(_ENDS, reader.content)
    else:
        known = "there are analysis, commentary and final"
        raise fail(reader.source, f"{kind!r} is no channel; {known}", asked=False)
    channels.add(kind)


def _ended(source: Source) -> Generator[None, None, None]:
    """A call's message ends here; a stop may have taken the marker, or a part of it.

    Raises:
        ToolError: something else stands here.
    """
    for end in _ENDS:
        if (yield from source.matches(end)):
            return
        if (yield from source.within(end)):
            source.take(len((yield from source.peek(len(end)))))
            return
    raise fail(source, "a call's message needs '<|call|>' here", asked=False)
