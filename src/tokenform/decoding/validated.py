"""Texts that a type's own validators refuse: returned, an error, or written again.

Purpose: `Local` writes a batch as always; refused texts are drawn again (`redraw.py`), or the model reads the
error in a further turn and writes anew (`feedback=True`, as instructor does it).
Distribution: a text that is written anew is the sampler's draw for the longer prompt, under the same
constraint; to draw from the model given that validators accept, leave feedback out.
Invariant: a turn has the call's own prompt, the last text and its error; earlier ones are left out, so that
prompts don't grow.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tokenform.decoding.aligned.checked import has_validators
from tokenform.decoding.aligned.protocols import LanguageModel
from tokenform.decoding.keyed_random import stream_seed
from tokenform.decoding.progress import Progress
from tokenform.decoding.prompts import Framed, PromptOptions
from tokenform.decoding.redraw import Redraw, Tries
from tokenform.decoding.results import Result
from tokenform.decoding.row import Row
from tokenform.decoding.samplers.local import Local
from tokenform.engine import Grammar
from tokenform.errors import InvalidType, OptionError, TokenformError
from tokenform.frontends import Condition

if TYPE_CHECKING:
    from tokenform.decoding.generator import Generator
    from tokenform.decoding.options import Call


def law_of(chosen: Local, grammar: Any, call: Call) -> Local:
    """The sampler of a row's first text.

    A refused text is drawn again token by token, given that validators accept (`redraw.py`); so the first one
    is drawn token by token, too.  Greedy decoding promises no distribution.
    """
    drawn = call.on_invalid == "resample" and not call.feedback and chosen.temperature > 0
    return replace(chosen, values="token", forced="any") if drawn and has_validators(grammar) else chosen


class Validation:
    """Validates the rows of a call.

    Args:
        chosen: draws its texts.
        bar: shows the tries.
    """

    def __init__(self, generator: Generator, chosen: Local, call: Call, bar: Progress) -> None:
        self._generator, self._chosen, self._call = generator, chosen, call
        until = math.inf if call.max_seconds is None else time.monotonic() + call.max_seconds
        self._tries = Tries(call.tries, until, bar)

    def results(
        self,
        groups: Sequence[Sequence[Row | TokenformError]],
        prompts: Sequence[Any],
        grammars: Sequence[Grammar | Condition],
    ) -> list[list[Result | TokenformError]]:
        """Results or errors of all rows, those of a prompt together."""
        results: list[list[Result | TokenformError]] = []
        model: LanguageModel | None = None
        mixed = self._generator.mixing.mixture is not None  # redraws don't run its second model
        for group, prompt, grammar in zip(groups, prompts, grammars, strict=True):
            written = [self._read(row, grammar) for row in group]
            redraws = self._call.on_invalid == "resample" and any(isinstance(one, Result) for one in written)
            if redraws and not mixed and has_validators(grammar):
                assert isinstance(grammar, Grammar)
                if self._call.feedback:
                    self._write_anew(group, written, prompt, grammar)
                else:
                    model = model or self._generator.language_model()
                    self._redraw(model, group, written, grammar)
            if self._call.on_invalid != "return":
                written = [(one.error or one) if isinstance(one, Result) else one for one in written]
            results.append(written)
        return results

    def _read(self, row: Row | TokenformError, grammar: Grammar | Condition) -> Result | TokenformError:
        if not isinstance(row, Row):
            return row
        if row.output.error is not None:
            return row.output.error
        try:
            return self._generator.result(row, grammar, keep_invalid=True)
        except TokenformError as error:  # of this text alone
            return error

    def _redraw(
        self,
        model: LanguageModel,
        group: Sequence[Row | TokenformError],
        written: list[Result | TokenformError],
        grammar: Grammar,
    ) -> None:
        """Replaces refused results by valid ones, with estimates of their distribution."""
        rows_of_prompt: dict[tuple[int, ...], list[tuple[int, Row]]] = {}
        for place, row in enumerate(group):  # each thought makes a prompt of its own
            if isinstance(row, Row):
                rows_of_prompt.setdefault(tuple(row.prompt), []).append((place, row))
        for rows in rows_of_prompt.values():
            texts = [one for place, _ in rows if isinstance(one := written[place], Result)]
            redraw = Redraw(self._generator, model, grammar, self._chosen, rows[0][1], self._tries, texts)
            for place, row in rows:
                one = written[place]
                if isinstance(one, Result) and one.error is not None:
                    written[place] = redraw.draw(row) or self._generator.result(row, grammar)
            estimates = redraw.estimates()
            for place, _ in rows:
                if isinstance(one := written[place], Result):
                    one.estimates = estimates

    def _write_anew(
        self,
        group: Sequence[Row | TokenformError],
        results: list[Result | TokenformError],
        prompt: Any,
        grammar: Grammar,
    ) -> None:
        """Writes the refused results of a prompt's rows anew; an error where none of the turns helped."""
        generator, turns = self._generator, 0
        messages = generator.messages(prompt, grammar)
        while turns < self._tries.most:
            refused = {
                place: one.error for place, one in enumerate(results) if isinstance(one, Result) and one.error
            }
            if not refused or self._tries.late:
                break
            self._tries.begin(turns := turns + 1)
            rows: dict[int, Row] = {}
            for place, error in refused.items():
                row = group[place]
                assert isinstance(row, Row)
                shown = answered(prompt, error.text or "", _validator_messages(error), messages)
                key = stream_seed(row.seed, [turns])  # a text that came before is not drawn for ever
                try:
                    (row_again,) = generator.rows(
                        shown, grammar, 1, key, row.max_tokens, logprobs=row.logprobs, stop=row.stop
                    )
                except TokenformError as problem:  # as a prompt that has become too long
                    results[place] = problem
                    continue
                row_again.number, rows[place] = row.number, row_again
            decoder = generator.decoder(self._chosen, max(len(rows), 1))
            for _ in decoder.run(list(rows.values()), generator.batch_size):
                pass
            for place, row in rows.items():
                read = row.output.error or generator.result(row, grammar, keep_invalid=True)
                results[place] = read
        for place, one in enumerate(results):
            if isinstance(one, Result) and one.error is not None:
                results[place] = _failure(one, turns, self._tries.late)


