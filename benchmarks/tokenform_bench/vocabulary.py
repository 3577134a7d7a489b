"""The vocabulary that every engine of a comparison is given: Mistral's Tekken, 131,072 tokens.

Purpose: one list of token bytes, the same for all engines, and the tokenizer's own way of writing a text.
Invariant: `b"".join(tokens[i] for i in encode(text)) == text` in UTF-8.
Complexity: about a second to read; encoding is tiktoken's.
Rejected: a Hugging Face tokenizer (each engine would read it in a way of its own, and a hub download is
needed).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tokenform.errors import DataError

TEKKEN_FILE = "tekken_240911.json"


@dataclass(frozen=True)
class BenchVocabulary:
    """Token bytes by id, EOS and special ids, and the tokenizer.

    Attributes:
        tokens: V byte strings; special ids have the bytes of their name, which must never match text.
        encode: text -> canonical token ids.
    """

    name: str
    tokens: list[bytes]
    eos: int
    special: list[int]
    encode: Callable[[str], list[int]]

    @property
    def words(self) -> int:
        """32-bit words of a mask."""
        return (len(self.tokens) + 31) // 32


def tekken() -> BenchVocabulary:
    """Tekken's 131,072 tokens, from the PyPI package mistral-common.

    Raises:
        DataError: the package isn't installed.
    """
    try:
        import mistral_common
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    except ImportError as error:
        raise DataError("the benchmarks need mistral-common: pip install mistral-common") from error
    tokenizer = Tekkenizer.from_file(Path(mistral_common.__file__).parent / "data" / TEKKEN_FILE)
    shift, model = tokenizer.num_special_tokens, tokenizer._model
    ordinary = model.token_byte_values()  # sorted by bytes, so ids are looked up one by one
    tokens = [f"<special_{i}>".encode() for i in range(shift)] + [b""] * (tokenizer.n_words - shift)
    for piece in ordinary:
        tokens[shift + model.encode_single_token(piece)] = piece
    singles = {tokens[i][0]: i for i in range(shift, len(tokens)) if len(tokens[i]) == 1}

    def encode(text: str) -> list[int]:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:  # a lone surrogate: no tokenizer reads it; spell its bytes
            return [singles[byte] for byte in text.encode("utf-8", "surrogatepass")]
        return [shift + i for i in model.encode_ordinary(text)]

    return BenchVocabulary("tekken-131072", tokens, tokenizer.eos_id, list(range(shift)), encode)
