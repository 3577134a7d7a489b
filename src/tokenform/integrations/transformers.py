"""Constraints for `model.generate(...)` of transformers, for those who keep that loop.

Purpose: `GrammarLogitsProcessor` masks the scores of every row of a batch: sampling, beam search, assisted
generation.
Invariant: a row's state is a function of the tokens that were written in it, so rows may be reordered, copied
and dropped between steps as beam search does.  A row that has ended, or that the search went on with although
nothing was allowed, can only end.
Complexity: a step is one mask a row, looked up after the first time (on the device, in a table of masks by
row), and O(V) for its application.
Rejected: a state for each row number (beam search moves rows without saying so).

    processor = GrammarLogitsProcessor(tf.json_schema(schema), tokenizer, model=model, max_tokens=200)
    model.generate(**inputs, logits_processor=[processor], max_new_tokens=200)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tokenform.decoding.generator import read_vocabulary
from tokenform.engine import State, TokenAutomaton, Vocabulary
from tokenform.errors import BudgetTooSmall, ModelError, OptionError, extras
from tokenform.frontends import to_grammar
from tokenform.masking import CAPACITY, MaskTable, Wanted

with extras():
    from transformers import LogitsProcessor

_Path = tuple[int, ...]


class GrammarLogitsProcessor(LogitsProcessor):  # type: ignore[misc]
    """Keeps what `model.generate` writes to a grammar, or to one grammar for each prompt of the batch.

    One object serves one model; a call with another prompt begins anew.

    Args:
        grammar: a grammar, schema or type; or a list with one for each prompt of the batch.
        tokenizer: the model's tokenizer, or a `Vocabulary` as wide as its logits.
        model: gives the width of the logits and the ids that end texts; needed beside a tokenizer whose
            vocabulary is narrower than the logits.
        max_tokens: texts end within so many tokens; give `max_new_tokens` one more, for the end-of-text
            token.  None sets no bound, and `max_new_tokens` may then cut a text.
    Raises:
        BudgetTooSmall: no text has so few tokens.
        VocabularyError: the tokenizer can't be read.
    """

    def __init__(
        self, grammar: Any, tokenizer: Any, *, model: Any = None, max_tokens: int | None = None
    ) -> None:
        self.vocabulary = (
            tokenizer if isinstance(tokenizer, Vocabulary) else read_vocabulary(model, tokenizer)
        )
        several = list(grammar) if isinstance(grammar, list | tuple) else [grammar]
        if not several:
            raise OptionError("no grammar is given; pass one, or one for each prompt.")
        self._automata = [to_grammar(one).compile(self.vocabulary) for one in several]
        self._max_tokens = max_tokens
        for automaton in self._automata if max_tokens is not None else ():
            shortest = automaton.distance(automaton.start, max_tokens)
            if shortest is None or shortest > (max_tokens or 0):
                raise BudgetTooSmall(f"no complete text fits into {max_tokens} tokens; raise max_tokens.")
        words = (self.vocabulary.size + 31) // 32
        self._only_end = np.zeros(words, dtype=np.uint32)
        for token in self.vocabulary.eos:
            self._only_end[token // 32] |= np.uint32(1 << token % 32)
        self._table: MaskTable | None = None
        self._prompts: set[_Path] = set()
        self._length = -1
        self._states: dict[tuple[int, _Path], State | None] = {}

    @torch.inference_mode()
    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [B, V] with -inf where a row's grammar forbids, given its ids [B, L]."""
        if scores.shape[-1] < self.vocabulary.size:
            raise ModelError(
                f"the model gives {scores.shape[-1]} logits, but the vocabulary has {self.vocabulary.size} "
                "ids; pass model=, or a Vocabulary of that size."
            )
        rows = [tuple(row) for row in input_ids.tolist()]
        share, rest = divmod(len(rows), len(self._automata))
        if rest:
            raise OptionError(
                f"{len(self._automata)} grammars can't be shared by {len(rows)} rows; "
                "give one for each prompt of the batch."
            )
        if not self._goes_on(rows, share):
            self._begin(rows)
        wanted = [self._wanted(place // share, row[self._length :]) for place, row in enumerate(rows)]
        table = self._table_on(scores.device, len(rows))
        return table.apply(scores, table.rows(wanted), out=torch.empty_like(scores))

    def _table_on(self, device: torch.device, rows: int) -> MaskTable:
        if self._table is None or self._table.device != device or self._table.capacity < rows:
            self._table = MaskTable(self.vocabulary.size, device, capacity=max(CAPACITY, rows))
        return self._table

    def _goes_on(self, rows: list[_Path], share: int) -> bool:
        """Whether these rows continue the texts of the calls before."""
        return (
            self._length >= 0
            and len(rows[0]) >= self._length
            and all(row[: self._length] in self._prompts for row in rows)
            and all(
                len(row) == self._length or (place // share, row[self._length : -1]) in self._states
                for place, row in enumerate(rows)
            )
        )

    def _begin(self, rows: list[_Path]) -> None:
        self._prompts, self._length, self._states = set(rows), len(rows[0]), {}

    def _wanted(self, which: int, path: _Path) -> Wanted:
        """The mask after the tokens `path` of a text of grammar `which`."""
        automaton = self._automata[which]
        state = self._state(which, automaton, path)
        if state is None or automaton.is_finished(state):
            return self._only_end
        if self._max_tokens is None:
            return automaton, state
        left = self._max_tokens - len(path)
        return np.asarray(automaton.mask_within(state, left)) if left > 0 else self._only_end

    def _state(self, which: int, automaton: TokenAutomaton, path: _Path) -> State | None:
        """Where the automaton stands after a path; None where it refuses it."""
        if (which, path) in self._states:
            return self._states[which, path]
        state: State | None = automaton.start
        if path:
            above = self._states[which, path[:-1]]
            state = None if above is None else self._after(automaton, above, path[-1])
        self._states[which, path] = state
        return state

    def _after(self, automaton: TokenAutomaton, state: State, token: int) -> State | None:
        if automaton.is_finished(state) or token >= self.vocabulary.size:
            return None
        return automaton.advance(state, token) if automaton.allows(state, token) else None
