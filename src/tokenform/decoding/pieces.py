"""Bytes that come in tokens, as text that comes in whole characters."""

from __future__ import annotations

import codecs


class TextPieces:
    """Holds back the bytes of an unfinished UTF-8 character.  Bytes that are not UTF-8 become U+FFFD."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, data: bytes) -> str:
        """The characters that are complete now; may be empty."""
        return self._decoder.decode(data)

    def finish(self) -> str:
        """What is left at the end of the text."""
        return self._decoder.decode(b"", final=True)
