"""llama.cpp from Python: a logits processor for llama-cpp-python, and vocabularies of GGUF files.

Needs numpy; `gguf` to read a file.  A server of llama.cpp's takes `grammar.to_gbnf()` instead.
Source: llama-cpp-python 0.3.36, `LogitsProcessor`: (ids np.intc [n], logits np.single [V]) -> logits;
gguf 0.19, `tokenizer.ggml.*` keys.

    from llama_cpp import Llama, LogitsProcessorList

    processor = LlamaCppProcessor(tf.json_schema(schema), read_gguf("model.gguf"), max_tokens=100)
    llama = Llama("model.gguf")
    print(llama("An order:", max_tokens=100, logits_processor=LogitsProcessorList([processor])))
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenform.engine import Vocabulary
from tokenform.engine.tokenizers.pieces import SPACE_MARK, byte_level
from tokenform.errors import VocabularyError, warn_outside
from tokenform.integrations.history_matcher import HistoryMatcher

_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
"""llama.cpp's kinds of tokens (`llama_token_type`)."""
_ENDS = ("eos_token_id", "eot_token_id", "eom_token_id")


class LlamaCppProcessor:
    """Keeps what llama-cpp-python writes to a grammar.

    Args:
        grammar: a grammar, schema or type.
        vocabulary: the model's, see `read_gguf`.
        max_tokens: that of the completion: texts are complete within it.
    Raises:
        BudgetTooSmall: no text has so few tokens.
    """

    def __init__(self, grammar: Any, vocabulary: Vocabulary, *, max_tokens: int | None = None) -> None:
        self.following = HistoryMatcher(grammar, vocabulary, max_tokens=max_tokens)

    def reset(self) -> None:
        """The next call's ids are a prompt, even where they are those before with their text."""
        self.following.reset()

    def __call__(self, input_ids: NDArray[np.intc], scores: NDArray[np.single]) -> NDArray[np.single]:
        """Scores [V] with -inf where the grammar forbids, given all ids so far [n]."""
        allowed = self.following.allowed(input_ids)
        masked = np.full_like(scores, -np.inf)
        width = min(len(allowed), len(scores))
        masked[:width][allowed[:width]] = scores[:width][allowed[:width]]
        return masked


def read_gguf(path: str | PathLike[str]) -> Vocabulary:
    """The vocabulary of a GGUF file.

    Raises:
        VocabularyError: the file has none, or its tokens' kind is not known.
    """
    from gguf import GGUFReader

    fields = GGUFReader(str(path)).fields
    values = {
        name.removeprefix("tokenizer.ggml."): field
        for name, field in fields.items()
        if name.startswith("tokenizer.ggml.")
    }
    if "tokens" not in values or "model" not in values:
        raise VocabularyError(f"{path} holds no vocabulary (tokenizer.ggml.tokens).")
    kind = values["model"].contents()
    if kind not in ("gpt2", "llama"):
        raise VocabularyError(f"{path} has a tokenizer of kind {kind!r}; 'gpt2' and 'llama' are known.")
    pieces = values["tokens"].contents()
    kinds = values["token_type"].contents() if "token_type" in values else [_NORMAL] * len(pieces)
    spell = byte_level if kind == "gpt2" else _marked
    tokens = [_spelled(piece, one, spell) for piece, one in zip(pieces, kinds, strict=True)]
    special = [token for token, one in enumerate(kinds) if one in (_UNKNOWN, _CONTROL)]
    ends = sorted({int(values[name].contents()) for name in _ENDS if name in values})
    if not ends:
        raise VocabularyError(f"{path} names no end-of-text token.")
    return Vocabulary(tokens, ends, sorted({*special, *ends}))


def _spelled(piece: str, kind: int, spell: Any) -> bytes:
    if kind == _BYTE:
        return bytes([int(piece[3:-1], 16)])  # <0x0A>
    if kind == _NORMAL:
        spelled: bytes = spell(piece)
        return spelled
    return piece.encode()  # control tokens, and added ones, are their text


def _marked(piece: str) -> bytes:
    return piece.replace(SPACE_MARK, " ").encode()


def __getattr__(name: str) -> Any:
    if name != "GrammarProcessor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_outside("GrammarProcessor is an old name; write LlamaCppProcessor.", DeprecationWarning)
    return LlamaCppProcessor
