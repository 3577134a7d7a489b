"""tiktoken encodings: a map from bytes to ranks, with gaps, and named special tokens."""

from __future__ import annotations

from typing import Any

from tokenform.engine.tokenizers.table import TokenTable


def matches(tokenizer: Any) -> bool:
    return hasattr(tokenizer, "decode_single_token_bytes") and hasattr(tokenizer, "n_vocab")


def read(tokenizer: Any) -> TokenTable:
    tokens = [_bytes(tokenizer, token) for token in range(int(tokenizer.n_vocab))]
    special = sorted(int(tokenizer.encode_single_token(name)) for name in tokenizer.special_tokens_set)
    end = "<|endoftext|>"
    eos = [int(tokenizer.encode_single_token(end))] if end in tokenizer.special_tokens_set else []
    return TokenTable(tokens, eos=eos, special=special)


def _bytes(tokenizer: Any, token: int) -> bytes:
    try:
        return bytes(tokenizer.decode_single_token_bytes(token))
    except KeyError:  # an id that the encoding leaves out
        return b""


def encode(tokenizer: Any, text: str, specials: bool) -> list[int]:
    """Names of special tokens count as such only with `specials`; no encoding puts any around a text."""
    if specials:
        return list(tokenizer.encode(text, allowed_special="all"))
    return list(tokenizer.encode(text, disallowed_special=()))
