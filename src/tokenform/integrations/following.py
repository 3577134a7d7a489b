"""Texts that hosts hand over whole at each step: prompt and all that was written.

Purpose: what the processors of MLX-LM, llama-cpp-python, LMDeploy and others have in common.
Invariant: the mask is that of the ids that were written after the first call's, which are the prompt; ids
that were taken back (drafts) are taken back here; ids that don't continue the text begin a new one.
Complexity: O(n) a step for the comparison of n ids, and one mask.
Needs numpy alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenform.engine import Matcher, Vocabulary
from tokenform.engine.packed import mask_bits, mask_words
from tokenform.errors import TokenRejected
from tokenform.frontends import to_grammar
from tokenform.integrations.asked import room


class HistoryMatcher:
    """One text after another under one grammar, each in one sequence.

    Args:
        grammar: a grammar, schema or type.
        vocabulary: as wide as the model's logits.
        max_tokens: texts end within so many tokens, the end-of-text token included; None: no bound.
    Raises:
        BudgetTooSmall: no text has so few tokens.
    """

    def __init__(self, grammar: Any, vocabulary: Vocabulary, *, max_tokens: int | None = None) -> None:
        automaton = to_grammar(grammar).for_writing.compile(vocabulary)
        budget = None if max_tokens is None else room(automaton, max_tokens)
        self.vocabulary = vocabulary
        self._matcher = Matcher(automaton, max_tokens=budget)
        self._ids: NDArray[Any] | None = None  # of the call before
        self._prompt = 0
        self._row = np.zeros((1, mask_words(vocabulary.size)), dtype=np.uint32)
        self._only_end = np.zeros(vocabulary.size, dtype=bool)
        self._only_end[vocabulary.eos] = True

    @property
    def ended(self) -> bool:
        """Whether the text has taken its end-of-text token."""
        return self._matcher.is_terminated()

    def reset(self) -> None:
        """The next call's ids are a prompt."""
        self._ids = None

    def allowed(self, ids: Any) -> NDArray[np.bool_]:
        """Which tokens may follow, bool [V], given all ids of the sequence [n]; a text that has ended, or was
        written against the mask, can only end.
        """
        now = np.asarray(ids).reshape(-1)
        if not self._go_on(now):
            self._prompt = len(now)
            self._matcher.reset()
        self._ids = now.copy()
        if len(now) - self._prompt != len(self._matcher.tokens) or self._matcher.is_terminated():
            return self._only_end
        self._matcher.fill_mask(self._row)
        return mask_bits(self._row, self.vocabulary.size)

    def _go_on(self, now: NDArray[Any]) -> bool:
        """Moves to these ids if they are a text of the prompt that is known; whether they are."""
        before = self._ids
        if before is None or len(now) < self._prompt:
            return False
        shared = min(len(before), len(now))
        differ = np.flatnonzero(before[:shared] != now[:shared])
        same = int(differ[0]) if len(differ) else shared
        if same < self._prompt or (self._matcher.is_terminated() and len(now) > len(before)):
            return False
        written = len(self._matcher.tokens)
        kept = min(same - self._prompt, written)
        self._matcher.rollback(written - kept)
        try:
            self._matcher.accept_tokens(now[self._prompt + kept :].tolist())
        except TokenRejected:
            taken = self._matcher.validate_tokens(now[self._prompt + kept :].tolist())
            self._matcher.accept_tokens(now[self._prompt + kept :][:taken].tolist())
        return True
