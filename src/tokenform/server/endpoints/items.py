"""An answer as a list of items: thoughts, texts and calls, whole or streamed.

Purpose: the common model of `/v1/responses` and `/v1/messages`, which each format it.
Invariant: the steps of a text, joined, are its items.  A turn with tools has nothing that the budget made: a
call whose arguments were not complete at the cut is left out, and breaks off in a stream.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from tokenform.decoding.result_of import is_whole
from tokenform.decoding.results import Result
from tokenform.decoding.scheduler import Piece
from tokenform.server.answering import Work
from tokenform.server.tooling import INPUT, CallLayout


@dataclass
class OutputItem:
    """A thought, a text, or a call.

    Attributes:
        id: of the item; a call's is its own.
        text: of a text; of a call its arguments as JSON text, or the input of a tool that takes text.
        name: of the tool; None for a text.
        custom: the tool takes text.
        thought: it comes before the answer.
        cut: a call whose arguments are not complete.
    """

    id: str
    text: str = ""
    name: str | None = None
    custom: bool = False
    thought: bool = False
    cut: bool = False

    @property
    def arguments(self) -> Any:
        """A call's arguments."""
        return json.loads(self.text)


@dataclass
class ItemStep:
    """A change of the items: `item` begins (`first`), grows by `delta`, or ends (`last`)."""

    place: int
    item: OutputItem
    delta: str = ""
    first: bool = False
    last: bool = False
    tokens: list[int] = field(default_factory=list)


def items_of(work: Work, result: Result) -> list[OutputItem]:
    """The items of a text."""
    writer = Writer(work.request.turn)
    writer.feed(result.reasoning or "", thought=True)
    writer.feed(result.text if work.request.turn is None else result.text[: result.cut_at])
    writer.close(result.cut_at is not None)
    return [item for item in writer.items if not item.cut] or [OutputItem(_fresh("msg"))]


class Writer:
    """Turns pieces of one text into steps."""

    def __init__(self, turn: CallLayout | None) -> None:
        self.items: list[OutputItem] = []
        self._turn, self._open = turn, False
        self._reader = None if turn is None else turn.reader()

    def read(self, piece: Piece) -> list[ItemStep]:
        """The steps that a piece completes; with the last one, all."""
        text = piece.text if self._turn is None else piece.text[: piece.cut]
        steps, result = self.feed(text, piece.thought), piece.result
        return steps if result is None else steps + self.close(result.cut_at is not None)

    def feed(self, text: str, thought: bool = False) -> list[ItemStep]:
        """The steps that a piece completes.

        Args:
            thought: it is of what comes before the answer.
        """
        if not text:
            return []
        if thought:
            return [
                *([] if self._open else self._begin(OutputItem(_fresh("rs"), thought=True))),
                *self._more(text),
            ]
        return self._text(text) if self._reader is None else self._read(self._reader.feed(text))

    def close(self, cut: bool = False) -> list[ItemStep]:
        """The last steps; there is one item at least.

        Args:
            cut: the text breaks off here.
        """
        last = self.items[-1] if self._open else None
        if cut and last is not None and last.name is not None:
            last.cut = not is_whole(last.text)
        deltas = [] if self._reader is None else self._reader.close(cut=cut)
        if cut:  # what the end of a text makes of a call was not written
            deltas = [delta for delta in deltas if "tool_calls" not in delta]
        steps = self._read(deltas)
        if all(item.thought for item in self.items):
            steps += self._begin(OutputItem(_fresh("msg")))
        return steps + self._end()

    def _read(self, deltas: list[dict[str, Any]]) -> list[ItemStep]:
        steps: list[ItemStep] = []
        for delta in deltas:
            if delta.get("content"):
                steps += self._text(delta["content"])
            for call in delta.get("tool_calls", ()):
                function = call["function"]
                if "name" in function:
                    custom = self._turn is not None and function["name"] in self._turn.custom
                    steps += self._begin(
                        OutputItem(call["id"] or _fresh("call"), "", function["name"], custom)
                    )
                if function.get("arguments"):
                    steps += self._more(function["arguments"])
        return steps

    def _text(self, text: str) -> list[ItemStep]:
        last = self.items[-1] if self._open else None
        in_text = last is not None and last.name is None and not last.thought
        return [*([] if in_text else self._begin(OutputItem(_fresh("msg")))), *self._more(text)]

    def _begin(self, item: OutputItem) -> list[ItemStep]:
        ended = self._end()
        self.items.append(item)
        self._open = True
        return [*ended, ItemStep(len(self.items) - 1, item, first=True)]

    def _more(self, text: str) -> list[ItemStep]:
        item = self.items[-1]
        item.text += text
        return [] if item.custom else [ItemStep(len(self.items) - 1, item, text)]

    def _end(self) -> list[ItemStep]:
        if not self._open:
            return []
        self._open = False
        item, place = self.items[-1], len(self.items) - 1
        steps = []
        if item.custom and not item.cut:  # its text is known when its arguments are
            item.text = str(json.loads(item.text).get(INPUT, ""))
            steps.append(ItemStep(place, item, item.text))
        return [*steps, ItemStep(place, item, last=True)]


async def steps_of(work: Work, pieces: AsyncIterator[Piece]) -> AsyncIterator[tuple[ItemStep | None, Piece]]:
    """The steps of the only text, each with the piece that it came with; None with a piece without any, and
    at the end."""
    writer = Writer(work.request.turn)
    async for piece in pieces:
        steps = writer.read(piece)
        for step in steps:
            yield step, piece
        if piece.result is not None or not steps:
            yield None, piece


def _fresh(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(12)}"
