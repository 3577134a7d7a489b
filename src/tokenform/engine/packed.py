"""Masks as numpy words: bit t % 32 of word t // 32 is token t."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def mask_words(size: int) -> int:
    """Words of a mask over so many tokens."""
    return (size + 31) // 32


def mask_bits(words: Any, size: int) -> NDArray[np.bool_]:
    """bool [size] of a mask in 32-bit words; tokens beyond the mask are not allowed."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8).reshape(-1), bitorder="little")
    if len(bits) < size:
        bits = np.pad(bits, (0, size - len(bits)))
    return bits[:size].view(np.bool_)


def mask_of(tokens: Iterable[int], size: int) -> NDArray[np.uint32]:
    """The mask uint32 [W] of some tokens."""
    words = np.zeros(mask_words(size), np.uint32)
    for token in tokens:
        words[token // 32] |= np.uint32(1 << token % 32)
    return words
