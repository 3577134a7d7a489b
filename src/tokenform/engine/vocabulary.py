"""Vocabulary: the bytes of every token id.

Invariant: ids are those of the model's logits; an id that stands for no text (padding of the model's
table, control tokens) is never allowed, whatever the constraint.
Complexity: O(bytes of all tokens), once; 131,072 tokens take well under a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tokenform import _core
from tokenform.engine import tokenizers
from tokenform.errors import VocabularyError


class Vocabulary(_core.Vocabulary):
    """The bytes of every token id, the ids that end a text, and the ids without text.

    `Vocabulary(tokens: list[bytes], eos=[id, ...], special=[id, ...])`.
    """

    @classmethod
    def from_tokenizer(
        cls, tokenizer: Any, *, size: int | None = None, eos: Iterable[int] | None = None
    ) -> Vocabulary:
        """Read a tokenizer: Hugging Face (fast or slow), SentencePiece, tiktoken or Tekken.

        Args:
            tokenizer: the tokenizer; recognised by its attributes.
            size: width of the model's logits where it differs: further ids are padding without
                text, ids beyond it are left out.
            eos: every id that ends a text, if there are more than the tokenizer's own.
        Raises:
            VocabularyError: the tokenizer can't be read, or no id ends a text.
        """
        table = tokenizers.read(tokenizer)
        if size is not None:
            missing = size - len(table.tokens)
            table.tokens = table.tokens + [b""] * missing if missing > 0 else table.tokens[:size]
        ends = sorted({int(token) for token in (table.eos if eos is None else eos)})
        if not ends:
            raise VocabularyError("the tokenizer names no end-of-text token; pass eos=[id, ...].")
        for token in ends:
            if not 0 <= token < len(table.tokens):
                raise VocabularyError(
                    f"the end-of-text id {token} is not among the {len(table.tokens)} ids of the vocabulary."
                )
        special = sorted({token for token in table.special if token < len(table.tokens)} | set(ends))
        return cls(table.tokens, ends, special)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tokens, self.eos, self.special), self.__dict__ or None

    def __copy__(self) -> Vocabulary:
        return self

    def __deepcopy__(self, memo: Any) -> Vocabulary:
        return self  # it never changes
