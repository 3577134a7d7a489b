"""Turns made of channels: every part of a message stands between markers, and nothing stands outside.

Purpose: Kimi K3's turn is the row of its channels, thoughts, answer, calls.  Harmony's (gpt-oss) is a row of
messages, each in a channel: reasoning in `analysis`, remarks to the user and calls in `commentary`, the
answer in `final`; a call is a message to `functions.NAME`.
Invariant: the prompt may have opened the first channel, so what opens it may be left out; Harmony's has ended
with `<|start|>assistant`, so the first message begins with its header's rest.
Complexity: constant beside the calls; reading is linear in the text.
Source: the chat template of moonshotai/Kimi-K3; OpenAI's Harmony response format.  The reader also takes what
gpt-oss is seen to write (the recipient in the role's header, no `<|constrain|>`, a missing `<|call|>` where
the server stopped at it).
Rejected: free text until a trigger (the tokens of the markers would be free text, too, and a message has no
text outside its channel).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tokenform.errors import ToolError
from tokenform.frontends.tools.call import CallWriter, Named, check_name
from tokenform.frontends.tools.layout import Format, Part
from tokenform.frontends.tools.read_turn import TurnRead
from tokenform.frontends.tools.read_values import fail
from tokenform.frontends.tools.shape import (
    BLANK,
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
from tokenform.frontends.tools.source import Reading, Source

_CALLS_CHANNEL = sequence(Special("<|channel|>"), choice([Text("commentary"), Text("analysis")]))
MARKERS = ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>")
_ENDS = ("<|end|>", "<|call|>", "<|return|>", "<|start|>")
_RECIPIENT = re.compile(r"to=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")


def fenced_turn(
    form: Format, literal: Callable[[str], Node], calls: Node, tool_choice: str, reasoning: str
) -> Node:
    """The channels of one turn, in order: thoughts, answer, calls."""

    def channel(markers: tuple[str, ...]) -> tuple[Node, Node]:
        """The channel with its opening marker, and without."""
        close, special = form.pieces(markers[1])[0]
        rest = sequence(Free(until=(Trigger(close, special=special),)), literal(markers[1]), BLANK)
        return sequence(BLANK, literal(markers[0]), rest), rest

    thoughts, thinking = channel(form.reasoning)
    answer, answering = channel(form.content)
    after = sequence(choice([thoughts, thinking]), optional(answer))
    cut = Free(until=(Trigger(form.pieces(form.wire.opener)[0][0], special=True),))  # an answer left open
    plain = sequence(BLANK, optional(choice([answer, answering, *([] if tool_choice == "none" else [cut])])))
    head = {"none": plain, "open": sequence(thinking, optional(answer))}.get(
        reasoning, choice([after, plain])
    )
    last = {"none": Seq(()), "required": sequence(calls, BLANK)}.get(tool_choice, optional(calls))
    # A message that is cut, or was never fenced, is text alone.
    bare = Free(until=(Trigger(form.pieces(form.content[1])[0][0], special=True),))
    fenced = sequence(head, last, optional(literal(form.end)))
    return fenced if tool_choice == "required" else choice([fenced, bare])


def harmony_turn(one: Node, tool_choice: str, most: int | None, reasoning: str) -> Node:
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


def harmony_call(named: Callable[[Named], Node], parts: tuple[Part, ...]) -> Node:
    """A call's message: the recipient stands in the role, as the template puts it, or in the channel.

    named: the calls of all tools, from their names on.
    """
    role = sequence(optional(Text(" ")), Text("to=functions."), named(Named(parts, _in_role)))
    return choice([role, sequence(_CALLS_CHANNEL, Text(" to=functions."), named(Named(parts, _in_channel)))])


def _in_role(writer: CallWriter, parts: tuple[Part, ...]) -> Node:
    return sequence(Text(writer.tool.name), optional(Text(" ")), _CALLS_CHANNEL, _message(writer, parts))


def _in_channel(writer: CallWriter, parts: tuple[Part, ...]) -> Node:
    return sequence(Text(writer.tool.name), _message(writer, parts))


def _message(writer: CallWriter, parts: tuple[Part, ...]) -> Node:
    """The kind and the arguments."""
    check_name(writer.form, parts, writer.tool)
    space = optional(Text(" "))
    kind = optional(choice([sequence(space, Special("<|constrain|>"), Text("json")), Text(" json")]))
    return sequence(kind, Special("<|message|>"), LINE, writer.json(), LINE)


def read_harmony(reader: TurnRead) -> Reading[None]:
    """The messages of one turn, reported to the reader; one that is broken costs itself alone."""
    source = reader.source
    first = True
    channels: set[str] = set()
    if reader.reasoning == "open":
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
            yield from _read_message(reader, "".join(header), channels)
        except ToolError as error:
            reader.errors.append(error)
            yield from source.until(_ENDS, lambda text: None)
        for end in _ENDS[:3]:
            yield from source.accept(end)
        first = False


def _read_message(reader: TurnRead, header: str, channels: set[str]) -> Reading[None]:
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


def _ended(source: Source) -> Reading[None]:
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
