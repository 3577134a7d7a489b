"""SentencePiece models: a processor, or mistral-common's wrapper of one."""

from __future__ import annotations

from typing import Any

from tokenform.engine.tokenizers.pieces import marked
from tokenform.engine.tokenizers.table import TokenTable


def matches(tokenizer: Any) -> bool:
    return hasattr(_processor(tokenizer), "IsByte")


def read(tokenizer: Any) -> TokenTable:
    processor = _processor(tokenizer)
    tokens: list[bytes] = []
    special: list[int] = []
    for token in range(processor.get_piece_size()):
        piece = processor.id_to_piece(token)
        if processor.IsUnused(token):
            tokens.append(b"")
        elif processor.IsControl(token) or processor.IsUnknown(token):
            tokens.append(piece.encode())
            special.append(token)
        else:
            tokens.append(marked(piece, byte_fallback=processor.IsByte(token)))
    eos = int(processor.eos_id())
    return TokenTable(tokens, eos=[eos] if eos >= 0 else [], special=special)


def _processor(tokenizer: Any) -> Any:
    return getattr(tokenizer, "_model", None) if hasattr(tokenizer, "special_ids") else tokenizer


def encode(tokenizer: Any, text: str, specials: bool) -> list[int]:
    processor = _processor(tokenizer)
    begin = int(processor.bos_id())
    return ([begin] if specials and begin >= 0 else []) + list(processor.encode(text))
