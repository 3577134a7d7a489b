"""Where the whole characters of a byte string end.

Invariant: `split_characters(b)` gives (text, rest) with text.encode() + rest == b and rest a proper beginning
of one character, or (None, b"") if no continuation of b is UTF-8.
Complexity: O(len), by the decoder of the standard library, which reports where an incomplete sequence starts.
"""

from __future__ import annotations

import codecs


def split_characters(data: bytes) -> tuple[str | None, bytes]:
    """Whole characters and the unfinished rest; (None, b"") where the bytes can't become UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(data)
    except UnicodeDecodeError:
        return None, b""
    rest = decoder.getstate()[0]
    return (
        (text, rest)
        if not rest or any(_completes(rest, fill) for fill in (b"\x80", b"\xbf"))
        else (None, b"")
    )


def _completes(rest: bytes, fill: bytes) -> bool:
    """Whether some number of these last bytes makes a character of the rest.

    The decoder waits for more even after beginnings of surrogates (ED A0), which no byte can mend.  The
    lowest and the
    highest byte decide: what a beginning may go on with is always an interval that holds one of them.
    """
    for count in (1, 2, 3):
        try:
            (rest + fill * count).decode()
        except UnicodeDecodeError:
            continue
        return True
    return False
