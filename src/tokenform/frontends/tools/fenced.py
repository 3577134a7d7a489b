"""Turns whose reasoning, answer and calls each stand between markers, and nothing stands outside.

Purpose: where every part of a message has its own channel, the turn is the row of the channels; free text
ends at the marker that closes its channel.
Invariant: the prompt may have opened the first channel, so its opening marker may be left out.
Complexity: constant, beside the calls.
Source: the chat template of moonshotai/Kimi-K3.
Rejected: free text until a trigger (the tokens of the markers would be free text, too).
"""

from __future__ import annotations

from collections.abc import Callable

from tokenform.frontends.tools.layout import Format
from tokenform.frontends.tools.shape import BLANK, Free, Node, Seq, Trigger, choice, optional, sequence


def turn(form: Format, literal: Callable[[str], Node], calls: Node, tool_choice: str, reasoning: str) -> Node:
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
