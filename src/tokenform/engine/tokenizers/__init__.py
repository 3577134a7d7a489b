"""Reading tokenizers: the bytes of every token id, one file a family.

Purpose: the family of a tokenizer is the first that matches.  Each family is a module with
`matches(tokenizer) -> bool`, `read(tokenizer) -> TokenTable` and `encode(tokenizer, text, specials) -> ids`;
one that takes long to read has `identity(tokenizer) -> bytes`, the key of its table in `cache_dir`.
Invariant: for every text, the bytes of `encode(text)` joined are the text's bytes; families that mark
a word's beginning (SentencePiece) may put one space before the text.
Rejected: `decode([id])` for each id (it drops leading spaces and replaces half characters);
importing the tokenizers' packages (they are recognised by their attributes).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from tokenform import disk_cache
from tokenform.engine.tokenizers import huggingface, huggingface_slow, sentencepiece, tekken, tiktoken
from tokenform.engine.tokenizers.table import TokenTable
from tokenform.errors import VocabularyError

FAMILIES = (tekken, tiktoken, sentencepiece, huggingface, huggingface_slow)
_WRAPPERS = 4  # mistral-common keeps its tokenizer inside two others, transformers that inside a third


def read(tokenizer: Any) -> TokenTable:
    """The bytes of every id of a tokenizer, its end-of-text ids and its special ids.

    Raises:
        VocabularyError: the tokenizer is of no known family, or its tokens have no fixed bytes.
    """
    family, inner = _family(tokenizer)
    identity = getattr(family, "identity", None) if disk_cache.cache_dir() else None
    if identity is None:
        read_now: TokenTable = family.read(inner)
        return read_now
    name = identity(inner)
    cached = disk_cache.read("tokenizer", name)
    if cached is not None:
        try:
            return TokenTable.from_bytes(cached)
        except ValueError:  # a sum that happens to fit
            disk_cache.forget("tokenizer", name)
    table: TokenTable = family.read(inner)
    disk_cache.write("tokenizer", table.to_bytes(), name)
    return table


def encode(tokenizer: Any, text: str, *, specials: bool = True) -> list[int]:
    """The ids of a text; with `specials`, with the special tokens that the tokenizer adds around a text."""
    family, inner = _family(tokenizer)
    return [int(token) for token in family.encode(inner, text, specials)]


def _family(tokenizer: Any) -> tuple[ModuleType, Any]:
    for layer in _layers(tokenizer):
        for family in FAMILIES:
            if family.matches(layer):
                return family, layer
    if isinstance(tokenizer, str | os.PathLike):
        raise VocabularyError(
            f"{os.fspath(tokenizer)!r} is a name; give the tokenizer itself, as "
            f"transformers.AutoTokenizer.from_pretrained({os.fspath(tokenizer)!r}) opens it."
        )
    raise VocabularyError(
        f"{type(tokenizer).__name__} is not a tokenizer that can be read (Hugging Face, SentencePiece, "
        "tiktoken, Tekken); build tokenform.Vocabulary(tokens, eos=[...]) from its bytes instead."
    )


def _layers(tokenizer: Any) -> Iterator[Any]:
    """The tokenizer, then what it wraps."""
    for _ in range(_WRAPPERS):
        if tokenizer is None:
            return
        yield tokenizer
        tokenizer = getattr(tokenizer, "instruct_tokenizer", None) or getattr(tokenizer, "tokenizer", None)
