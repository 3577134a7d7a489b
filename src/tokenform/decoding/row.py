"""One sequence of a call: what is asked for, and what was written.

Invariant: a row ends in an accepting state and has at most `budget` tokens, or it has an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.results import Stats
from tokenform.decoding.speculative.drafters import Hints
from tokenform.decoding.speculative.report import Report
from tokenform.engine import State, TokenAutomaton
from tokenform.errors import BudgetTooSmall, LimitExceeded, TokenformError


@dataclass
class Row:
    """One sequence.

    Attributes:
        prompt: its ids, at least one.
        automaton: its constraint.
        budget: most tokens that it may have.
        seed, number: key of its draws, with the prompt and the position.
        state: state of the automaton after `tokens`.
        tokens: what was written so far, end-of-text excluded.
        hints: what the constraint suggests to drafters.
        companion: ids of the second prompt of a mixture; the same as `prompt` where it is left out.
        distribution: how its tokens are drawn; None: as those of the decoder's other rows.
        alternatives: how many of the model's likeliest tokens to tell at each token.
        logprobs: whether the tokens' log-probabilities are told.
        drafter: guesses its tokens; None: the decoder's own does.
        logprob: log-probability of `tokens` under the model's own distribution.
        token_logprobs: the same for each token.
        guessed: whether each token is an accepted draft.
        likeliest: at each token (id, log-probability) of the model's likeliest ones, best first.
        reason: "end" (an end-of-text token, or nothing else may follow) or "length" (the budget is used up).
        report: what speculation did; None without.
        error: why it has no text; None where it has one.
    """

    prompt: list[int]
    automaton: TokenAutomaton
    budget: int
    seed: int
    number: int = 0
    hints: Hints | None = None
    companion: Sequence[int] = ()
    distribution: MaskedSampler | None = None
    alternatives: int = 0
    logprobs: bool = True
    drafter: Any = None
    state: State = field(init=False)
    tokens: list[int] = field(default_factory=list)
    logprob: float = 0.0
    token_logprobs: list[float] = field(default_factory=list)
    guessed: list[bool] = field(default_factory=list)
    likeliest: list[list[tuple[int, float]]] = field(default_factory=list)
    stats: Stats = field(default_factory=Stats)
    reason: str = "end"
    report: Report | None = None
    error: TokenformError | None = None

    def __post_init__(self) -> None:
        self.state = self.automaton.start
        check_room(self.automaton, self.budget)


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
