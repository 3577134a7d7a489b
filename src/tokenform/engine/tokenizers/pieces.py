"""How families spell bytes in the text of a token.

Sources: the byte table of GPT-2 (Radford et al. 2019), which gives every byte a printable character;
SentencePiece (Kudo, Richardson 2018), which writes a space as U+2581 and a byte as `<0xNN>`.
"""

from __future__ import annotations

import re
from functools import lru_cache

SPACE_MARK = "\u2581"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@lru_cache(maxsize=1)
def byte_of_character() -> dict[str, int]:
    """Character -> byte: printable Latin-1 stands for itself, the rest is numbered from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in set(printable))
    table.update({chr(0x100 + number): byte for number, byte in enumerate(others)})
    return table


def byte_level(piece: str) -> bytes:
    """The bytes of a byte-level piece; a piece with a character outside the table is literal text."""
    table = byte_of_character()
    try:
        return bytes([table[character] for character in piece])
    except KeyError:
        return piece.encode()


def marked(piece: str, *, byte_fallback: bool = True, mark: str = SPACE_MARK) -> bytes:
    """The bytes of a SentencePiece-style piece."""
    spelled = _BYTE_PIECE.fullmatch(piece) if byte_fallback else None
    if spelled:
        return bytes([int(spelled[1], 16)])
    return piece.replace(mark, " ").encode()
