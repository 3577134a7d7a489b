"""Sets of characters, and how UTF-8 and JSON strings spell them.

A set is a sorted list of ranges of code points; surrogates are no characters.
"""

from __future__ import annotations

from .terms import Terms

Ranges = list[tuple[int, int]]
ANY: Ranges = [(0, 0xD7FF), (0xE000, 0x10FFFF)]
DIGITS: Ranges = [(0x30, 0x39)]
WORD: Ranges = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
_SHORT = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 0x22: '"', 0x5C: "\\"}


def union(ranges: Ranges) -> Ranges:
    out: Ranges = []
    for first, last in sorted(ranges):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return out


def without(ranges: Ranges, gone: Ranges) -> Ranges:
    for low, high in gone:
        cut = [((first, min(last, low - 1)), (max(first, high + 1), last)) for first, last in ranges]
        ranges = [part for parts in cut for part in parts if part[0] <= part[1]]
    return union(ranges)


def meet(a: Ranges, b: Ranges) -> Ranges:
    return without(a, without(ANY, b))


def utf8(terms: Terms, ranges: Ranges) -> int:
    """The characters of a set, each as its bytes in UTF-8."""
    parts = []
    for first, last in meet(union(ranges), ANY):
        for low, high in ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x10FFFF)):
            if max(first, low) <= min(last, high):
                parts.append(_bytes(terms, chr(max(first, low)).encode(), chr(min(last, high)).encode()))
    return terms.either(parts)


def _bytes(terms: Terms, low: bytes, high: bytes) -> int:
    """The texts of this length between two of UTF-8, byte by byte, whose later bytes are 0x80 to 0xBF."""
    if not low:
        return terms.EPSILON
    if low[0] == high[0]:
        return terms.then(terms.set_of(1 << low[0]), _bytes(terms, low[1:], high[1:]))
    least, most = b"\x80" * (len(low) - 1), b"\xbf" * (len(low) - 1)
    inner = range(low[0] + 1, high[0])
    return terms.either(
        [
            terms.then(terms.set_of(1 << low[0]), _bytes(terms, low[1:], most)),
            terms.then(terms.set_of(sum(1 << byte for byte in inner)), _bytes(terms, least, most)),
            terms.then(terms.set_of(1 << high[0]), _bytes(terms, least, high[1:])),
        ]
    )


def in_json(terms: Terms, ranges: Ranges) -> int:
    """The characters of a set as a JSON string holds them: escaped where JSON demands it, in the short form
    where there is one."""
    demanded: Ranges = [(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)]
    codes = [code for first, last in meet(ranges, demanded) for code in range(first, last + 1)]
    return terms.either(
        [utf8(terms, without(ranges, demanded)), *(terms.text(in_string(code)) for code in codes)]
    )


def in_string(code: int) -> bytes:
    if code in _SHORT:
        return f"\\{_SHORT[code]}".encode()
    return f"\\u{code:04x}".encode() if code < 0x20 else chr(code).encode()


def json_string(text: str) -> bytes:
    """A string as JSON spells it so."""
    return b'"' + b"".join(in_string(ord(char)) for char in text) + b'"'
