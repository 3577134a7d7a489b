"""ONNX Runtime GenAI: masks for one's own loop around a `Generator`.

Purpose: what its `set_guidance` can't enforce; each sequence of a batch has a grammar of its own, or none.
Invariant: a sequence that has ended is left alone.  Beams are not followed.
Needs numpy alone.
Source: onnxruntime-genai 0.18, `Generator`: get_logits -> float32 [B, 1, V], set_logits, get_sequence.

    import onnxruntime_genai as og
    from tokenform.integrations.onnxruntime_genai import GrammarMasks

    generator = og.Generator(model, params)
    masks = GrammarMasks([schema], vocabulary, max_tokens=100)
    generator.append_tokens(ids)
    while not generator.is_done():
        masks(generator)
        generator.generate_next_token()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tokenform.engine import Vocabulary
from tokenform.integrations.history_matcher import HistoryMatcher


class GrammarMasks:
    """Keeps the sequences of one generator to grammars.

    Args:
        grammars: for each sequence a grammar, schema or type; None: it is free.
        tokenizer: a `Vocabulary`, or what `Vocabulary.from_tokenizer` reads (not GenAI's own tokenizer, which
            does not tell its tokens' bytes).
        max_tokens: texts end within so many tokens; the prompt and these fit into `max_length`.
    Raises:
        BudgetTooSmall: a grammar has no text of so few tokens.
        VocabularyError: the tokenizer can't be read.
    """

    def __init__(self, grammars: Sequence[Any], tokenizer: Any, *, max_tokens: int | None = None) -> None:
        is_vocabulary = isinstance(tokenizer, Vocabulary)
        vocabulary = tokenizer if is_vocabulary else Vocabulary.from_tokenizer(tokenizer)
        self._texts = [
            None if grammar is None else HistoryMatcher(grammar, vocabulary, max_tokens=max_tokens)
            for grammar in grammars
        ]

    def __call__(self, generator: Any) -> None:
        """Writes -inf into the generator's logits where the grammars forbid; before each new token."""
        logits = np.array(generator.get_logits(), dtype=np.float32)
        rows = logits.reshape(len(self._texts), -1)
        for at, text in enumerate(self._texts):
            if text is None or text.ended:
                continue
            allowed = text.allowed(generator.get_sequence(at))
            kept = min(len(allowed), rows.shape[1])
            rows[at, :kept][~allowed[:kept]] = -np.inf
            rows[at, kept:] = -np.inf
        generator.set_logits(logits)
