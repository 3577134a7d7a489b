"""Hugging Face tokenizers in Python: byte-level ones carry `byte_decoder`, others a SentencePiece model."""

from __future__ import annotations

from typing import Any

from tokenform.engine.tokenizers import sentencepiece
from tokenform.engine.tokenizers.pieces import byte_level, marked
from tokenform.engine.tokenizers.table import TokenTable


def matches(tokenizer: Any) -> bool:
    return hasattr(tokenizer, "convert_ids_to_tokens") and (
        hasattr(tokenizer, "byte_decoder") or sentencepiece.matches(getattr(tokenizer, "sp_model", None))
    )


def read(tokenizer: Any) -> TokenTable:
    bytewise = hasattr(tokenizer, "byte_decoder")
    ids = {int(token): piece for piece, token in tokenizer.get_vocab().items()}
    tokens = [b""] * (max(ids, default=-1) + 1)
    for token, piece in ids.items():
        tokens[token] = byte_level(piece) if bytewise else marked(piece)
    special = {int(token) for token in tokenizer.all_special_ids}
    for token, added in getattr(tokenizer, "added_tokens_decoder", {}).items():
        tokens[int(token)] = str(added).encode()
        if getattr(added, "special", False):
            special.add(int(token))
    eos = tokenizer.eos_token_id
    return TokenTable(tokens, eos=[] if eos is None else [int(eos)], special=sorted(special))


def encode(tokenizer: Any, text: str, specials: bool) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=specials))
