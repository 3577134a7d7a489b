"""A second turn: the model is shown its text and what the validators say about it, and writes it anew.

Purpose: `feedback=True` of `Generator.sample`, as instructor does it.
Distribution: a text is the sampler's draw for the longer prompt, under the same constraint; to draw from the
model given that validators accept, leave feedback out (`redraw.py`).
Invariant: a turn is shown the call's own prompt, the last text and its error; earlier ones are left out, so
that prompts don't grow.
Complexity: each turn writes whole texts, those of a prompt as one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tokenform.decoding.keyed_random import stream_seed
from tokenform.decoding.progress import Progress
from tokenform.decoding.prompts import Framed, PromptOptions
from tokenform.decoding.results import Result
from tokenform.decoding.row import Row
from tokenform.decoding.samplers.local import Local
from tokenform.engine import Grammar
from tokenform.errors import InvalidType, OptionError, TokenformError

if TYPE_CHECKING:
    from tokenform.decoding.again import Again
    from tokenform.decoding.generator import Generator


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
