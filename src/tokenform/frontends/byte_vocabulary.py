"""The 256 bytes as a vocabulary, for texts that no model has cut into tokens."""

from __future__ import annotations

from functools import cache

from tokenform import _core


@cache
def byte_vocabulary() -> _core.Vocabulary:
    """Each byte as a token, and an end (256)."""
    return _core.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], [256], [256])
