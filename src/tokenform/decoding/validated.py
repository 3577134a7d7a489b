"""What becomes of texts that a type's own validators refuse: given back, an error, or written again.

Purpose: `Local` writes a batch as always; what validators refuse is drawn again (`redraw.py`), or answered
with what is wrong with it and written anew (`feedback=True`, as instructor does it).
Distribution: a text that is written anew is the sampler's draw for the longer prompt, under the same
constraint; to draw from the model given that validators accept, leave feedback out.
Invariant: a turn is shown the call's own prompt, the last text and its error; earlier ones are left out, so
that prompts don't grow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tokenform.decoding.aligned.checked import has_validators
from tokenform.decoding.aligned.protocols import LanguageModel
from tokenform.decoding.calls import Again
from tokenform.decoding.keyed_random import stream_seed
from tokenform.decoding.progress import Progress
from tokenform.decoding.prompts import Framed, PromptOptions
from tokenform.decoding.redraw import Redraw
from tokenform.decoding.results import Result
from tokenform.decoding.row import Row
from tokenform.decoding.samplers.local import Local
from tokenform.engine import Grammar
from tokenform.errors import InvalidType, OptionError, TokenformError
from tokenform.frontends import Condition

if TYPE_CHECKING:
    from tokenform.decoding.calls import Again
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


def check_answerable(prompt: Any) -> None:
    """Refuses a prompt that no turn can follow (`OptionError`)."""
    prompt = prompt.prompt if isinstance(prompt, Framed) else prompt
    if not isinstance(prompt, str) and any(isinstance(part, int) for part in prompt):
        raise OptionError("feedback=True needs a prompt of text or chat messages, not token ids.")


def answered(prompt: Any, text: str, wrong: str, messages: Sequence[Any] | None) -> Any:
    """The prompt, the refused text and what is wrong with it, as messages or as text.

    Args:
        messages: the chat that the model has read for the prompt, where it has.
    """
    ask = f"This was refused: {wrong}\nWrite it again, corrected."
    turns = {"role": "assistant", "content": text}, {"role": "user", "content": ask}
    if messages is not None:  # with all that was put into them
        return Framed([*messages, *turns], PromptOptions(show_schema=False))
    if isinstance(prompt, Framed):
        return Framed(answered(prompt.prompt, text, wrong, None), prompt.options)
    return f"{prompt}\n{text}\n{ask}\n" if isinstance(prompt, str) else [*prompt, *turns]


def written_anew(
    generator: Generator,
    group: Sequence[Row | TokenformError],
    written: Sequence[Result | TokenformError],
    prompt: Any,
    grammar: Grammar,
    chosen: Local,
    again: Again,
    bar: Progress,
) -> list[Result | TokenformError]:
    """The results of a prompt's rows with those written anew that validators refuse; an error where none of
    the turns helped."""
    results = list(written)
    messages = generator.messages(prompt, grammar)
    turns = 0
    while turns < again.tries:
        refused = {
            place: one.error for place, one in enumerate(results) if isinstance(one, Result) and one.error
        }
        if not refused or again.late:
            break
        bar.trying(turns := turns + 1, again.tries)
        rows: dict[int, Row] = {}
        for place, error in refused.items():
            row = group[place]
            assert isinstance(row, Row)
            shown = answered(prompt, error.text or "", _said(error), messages)
            key = stream_seed(row.seed, [turns])  # a text that came before is not drawn for ever
            try:
                (rows[place],) = generator.rows(shown, grammar, 1, key, row.max_tokens, logprobs=row.logprobs)
            except TokenformError as problem:  # as a prompt that has become too long
                results[place] = problem
                continue
            rows[place].number = row.number
        for _ in generator.decoder(chosen, max(len(rows), 1)).run(list(rows.values()), generator.batch_size):
            pass
        for place, row in rows.items():
            results[place] = row.output.error or generator.result(row, grammar, again.stop, refused=True)
    for place, one in enumerate(results):
        if isinstance(one, Result) and one.error is not None:
            results[place] = _failure(one, turns, again.late)
    return results


def _said(error: InvalidType) -> str:
    """What the validators say, in their own words and a line each."""
    cause: Any = error.__cause__
    if not hasattr(cause, "errors"):  # of pydantic, whose text has addresses of pages besides
        return str(cause or error)
    listed = cause.errors(include_url=False, include_input=False, include_context=False)
    return "\n".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}".removeprefix(": ") for one in listed)


def _failure(result: Result, turns: int, late: bool) -> InvalidType:
    cause = result.error
    told = f"none of {turns} turns that said what is wrong helped" + (" within max_seconds" if late else "")
    assert cause is not None
    error = InvalidType(
        f"the validators refuse what was tried: {told}. The last text: {result.text[:200]!r}. "
        f"The last refusal: {cause} Raise max_tries; leave feedback out, to draw by rejection; or take the "
        'text as it is (on_invalid="return").',
        pointer=cause.pointer,
    )
    error.text, error.partial = result.text, cause.partial
    return error
