"""MLX-LM: a logits processor for `stream_generate`, and one for each sequence of a batch.

Needs numpy and MLX; no torch.
Source: mlx-lm 0.32, `generate_step`: processors take (ids mx.array [n], logits mx.array [1, V]).

    from mlx_lm import load, stream_generate

    model, tokenizer = load("mlx-community/Qwen3-0.6B-4bit")
    processor = MlxProcessor(tf.json_schema(schema), tokenizer, size=151936, max_tokens=100)
    options = {"max_tokens": 100, "logits_processors": [processor]}
    for piece in stream_generate(model, tokenizer, prompt, **options):
        print(piece.text, end="")

In a batch each sequence has its own: `BatchGenerator.insert(prompts, logits_processors=[[a], [b]])`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenform.engine import Vocabulary
from tokenform.errors import warn_outside
from tokenform.integrations.history_matcher import HistoryMatcher


class MlxProcessor:
    """Keeps one sequence to a grammar.

    Args:
        grammar: a grammar, schema or type.
        tokenizer: the model's, or a `Vocabulary` as wide as its logits.
        size: width of the logits where the tokenizer is narrower.
        max_tokens: that of `stream_generate`: texts are complete within it.
    Raises:
        BudgetTooSmall: no text has so few tokens.
        VocabularyError: the tokenizer can't be read.
    """

    def __init__(
        self, grammar: Any, tokenizer: Any, *, size: int | None = None, max_tokens: int | None = None
    ) -> None:
        vocabulary = tokenizer if isinstance(tokenizer, Vocabulary) else _vocabulary(tokenizer, size)
        self.following = HistoryMatcher(grammar, vocabulary, max_tokens=max_tokens)

    def reset(self) -> None:
        """The next call's ids are a prompt, even where they are those before with their text."""
        self.following.reset()

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """Logits [1, V] with -inf where the grammar forbids, given the sequence's ids [n]."""
        import mlx.core as mx

        allowed = self.following.allowed(np.array(tokens, copy=False))
        allowed_here = np.zeros(logits.shape[-1], dtype=bool)
        allowed_here[: len(allowed)] = allowed[: len(allowed_here)]
        return mx.where(mx.array(allowed_here), logits, -mx.inf)


def _vocabulary(tokenizer: Any, size: int | None) -> Vocabulary:
    """MLX-LM's wrapper knows every id that ends a text."""
    return Vocabulary.from_tokenizer(tokenizer, size=size, eos=getattr(tokenizer, "eos_token_ids", None))


def __getattr__(name: str) -> Any:
    if name != "GrammarProcessor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_outside("GrammarProcessor is an old name; write MlxProcessor.", DeprecationWarning)
    return MlxProcessor