def check_answerable(prompt: Any) -> None:
    """Refuses a prompt that no turn can follow (`OptionError`)."""
    prompt = prompt.prompt if isinstance(prompt, Framed) else prompt
    if not isinstance(prompt, str) and any(isinstance(part, int) for part in prompt):
        raise OptionError("feedback=True needs a prompt of text or chat messages, not token ids.")


def answered(prompt: Any, text: str, refusal: str, messages: Sequence[Any] | None) -> Any:
    """The prompt, the refused text and its error, as messages or as text.

    Args:
        messages: the chat that the model has read for the prompt, if it was a chat.
    """
    ask = f"This was refused: {refusal}\nWrite it again, corrected."
    turns = {"role": "assistant", "content": text}, {"role": "user", "content": ask}
    if messages is not None:  # with everything that was added to them
        return Framed([*messages, *turns], PromptOptions(show_schema=False))
    if isinstance(prompt, Framed):
        return Framed(answered(prompt.prompt, text, refusal, None), prompt.options)
    return f"{prompt}\n{text}\n{ask}\n" if isinstance(prompt, str) else [*prompt, *turns]


def _validator_messages(error: InvalidType) -> str:
    """The validators' own messages, a line each."""
    cause: Any = error.__cause__
    if not hasattr(cause, "errors"):  # pydantic's; its text would have links to pages, too
        return str(cause or error)
    listed = cause.errors(include_url=False, include_input=False, include_context=False)
    return "\n".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}".removeprefix(": ") for one in listed)


def _failure(result: Result, turns: int, late: bool) -> InvalidType:
    cause = result.error
    summary = f"none of {turns} turns that said what is wrong helped" + (
        " within max_seconds" if late else ""
    )
    assert cause is not None
    error = InvalidType(
        f"the validators refuse what was tried: {summary}. The last text: {result.text[:200]!r}. "
        f"The last refusal: {cause} Raise max_tries; leave feedback out, to draw by rejection; or take the "
        'text as it is (on_invalid="return").',
        pointer=cause.pointer,
    )
    error.text, error.partial = result.text, cause.partial
    return error
