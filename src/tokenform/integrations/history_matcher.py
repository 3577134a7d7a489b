"""Matches texts of hosts that pass all ids, prompt and text, at each step.

Purpose: the common part of the processors of MLX-LM, llama-cpp-python, LMDeploy and others.
Invariant: the first call's ids are the prompt, and the mask follows the ids after it; if ids disappear
(rejected drafts), the text is rolled back; ids that don't continue the text begin a new one.
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
from tokenform.integrations.grammar_compiler import token_budget


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
        budget = None if max_tokens is None else token_budget(automaton, max_tokens)
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
        """The tokens that may follow, bool [V], given all ids of the sequence [n]; a text that has ended or
        has a refused token can only end.
        """
        all_ids = np.asarray(ids).reshape(-1)
        if not self._follow(all_ids):
            self._prompt = len(all_ids)
            self._matcher.reset()
        self._ids = all_ids.copy()
        if len(all_ids) - self._prompt != len(self._matcher.tokens) or self._matcher.is_terminated():
            return self._only_end
        self._matcher.fill_mask(self._row)
        return mask_bits(self._row, self.vocabulary.size)

    def _follow(self, ids: NDArray[Any]) -> bool:
        """Moves to these ids if they continue the same prompt; returns whether they do."""
        previous = self._ids
        if previous is None or len(ids) < self._prompt:
            return False
        shared = min(len(previous), len(ids))
        differ = np.flatnonzero(previous[:shared] != ids[:shared])
        common = int(differ[0]) if len(differ) else shared
        if common < self._prompt or (self._matcher.is_terminated() and len(ids) > len(previous)):
            return False
        written = len(self._matcher.tokens)
        kept_tokens = min(common - self._prompt, written)
        self._matcher.rollback(written - kept_tokens)
        try:
            self._matcher.accept_tokens(ids[self._prompt + kept_tokens :].tolist())
        except TokenRejected:
            valid = self._matcher.validate_tokens(ids[self._prompt + kept_tokens :].tolist())
            self._matcher.accept_tokens(ids[self._prompt + kept_tokens :][:valid].tolist())
        return True
