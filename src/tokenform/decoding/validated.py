"""What becomes of texts that a type's own validators refuse: given back, an error, or written again.

Purpose: `Local` writes a batch as always; what validators refuse is drawn again (`redraw.py`), or answered
with what is wrong with it and written anew (`feedback.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tokenform.decoding.again import Again
from tokenform.decoding.aligned.checked import has_validators
from tokenform.decoding.aligned.protocols import LanguageModel
from tokenform.decoding.feedback import written_anew
from tokenform.decoding.progress import Progress
from tokenform.decoding.redraw import Redraw
from tokenform.decoding.results import Result
from tokenform.decoding.row import Row
from tokenform.decoding.samplers.local import Local
from tokenform.engine import Grammar
from tokenform.errors import TokenformError
from tokenform.frontends import Condition

if TYPE_CHECKING:
    from tokenform.decoding.generator import Generator


def law_of(chosen: Local, grammar: Any, again: Again) -> Local:
    """How the first text of a row is drawn.

    Where a refused one is drawn again, that is a draw given what validators accept, from the law of tokens
    (`redraw.py`), so the first one has that law too; greedy decoding promises no distribution.
    """
    drawn = again.on_invalid == "resample" and not again.feedback and chosen.temperature > 0
    return replace(chosen, values="token", forced="any") if drawn and has_validators(grammar) else chosen


def settled(
    generator: Generator,
    groups: Sequence[Sequence[Row | TokenformError]],
    prompts: Sequence[Any],
    grammars: Sequence[Grammar | Condition],
    chosen: Local,
    again: Again,
    bar: Progress,
) -> list[list[Result | TokenformError]]:
    """Results or errors of all rows, those of a prompt together; the arguments are those of `sample`."""
    again.begin()
    every: list[list[Result | TokenformError]] = []
    model: LanguageModel | None = None
    for group, prompt, grammar in zip(groups, prompts, grammars, strict=True):
        written = [_read(generator, row, grammar, again.stop) for row in group]
        texts = [one for one in written if isinstance(one, Result)]
        mixed = generator.mixing.mixture is not None  # its second model is not at hand here
        if again.on_invalid == "resample" and texts and not mixed and has_validators(grammar):
            assert isinstance(grammar, Grammar)
            if again.feedback:
                written = written_anew(generator, group, written, prompt, grammar, chosen, again, bar)
            else:
                model = model or generator.language_model()
                for places in _by_prompt(group):  # after a thought of its own a row has a prompt of its own
                    rows, found = [group[at] for at in places], [written[at] for at in places]
                    texts = [one for one in found if isinstance(one, Result)]
                    first = next(row for row in rows if isinstance(row, Row))
                    redraw = Redraw(generator, model, grammar, chosen, first, again, texts, bar)
                    drawn = _redrawn(generator, rows, found, redraw, grammar)
                    for at, one in zip(places, drawn, strict=True):
                        written[at] = one
        if again.on_invalid != "return":
            written = [(one.error or one) if isinstance(one, Result) else one for one in written]
        every.append(written)
    return every


def _by_prompt(group: Sequence[Row | TokenformError]) -> list[list[int]]:
    """The places of a group's rows, those of equal prompts together."""
    found: dict[tuple[int, ...], list[int]] = {}
    for place, row in enumerate(group):
        if isinstance(row, Row):
            found.setdefault(tuple(row.prompt), []).append(place)
    return list(found.values())


def _redrawn(
    generator: Generator,
    group: Sequence[Row | TokenformError],
    written: Sequence[Result | TokenformError],
    redraw: Redraw,
    grammar: Grammar,
) -> list[Result | TokenformError]:
    """Valid results in the place of refused ones, and what is known about their distribution in all."""
    results = list(written)
    for place, (row, one) in enumerate(zip(group, written, strict=True)):
        if isinstance(row, Row) and isinstance(one, Result) and one.error is not None:
            results[place] = redraw.draw(row) or generator.result(row, grammar)
    estimates = redraw.estimates()
    for one in results:
        if isinstance(one, Result):
            one.estimates = estimates
    return results


def _read(
    generator: Generator, row: Row | TokenformError, grammar: Grammar | Condition, stop: str | Sequence[str]
) -> Result | TokenformError:
    if not isinstance(row, Row):
        return row
    if row.output.error is not None:
        return row.output.error
    try:
        return generator.result(row, grammar, stop, refused=True)
    except TokenformError as error:  # of this text alone
        return error
