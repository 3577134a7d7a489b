"""A thought before a text: what a model writes between its markers, with a budget of its own.

Purpose: `Scheduler.submit(thinking=...)`.  The thought is a row of its own; the text's row follows it, with
the thought in its prompt.
Invariant: the thought ends within its budget, and leaves as many tokens as the shortest completion of the
text has.
Rejected: one grammar for both (a budget of tokens is no property of a language; the thought could take all
but the last few of the text's).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tokenform.decoding.generator import Generator
from tokenform.decoding.pieces import TextPieces
from tokenform.decoding.row import Row
from tokenform.engine import Grammar
from tokenform.errors import BudgetTooSmall, OptionError


@dataclass(frozen=True)
class Thinking:
    """How a text's thought is written.

    Attributes:
        grammar: of the thought with its markers.
        opener, closer: the markers; an empty opener: the prompt has it already.
        max_tokens: most tokens of the thought, markers included; None: as many as its share allows.
        share: the part of what the shortest completion leaves that the thought may take, above 0 to 1.
    """

    grammar: Grammar
    opener: str
    closer: str
    max_tokens: int | None = None
    share: float = 1.0

    def rows(self, generator: Generator, answers: list[Row]) -> list[Row]:
        """A row for the thought before each of a call's texts.

        Raises:
            BudgetTooSmall: no thought and text fit into the text's budget together.
            OptionError: no thought fits into `max_tokens`.
        """
        automaton = self.grammar.compile(generator.vocabulary)
        least = automaton.distance(automaton.start)
        if least is not None and self.max_tokens is not None and least > self.max_tokens:
            message = f"no thought fits into {self.max_tokens} tokens: the shortest has {least}."
            raise OptionError(message)
        first = answers[0]
        text = first.automaton.distance(first.automaton.start, first.budget)
        left = first.budget - (first.budget if text is None else text)
        most = left if self.max_tokens is None else min(left, self.max_tokens)
        try:
            return generator.rows(
                first.prompt, self.grammar, len(answers), first.seed, min(most, int(left * self.share))
            )
        except BudgetTooSmall:
            raise self.refused(generator, first.budget, text) from None

    def refused(self, generator: Generator, budget: int, text: int | None) -> BudgetTooSmall:
        """The error of a budget that is too small for both; `text`: the tokens of a short text."""
        automaton = self.grammar.compile(generator.vocabulary)
        least = automaton.distance(automaton.start)
        known = None if least is None or text is None else math.ceil(least / self.share) + text
        told = "raise max_tokens" if known is None else f"the least number that is known to do is {known}"
        error = BudgetTooSmall(f"no thought and text fit into {budget} tokens; {told}.")
        error.least = known
        return error

    def pieces(self) -> ThoughtPieces:
        """Reads the text of one thought."""
        return ThoughtPieces(self.opener, self.closer)


class ThoughtPieces:
    """The text between two markers, in whole characters as they come."""

    def __init__(self, opener: str, closer: str) -> None:
        self._opener, self._pieces = opener, TextPieces([closer])
        self._held, self.text = "", ""

    def feed(self, data: bytes) -> str:
        """The characters that are complete now; may be empty."""
        return self._inside(self._pieces.feed(data))

    def finish(self) -> str:
        """What is left at the end of the thought."""
        return self._inside(self._pieces.finish())

    def _inside(self, text: str) -> str:
        self._held += text
        if self._opener:
            _, opened, rest = self._held.partition(self._opener)
            if not opened:
                return ""
            self._opener, self._held = "", rest
        if not self.text:
            self._held = self._held.lstrip()
        kept = self._held.rstrip()  # line feeds beside the markers are no part of it
        self._held = self._held[len(kept) :]
        self.text += kept
        return kept
