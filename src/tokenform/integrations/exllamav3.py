"""ExLlamaV3: a filter for its jobs.

Purpose: `Job(filters=[GrammarFilter(...)])`; the text is complete within the job's `max_new_tokens`, counted
from where the filter begins (its trigger token, if it has one).
Invariant: what fails completes the filter, so that its job ends and the generator goes on; the log says why.
Source: exllamav3 1.6.5, `generator/filter/filter.py` and the calls of `generator/job.py`.
Complexity: a mask is one row of packed words; taking tokens back (banned strings) is native.

    from exllamav3 import Job
    from tokenform.integrations.exllamav3 import GrammarFilter

    job = Job(input_ids=ids, max_new_tokens=100, filters=[GrammarFilter(tokenizer, schema)])
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from exllamav3 import Filter

from tokenform.engine import Vocabulary
from tokenform.frontends import to_grammar
from tokenform.integrations.request_matcher import RequestMatcher


class GrammarFilter(Filter):  # type: ignore[misc]
    """Keeps one job's text to a grammar.

    Args:
        tokenizer: ExLlamaV3's.
        grammar: a grammar, schema or type.
        trigger_token: the filter begins after this token; None: with the first.
        eos_after_completed: a complete text that can't go on ends the job; else what follows is free.
    Raises:
        VocabularyError: the tokenizer can't be read.
    """

    def __init__(
        self,
        tokenizer: Any,
        grammar: Any,
        *,
        trigger_token: int | None = None,
        eos_after_completed: bool = True,
    ) -> None:
        super().__init__(tokenizer, trigger_token, None, eos_after_completed)
        self._automaton = to_grammar(grammar).for_writing.compile(_vocabulary(tokenizer))
        self._mask = torch.zeros((1, self._automaton.mask_words), dtype=torch.int32)
        self._words = self._mask.numpy()
        self.text = RequestMatcher(self._automaton, self._left)

    def _left(self) -> int:
        """Tokens that the job may still have; asked when the text begins."""
        if self.job is None or self.job.max_new_tokens is None:
            return 2**31
        return int(self.job.max_new_tokens - max(self.job.new_tokens, 0))

    def reset(self) -> None:
        """Goes back to before the first token."""
        self.text = RequestMatcher(self._automaton, self._left)

    def accept_token(self, token: int) -> None:
        """Takes the next token."""
        if not self.text.accept([token]) and not self.text.failed:
            self.text.give_up(f"the token {token} is not allowed")

    def rollback_tokens(self, num_tokens: int) -> bool:
        """Takes the last tokens back."""
        self.text.rollback(num_tokens)
        return not self.text.failed

    def get_next_logit_mask(self) -> torch.Tensor:
        """The tokens that may follow: int32 [1, ceil(V / 32)], the same tensor at each call."""
        self.text.fill(self._words, 0)
        return self._mask

    def is_completed(self) -> bool:
        """Whether nothing can follow but an end-of-text token, or that was taken."""
        return self.text.failed or self.text.complete()


@functools.lru_cache(8)  # as many as ExLlamaV3 keeps for its own filters; a tokenizer is hashed by identity
def _vocabulary(tokenizer: Any) -> Vocabulary:
    listed = getattr(tokenizer.config, "eos_token_id_list", None) or [tokenizer.eos_token_id]
    return Vocabulary.from_tokenizer(tokenizer, eos=[one for one in listed if one is not None] or None)
