"""Reading Harmony: the messages of gpt-oss, as `harmony.py` writes them.

Complexity: linear in the text.
Source: OpenAI's Harmony response format; the reader also takes what the model is seen to write (the recipient
in the role's header, no `<|constrain|>`, a missing `<|call|>` where the server stopped at it).
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Protocol

from tokenform.errors import ToolError
from tokenform.frontends.tools.harmony import MARKERS
from tokenform.frontends.tools.read_call import CallReader
from tokenform.frontends.tools.read_values import fail
from tokenform.frontends.tools.source import Source

_ENDS = ("<|end|>", "<|call|>", "<|return|>", "<|start|>")
_RECIPIENT = re.compile(r"to=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")


class MessageReader(Protocol):
    """The reader of a turn (`reader.Reader`), as it is told of messages."""

    source: Source
    calls: CallReader
    errors: list[ToolError]

    @property
    def opened(self) -> bool: ...
    @property
    def has_content(self) -> bool: ...
    @property
    def has_thoughts(self) -> bool: ...
    def content(self, text: str) -> None: ...
    def think(self) -> None: ...
    def thought(self, text: str) -> None: ...


def read(reader: MessageReader) -> Generator[None, None, None]:
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


def _message(reader: MessageReader, header: str, channels: set[str]) -> Generator[None, None, None]:
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
