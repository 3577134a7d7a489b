"""Explains a text token by token: what was allowed, forced and drawn.

Purpose: `tf.debug`, and `Result._repr_html_`: the model's confidence in each token, and the token's source.
Invariant: shows only records of the run and facts of the constraint; nothing is run again.  In HTML texts are
escaped.
Complexity: one mask a token, cached since the run.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from tokenform.decoding.results import Result
from tokenform.errors import OptionError

if TYPE_CHECKING:
    from tokenform.engine import State, TokenAutomaton

_SHOWN = 3  # other tokens of a line
_FORCED, _DRAFT = "border-bottom:2px solid #0b7285", "border-top:2px dotted #e8590c"
_CUT = "font-style:italic;text-decoration:line-through"


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
            alternatives = (
                "forced" if step.forced else "or " + " ".join(map(repr, step.others)) if step.others else ""
            )
            drawn = " ".join(part for part in ("draft" * step.drafted, alternatives) if part)
            lines.append(f"{step.text!r:<16}{step.allowed:>8}  {step.probability:>11.3g}  {drawn}".rstrip())
        stats = self._result.stats
        return "\n".join([*lines, f"{len(self)} tokens in {stats.forwards} forward passes"])

    def _repr_html_(self) -> str:
        return result_html(self._result)


def debug(result: Result[Any]) -> Steps:
    """What was allowed and drawn at each token of a result.

    Raises:
        OptionError: a weighted sampler drew it, which keeps no records of tokens; or `logprobs=False`.

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


def result_html(result: Result) -> str:
    """The text, token by token, with a legend; the plain text where nothing was recorded."""
    if result.automaton is None or len(result.token_logprobs) != len(result.tokens):
        return f"<pre>{escape(result.text)}</pre>"
    forced, drafted = forced_places(result), result.guessed
    tokens = result.automaton.vocabulary.tokens
    spans, written = [], 0
    for place, token in enumerate(result.tokens):
        probability = math.exp(result.token_logprobs[place])
        notes = [f"probability {probability:.3g} under the model"]
        styles = [f"background:rgba(232,89,12,{0.55 * (1 - probability):.2f})"]
        if forced[place]:
            styles.append(_FORCED)
            notes.append("the constraint left no other text")
        if drafted[place]:
            styles.append(_DRAFT)
            notes.append("an accepted draft")
        if result.cut_at is not None and written >= result.cut_at:
            styles.append(_CUT)
            notes.append("written after max_tokens cut in")
        written += len(tokens[token].decode("utf-8", "ignore"))
        shown = escape(tokens[token].decode("utf-8", "replace")).replace("\n", "⏎\n")
        spans.append(f'<span style="{";".join(styles)}" title="{"; ".join(notes)}">{shown}</span>')
    legend = (
        f'<span style="background:rgba(232,89,12,.55)">unlikely for the model</span> · '
        f'<span style="{_FORCED}">forced by the constraint</span> ({sum(forced)}) · '
        f'<span style="{_DRAFT}">accepted draft</span> ({sum(drafted)}) · '
        f"{len(result.tokens)} tokens in {result.stats.forwards} forward passes{_budget_note(result)}"
    )
    return (
        '<div style="font:14px ui-monospace,Menlo,Consolas,monospace;white-space:pre-wrap;line-height:1.9">'
        f'{"".join(spans)}<div style="font:12px system-ui,sans-serif;opacity:.75;margin-top:.6em">'
        f"{legend}</div></div>"
    )


def _budget_note(result: Result) -> str:
    """A note where the budget cut in."""
    if result.reason != "length":
        return ""
    pointers = escape(", ".join(one for one in result.cut if one))
    return f' · <span style="{_CUT}">closed by max_tokens</span>' + (
        f" (it made {pointers})" if pointers else ""
    )


def forced_places(result: Result) -> list[bool]:
    """Whether the constraint left no other text at the place of each token, however it is cut into tokens."""
    automaton = result.automaton
    assert automaton is not None
    state, forced = automaton.start, []
    for token in result.tokens:
        forced.append(is_forced(automaton, state, token))
        state = automaton.advance(state, token)
    return forced


def is_forced(automaton: TokenAutomaton, state: State, token: int) -> bool:
    """Whether the constraint leaves no other text at the place of a token."""
    return automaton.forced_bytes(state).startswith(automaton.vocabulary.token(token))
