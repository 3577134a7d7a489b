"""A result as a notebook shows it: how sure the model was of each token, and who wrote it.

Purpose: `Result._repr_html_`.
Invariant: only what the run recorded is shown: each token's probability under the model, whether the
constraint left any other token, and whether the token was an accepted draft.  Texts are escaped.
Complexity: one mask a token, looked up where the run has left it.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenform.decoding.results import Result
    from tokenform.engine import State, TokenAutomaton

_FORCED, _DRAFT = "border-bottom:2px solid #0b7285", "border-top:2px dotted #e8590c"
_CUT = "font-style:italic;text-decoration:line-through"


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
        f"{len(result.tokens)} tokens in {result.stats.forwards} forward passes{_ended(result)}"
    )
    return (
        '<div style="font:14px ui-monospace,Menlo,Consolas,monospace;white-space:pre-wrap;line-height:1.9">'
        f'{"".join(spans)}<div style="font:12px system-ui,sans-serif;opacity:.75;margin-top:.6em">'
        f"{legend}</div></div>"
    )


def _ended(result: Result) -> str:
    """That the budget cut in, where it did."""
    if result.reason != "length":
        return ""
    made = escape(", ".join(one for one in result.cut if one))
    return f' · <span style="{_CUT}">closed by max_tokens</span>' + (f" (it made {made})" if made else "")


def forced_places(result: Result) -> list[bool]:
    """Whether the constraint left no other text at the place of each token, however it is cut into tokens."""
    automaton = result.automaton
    assert automaton is not None
    state, alone = automaton.start, []
    for token in result.tokens:
        alone.append(is_forced(automaton, state, token))
        state = automaton.advance(state, token)
    return alone


def is_forced(automaton: TokenAutomaton, state: State, token: int) -> bool:
    """Whether the constraint leaves no other text at the place of a token."""
    return automaton.forced_bytes(state).startswith(automaton.vocabulary.token(token))
