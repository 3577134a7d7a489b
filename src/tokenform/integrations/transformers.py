"""Constraints for `model.generate(...)` of transformers, for those who keep that loop.

Purpose: `GrammarLogitsProcessor` masks the scores of every row of a batch: sampling, beam search, assisted
generation.
Invariant: a row's state is a function of its tokens after the prompt, so rows may be reordered, copied and
dropped between steps as beam search does, and cut back as assisted generation does.  A row that has ended, or
has a refused token, can only end.
Complexity: a step compares the ids with those of the step before on their device, and transfers the last
token of each row to the host (a second transfer where rows have moved); one mask a row, cached after the
first time (on the device, in a table of masks by row), and O(V) for its application.
Rejected: a state for each row number (beam search moves rows without notice); states by the tokens of whole
rows (they would be transferred and hashed anew at every step).

    processor = GrammarLogitsProcessor(tf.json_schema(schema), tokenizer, model=model, max_tokens=200)
    model.generate(**inputs, logits_processor=[processor], max_new_tokens=200)
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from tokenform.engine import State, TokenAutomaton, Vocabulary
from tokenform.engine.packed import mask_of
from tokenform.errors import ModelError, OptionError, SamplingError, extras, warn_outside
from tokenform.frontends import to_grammar
from tokenform.frontends.tools import find_marks
from tokenform.frontends.tools.thoughts import TAIL, after_thought
from tokenform.integrations.grammar_compiler import text_of

with extras():
    import torch
    from transformers import GenerationConfig, LogitsProcessor, PretrainedConfig

    from tokenform.decoding.configuration import read_vocabulary
    from tokenform.decoding.row import check_budget
    from tokenform.masking import CAPACITY, MaskRequest, MaskTable


def _generation_end(name: str) -> Any:
    return GenerationConfig.from_pretrained(name, local_files_only=True).eos_token_id


def _config_end(name: str) -> Any:
    return PretrainedConfig.get_config_dict(name, local_files_only=True)[0].get("eos_token_id")


def _vocabulary(model: Any, tokenizer: Any) -> Vocabulary:
    """The vocabulary of a model; without one, the files beside its tokenizer give the end-of-text ids."""
    if model is not None:
        return read_vocabulary(model, tokenizer)
    tokenizer_end = getattr(tokenizer, "eos_token_id", None)
    ends = {tokenizer_end} if isinstance(tokenizer_end, int) else set(tokenizer_end or ())
    name = getattr(tokenizer, "name_or_path", "")
    knows_end = False
    for read in (_generation_end, _config_end) if name else ():
        with suppress(OSError, ValueError):
            found = read(name)
            knows_end = knows_end or found is not None
            ends.update([found] if isinstance(found, int) else found or ())
    if not knows_end:
        warn_outside(
            "the model is not known, so only the tokenizer's own token ends texts; pass model= if the model "
            "has others.",
            UserWarning,
        )
    size = len(tokenizer) if hasattr(tokenizer, "__len__") else max(ends, default=0) + 1
    return Vocabulary.from_tokenizer(tokenizer, eos={end for end in ends if 0 <= end < size} or None)


class GrammarLogitsProcessor(LogitsProcessor):  # type: ignore[misc,unused-ignore]
    """Keeps what `model.generate` writes to a grammar, or to one grammar for each prompt of the batch.

    One object serves one model; a call with another prompt begins anew.  Where that is the prompt before with
    its own text behind it, and nothing else, the call looks like a step back (assisted generation takes such
    ones): call `reset()` before it.

    Args:
        grammar: a grammar, schema or type; or a list with one for each prompt of the batch.
        tokenizer: the model's tokenizer, or a `Vocabulary` as wide as its logits.  Its chat template shows
            whether a prompt has left a thought open; the grammar then begins after it.  A grammar of `tools`
            has `prompt=` for that.
        model: gives the width of the logits and the ids that end texts; needed beside a tokenizer whose
            vocabulary is narrower than the logits.  Without it, the ids are the tokenizer's and those of the
            configuration files beside it; if there are none, there is a warning.
        max_tokens: texts end within so many tokens; give `max_new_tokens` one more, for the end-of-text
            token.  None sets no bound, and `max_new_tokens` may then cut a text.
    Raises:
        BudgetTooSmall: no text has so few tokens.
        VocabularyError: the tokenizer can't be read.
        SamplingError: by a call: the processors before this one forbid all tokens that the grammar allows.
            It does not see those after it, so put it last.
    """

    def __init__(
        self, grammar: Any, tokenizer: Any, *, model: Any = None, max_tokens: int | None = None
    ) -> None:
        self.vocabulary = tokenizer if isinstance(tokenizer, Vocabulary) else _vocabulary(model, tokenizer)
        several = list(grammar) if isinstance(grammar, list | tuple) else [grammar]
        if not several:
            raise OptionError("no grammar is given; pass one, or one for each prompt.")
        self._marks = None if isinstance(tokenizer, Vocabulary) else find_marks(tokenizer)
        self._grammars = [to_grammar(one).for_writing for one in several]
        self._automata = [one.compile(self.vocabulary) for one in self._grammars]
        self._max_tokens = max_tokens
        for automaton in self._automata if max_tokens is not None else ():
            check_budget(automaton, max_tokens or 0)
        self._only_end = mask_of(self.vocabulary.eos, self.vocabulary.size)
        self._table: MaskTable | None = None
        self._ids: torch.Tensor | None = None  # of the call before, on its device
        self._prompt = 0  # its length
        # of each row: after the prompt, and after each token; None where it was refused
        self._states: list[list[State | None]] = []

    def reset(self) -> None:
        """The next call's ids are prompts, whatever came before."""
        self._ids = None

    @torch.inference_mode()
    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [B, V] with -inf where a row's grammar forbids, given its ids [B, L]."""
        if scores.shape[-1] < self.vocabulary.size:
            raise ModelError(
                f"the model gives {scores.shape[-1]} logits, but the vocabulary has {self.vocabulary.size} "
                "ids; pass model=, or a Vocabulary of that size."
            )
        share, rest = divmod(len(input_ids), len(self._automata))
        if rest:
            raise OptionError(
                f"{len(self._automata)} grammars can't be shared by {len(input_ids)} rows; "
                "give one for each prompt of the batch."
            )
        if not self._follow(input_ids, share):
            self._prompt = input_ids.shape[1]
            self._begin(input_ids[:, -TAIL:].tolist(), share)
            self._states = [[self._automata[place // share].start] for place in range(len(input_ids))]
        self._ids = input_ids.clone()
        written = input_ids.shape[1] - self._prompt
        requests = [
            self._mask_request(place // share, row[-1], written) for place, row in enumerate(self._states)
        ]
        table = self._table_on(scores.device, len(requests))
        masked = table.apply(scores, table.rows(requests), out=torch.empty_like(scores))
        no_token = torch.isneginf(masked.amax(1)).tolist()
        for place, row in enumerate(self._states):
            if no_token[place] and row[-1] is not None:
                raise SamplingError(
                    f"row {place} has no token left after {written} tokens: the other logits processors and "
                    "options (min_new_tokens, bad_words_ids, ...) forbid all that its grammar allows; drop "
                    "one of them, or say in the grammar what it is to keep to."
                )
        return masked

    def _begin(self, tails: list[list[int]], share: int) -> None:
        """The automata of these prompts, given their last tokens."""
        if self._marks is None:
            return
        automata = []
        for which, grammar in enumerate(self._grammars):
            rows = [text_of(self.vocabulary, tail) for tail in tails[which * share : (which + 1) * share]]
            after = {after_thought(self._marks, tail, grammar): None for tail in rows}
            if len(after) > 1:
                raise OptionError(
                    "some prompts of one grammar have left a thought open, others have not; give a list with "
                    "one grammar for each prompt."
                )
            automata.append(next(iter(after)).compile(self.vocabulary))
        for automaton in automata if self._max_tokens is not None and automata != self._automata else ():
            check_budget(automaton, self._max_tokens or 0)
        self._automata = automata

    def _table_on(self, device: torch.device, rows: int) -> MaskTable:
        if self._table is None or self._table.device != device or self._table.capacity < rows:
            self._table = MaskTable(self.vocabulary.size, device, capacity=max(CAPACITY, rows))
        return self._table

    def _follow(self, ids: torch.Tensor, share: int) -> bool:
        """Advances the states by the last token of each row; False if these rows begin anew."""
        previous, length = self._ids, ids.shape[1] - 1
        if (
            previous is None
            or not self._prompt <= length <= previous.shape[1]
            or previous.device != ids.device
        ):
            return False
        rows = len(ids)
        if rows == len(previous):
            same = (ids[:, :length] == previous[:, :length]).all(1)
        else:
            same = torch.zeros(rows, dtype=torch.bool, device=ids.device)
        last = torch.stack([same.long(), ids[:, -1]], 1).tolist()  # the transfer
        origin = [place if kept else -1 for place, (kept, _) in enumerate(last)]
        moved = [place for place, kept in enumerate(origin) if kept < 0]
        if moved:
            for place, one in zip(moved, self._origins(ids, moved, share), strict=True):
                if one < 0:
                    return False
                origin[place] = one
        known = length - self._prompt + 1
        states = []
        for place, (_, token) in enumerate(last):
            path = self._states[origin[place]][:known]
            states.append([*path, self._after(self._automata[place // share], path[-1], token)])
        self._states = states
        return True

    def _origins(self, ids: torch.Tensor, moved: list[int], share: int) -> list[int]:
        """For each of these rows its origin among the rows of the call before, of one grammar; else -1."""

        assert self._ids is not None
        length, found = ids.shape[1] - 1, []
        groups = torch.arange(len(self._ids), device=ids.device) * len(self._automata) // len(self._ids)
        for place in moved:
            equal = (self._ids[:, :length] == ids[place, :length]).all(1) & (groups == place // share)
            found.append(torch.where(equal.any(), equal.long().argmax(), -1))
        return [int(one) for one in torch.stack(found).tolist()]

    def _mask_request(self, which: int, state: State | None, written: int) -> MaskRequest:
        """The mask after so many tokens of a text of grammar `which`."""
        automaton = self._automata[which]
        if state is None or automaton.is_finished(state):
            return self._only_end
        if self._max_tokens is None:
            return automaton, state
        left = self._max_tokens - written
        if left <= 0:
            return self._only_end
        unlimited = np.array_equal(automaton.mask_within(state, left), automaton.mask(state))
        return (automaton, state) if unlimited else (automaton, state, left)

    def _after(self, automaton: TokenAutomaton, state: State | None, token: int) -> State | None:
        if state is None or automaton.is_finished(state) or token >= self.vocabulary.size:
            return None
        return automaton.advance(state, token) if automaton.allows(state, token) else None
