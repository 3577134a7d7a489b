"""How a text came about, token by token: what was allowed, what was forced, what was drawn.

Purpose: `tf.debug`.
Invariant: only what the run recorded and what the constraint says is shown; nothing is run again.
Complexity: one mask a token, looked up where the run has left it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tokenform.decoding.result_html import forced_places, result_html
from tokenform.decoding.results import Result
from tokenform.errors import OptionError

_SHOWN = 3  # other tokens of a line


class ExplainedToken(NamedTuple):
    """One token of a text.

    Attributes:
        text: the token's.
        allowed: how many tokens the constraint allowed here, end-of-text included.
        others: some of the other allowed ones.
        forced: the constraint left no other text, however it is cut into tokens.
        drafted: it is an accepted draft.
        probability: under the model's own distribution, before masks and temperature.
    """

    text: str
    allowed: int
    others: tuple[str, ...]
    forced: bool
    drafted: bool
    probability: float


class Steps(list[ExplainedToken]):
    """The steps of a text; printed as a table, shown in a notebook as the coloured text."""

    def __init__(self, steps: list[ExplainedToken], result: Result[Any]) -> None:
        super().__init__(steps)
        self._result = result

    def __str__(self) -> str:
        lines = [f"{'token':<16}{'allowed':>8}  {'probability':>11}  drawn"]
        for step in self:
            how = "forced" if step.forced else "or " + " ".join(map(repr, step.others)) if step.others else ""
            drawn = " ".join(part for part in ("draft" * step.drafted, how) if part)
            lines.append(f"{step.text!r:<16}{step.allowed:>8}  {step.probability:>11.3g}  {drawn}".rstrip())
        stats = self._result.stats
        return "\n".join([*lines, f"{len(self)} tokens in {stats.forwards} forward passes"])

    def _repr_html_(self) -> str:
        return result_html(self._result)


def debug(result: Result[Any]) -> Steps:
    """What happened at each token of a result.

    Raises:
        OptionError: a weighted sampler drew it, which keeps nothing of single tokens; or `logprobs=False`.

    >>> import tokenform as tf
    >>> steps = tf.debug(tf.generate("The order has been paid.", choices=["paid", "packed"]))
    >>> steps[0].allowed > 1, "".join(step.text for step in steps)
    (True, 'paid')
    """
    automaton = result.automaton
    if automaton is None or len(result.token_logprobs) != len(result.tokens):
        raise OptionError(
            "nothing is known of this text's single tokens; draw it with Local and without logprobs=False."
        )
    texts, forced, state, steps = automaton.vocabulary.tokens, forced_places(result), automaton.start, []
    for place, token in enumerate(result.tokens):
        allowed = automaton.allowed_tokens(state).tolist()
        others = [texts[one].decode("utf-8", "replace") for one in allowed[: _SHOWN + 1] if one != token]
        steps.append(
            ExplainedToken(
                texts[token].decode("utf-8", "replace"),
                len(allowed),
                tuple(others[:_SHOWN]),
                forced[place],
                result.guessed[place],
                math.exp(result.token_logprobs[place]),
            )
        )
        state = automaton.advance(state, token)
    return Steps(steps, result)
