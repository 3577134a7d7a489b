"""One sequence of a call: its request and its output.

Invariant: its output ends in an accepting state and has at most `max_tokens` tokens, or it has an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from tokenform.decoding.pieces import TextPieces
from tokenform.decoding.speculative.request import Output, Request
from tokenform.decoding.thinking import Preamble, Thought
from tokenform.engine import TokenAutomaton
from tokenform.errors import BudgetTooSmall, LimitExceeded


@dataclass
class Row(Request):
    """One sequence: its request, and its decoder's records.

    Attributes:
        companion_ids: the second prompt of a mixture; empty: `prompt` itself.
        drafted: whether drafts are made for it.
        read: how many ids of `prompt` are the prompt's own; None: all.
        preamble: what is written before the text; None: nothing.
        thought: the finished thought, which `prompt` then ends with; None: none.
        stop: texts that end the text wherever it is complete.
        output: what is written.
    """

    companion_ids: Sequence[int] = ()
    drafted: bool = False
    read: int | None = None
    preamble: Preamble | None = None
    thought: Thought | None = None
    stop: Sequence[str] = ()
    output: Output = field(default_factory=Output)

    def pieces(self) -> TextPieces:
        """What reads the text, up to a stop."""
        return TextPieces(self.stop, self.automaton.matches)


def check_budget(automaton: TokenAutomaton, budget: int) -> None:
    """Refuses a budget in which no text is known to fit (`BudgetTooSmall`)."""
    if automaton.fits(automaton.start, budget):
        return
    shortest = None
    with contextlib.suppress(LimitExceeded):  # the error names the least number where it is known
        shortest = automaton.distance(automaton.start)
    check_shortest(shortest, budget)


def check_shortest(shortest: int | None, budget: int) -> None:
    """Refuses a budget below the tokens of the shortest completion; None: no text is known to fit."""
    if shortest is None:
        raise BudgetTooSmall(
            f"no complete text is known to fit into {budget} tokens; raise max_tokens, or simplify the "
            "constraint."
        )
    if shortest > budget:
        error = BudgetTooSmall(
            f"no complete text fits into {budget} tokens: the shortest that is known has {shortest}; "
            "raise max_tokens, or shorten the prompt if the model's context is full."
        )
        error.least = shortest
        raise error
