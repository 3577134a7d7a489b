"""Harmony: the messages of gpt-oss as a tree; `read_harmony.py` reads them.

Purpose: a turn is a row of messages, each in a channel: reasoning in `analysis`, remarks to the user and
calls in `commentary`, the answer in `final`.  A call is a message to `functions.NAME`.
Invariant: the prompt has ended with `<|start|>assistant`, so the first message begins with its header's rest;
or it has opened the first thought, too.
Complexity: linear in the text.
Source: OpenAI's Harmony response format.
Rejected: reading channels as triggers in free text: a message has no text outside its channel.
"""

from __future__ import annotations

from collections.abc import Callable

from tokenform.frontends.tools.call import CallWriter, Named, check_name
from tokenform.frontends.tools.layout import Part
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

_CHANNEL = sequence(Special("<|channel|>"), choice([Text("commentary"), Text("analysis")]))
MARKERS = ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>")


def turn(one: Node, tool_choice: str, most: int | None, reasoning: str) -> Node:
    """The messages of one turn; the last ends with `<|call|>` or `<|return|>`, which stop the model.

    one: a call's message.
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
    ends = choice([Special("<|call|>"), Special("<|end|>")])
    last = sequence(one, optional(ends))
    again = sequence(rest, one, ends, *more)
    calls = sequence(Repeat(again, 0, None if most is None else most - 1), rest, last)
    if tool_choice == "required":
        return sequence(opened, calls)
    return sequence(opened, choice([calls, sequence(Repeat(again, 0, most), rest, answer)]))


def call(named: Callable[[Named], Node], parts: tuple[Part, ...]) -> Node:
    """A call's message: the recipient stands in the role, as the template puts it, or in the channel.

    named: the calls of all tools, from their names on.
    """
    role = sequence(optional(Text(" ")), Text("to=functions."), named(Named(parts, _in_role)))
    return choice([role, sequence(_CHANNEL, Text(" to=functions."), named(Named(parts, _in_channel)))])


def _in_role(writer: CallWriter, parts: tuple[Part, ...]) -> Node:
    return sequence(Text(writer.tool.name), optional(Text(" ")), _CHANNEL, _message(writer, parts))


def _in_channel(writer: CallWriter, parts: tuple[Part, ...]) -> Node:
    return sequence(Text(writer.tool.name), _message(writer, parts))


def _message(writer: CallWriter, parts: tuple[Part, ...]) -> Node:
    """The kind and the arguments."""
    check_name(writer.form, parts, writer.tool)
    space = optional(Text(" "))
    kind = optional(choice([sequence(space, Special("<|constrain|>"), Text("json")), Text(" json")]))
    return sequence(kind, Special("<|message|>"), LINE, writer.json(), LINE)
