"""Copying the input: for edits, where the output is the prompt but for a few places.

Purpose: a pointer runs through the input beside the output.  While they agree the draft is a
long piece of the input; where they part, the pointer is set again to the place nearest to it
where the last tokens stand, so that insertions, deletions and replacements are passed over.
Invariant: the pointer is None or stands behind the last committed token's place in the input.
Complexity: O(draft) a proposal; a search of the input only where the texts part.
Source: Yang et al. 2023 (Inference with reference); speculative edits.
Rejected: n-gram lookup alone (it follows the latest place, not the next one in order).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..tree import ROOT, DraftTree
from .base import Budget, Context, Seen, Session, Silent


class Input:
    """Args:
    tokens: longest draft; it doubles from 8 with each draft that is accepted to its end.
    anchor: tokens that must agree for the pointer to be set.
    span: (start, end) of the part of the prompt to copy; None is all of it.
    """

    name, drawn = "input", False

    def __init__(self, tokens: int = 64, anchor: int = 2, span: tuple[int, int] | None = None) -> None:
        self.tokens, self.anchor, self.span = tokens, anchor, span

    def session(self, context: Context) -> Session:
        start, end = self.span if self.span is not None else (0, context.prompt_length)
        return _InputSession(self, list(context.tokens[start:end]))


class _InputSession(Silent):
    def __init__(self, drafter: Input, text: list[int]) -> None:
        self.drafter, self.text = drafter, text
        self.pointer: int | None = 0
        self.length = 8
        self.last = 0

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        tree = DraftTree()
        if context.path:
            return tree
        most = min(self.length, budget.nodes, budget.depth)
        places = [self.pointer] if self.pointer is not None else []
        if self.pointer is None:
            places = self._places(context.tail(self.drafter.anchor))[:2]
        for place in places:
            piece = self.text[place : place + most - len(tree)]
            tree.add_path(ROOT, piece, self.drafter.name, 0.9 if self.pointer is not None else 0.5)
        self.last = most
        return tree

    def _places(self, tail: Sequence[int]) -> list[int]:
        """Ends of occurrences of `tail` in the input, those nearest to the last pointer first."""
        n, tail = len(tail), list(tail)
        found = [i + n for i in range(len(self.text) - n + 1) if self.text[i : i + n] == tail]
        return sorted(found, key=lambda place: abs(place - self.near))

    near = 0

    def observe(self, context: Context, seen: Seen) -> None:
        start = self.pointer
        for token in seen.committed:
            if (
                self.pointer is not None
                and self.pointer < len(self.text)
                and self.text[self.pointer] == token
            ):
                self.pointer += 1
                self.near = self.pointer
            else:
                self.pointer = None
        if start is not None and self.pointer is not None:
            self.length = min(self.length * 2, self.drafter.tokens)
        else:
            self.length = 8
        if self.pointer is None:
            tail = context.tail(self.drafter.anchor)
            output = len(context.tokens) - context.prompt_length
            places = self._places(tail) if output >= self.drafter.anchor else []
            if len(places) == 1 or (places and abs(places[0] - self.near) <= 8):
                self.pointer = self.near = places[0]
