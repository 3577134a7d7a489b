"""Mistral's Tekken: special tokens first, then byte-level BPE ranks."""

from __future__ import annotations

from typing import Any

from tokenform.engine.tokenizers.table import TokenTable


def matches(tokenizer: Any) -> bool:
    return hasattr(tokenizer, "id_to_byte_piece") and hasattr(tokenizer, "num_special_tokens")


def read(tokenizer: Any) -> TokenTable:
    specials = int(tokenizer.num_special_tokens)
    names = [tokenizer.id_to_piece(token).encode() for token in range(specials)]
    pieces = [tokenizer.id_to_byte_piece(token) for token in range(specials, int(tokenizer.n_words))]
    return TokenTable(names + pieces, eos=[int(tokenizer.eos_id)], special=list(range(specials)))


def encode(tokenizer: Any, text: str, specials: bool) -> list[int]:
    return list(tokenizer.encode(text, bos=specials, eos=False))
