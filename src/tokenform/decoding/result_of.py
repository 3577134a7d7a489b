"""A row that has ended as a result.

Purpose: text, value and ends of what a row wrote, in one place for all who run rows.
Complexity: one pass over the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tokenform.decoding.calls import Constraint, texts_of
from tokenform.decoding.cuts import cut_at, cut_values, whole_calls
from tokenform.decoding.prompts import ReadPrompt
from tokenform.decoding.results import Result, Stats, finder, read_value
from tokenform.decoding.row import Row
from tokenform.frontends.tools.calls import ToolCalls

if TYPE_CHECKING:
    from tokenform.decoding.alternatives import Origin


def result_of(
    row: Row,
    grammar: Constraint,
    spelled: Sequence[bytes],
    stop: str | Sequence[str] = (),
    *,
    origin: Origin,
    prompt: ReadPrompt,
    refused: bool = False,
) -> Result:
    """What a row that has ended holds.

    Args:
        spelled: the bytes of each token id.
        stop: texts at which the text ends, which are left out.
        origin: who wrote it.
        prompt: what the model read.
        refused: a text that validators refuse is given back too, with the `error`.
    Raises:
        InvalidType: validators refuse it.
    """
    output = row.output
    text = b"".join(map(spelled.__getitem__, output.tokens)).decode("utf-8", errors="replace")
    text = text[: min((at for one in texts_of(stop) if (at := text.find(one)) >= 0), default=None)]
    cut, place, made = output.cut, None, list[str]()
    value, error = read_value(grammar, text)
    if error is not None and not refused:
        raise error
    if cut is not None:
        place = min(cut_at(cut, output.tokens, spelled), len(text))
        value = whole_calls(value, grammar, text[:place])
        calls = isinstance(value, ToolCalls)
        made = [""] if calls else cut_values(cut, text, output.tokens, spelled, row.automaton)
    return Result(
        text,
        output.tokens,
        value,
        output.logprob,
        error=error,
        stats=Stats.of(output),
        report=output.report if row.drafted else None,
        token_logprobs=output.token_logprobs,
        guessed=output.guessed,
        likeliest=output.likeliest,
        decided=output.decided,
        reason=output.reason,
        automaton=row.automaton,
        origin=origin,
        cut_at=place,
        cut=made,
        prompt=prompt,
        thought=row.thought,
        find=finder(grammar),
    )
