"""One sequence of a call: what is asked for, and what was written.

Invariant: its output ends in an accepting state and has at most `max_tokens` tokens, or it has an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from tokenform.decoding.speculative.request import Output, Request
from tokenform.decoding.thinking import Lead, Thought
from tokenform.engine import TokenAutomaton
from tokenform.errors import BudgetTooSmall, LimitExceeded


@dataclass
class Row(Request):
    """One sequence: what is asked of the model for it, and what its decoder keeps of it beside that.

    Attributes:
        companion: ids of the second prompt of a mixture; the same as `prompt` where it is left out.
        drafted: whether drafts are made for it.
        read: how many ids of `prompt` the prompt itself has; None: all.
        lead: what is written before it; None: nothing.
        thought: that was written before it, and is a part of `prompt` by then; None: none.
        output: what is written.
    """

    companion: Sequence[int] = ()
    drafted: bool = False
    read: int | None = None
    lead: Lead | None = None
    thought: Thought | None = None
    output: Output = field(default_factory=Output)


def check_room(automaton: TokenAutomaton, budget: int) -> None:
    """Refuses a budget in which no text is known to fit (`BudgetTooSmall`)."""
    if automaton.fits(automaton.start, budget):
        return
    shortest = None
    with contextlib.suppress(LimitExceeded):  # the error says how many there should be, where that is known
        shortest = automaton.distance(automaton.start)
    check_shortest(shortest, budget)


def check_shortest(shortest: int | None, budget: int) -> None:
    """Refuses a budget that is less than the tokens of the known completion; None: no text is known to
    fit."""
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
