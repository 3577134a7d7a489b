"""Turns the bytes of tokens into text of whole characters."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class TextPieces:
    """Holds back the bytes of an unfinished UTF-8 character, and a possible beginning of a stop text.

    Bytes that are not UTF-8 become U+FFFD.

    Args:
        stop: texts at which the text ends; nothing is returned from there on.
    """

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stop, self._pending, self._ended = tuple(stop), "", False

    def feed(self, data: bytes) -> str:
        """The characters that are complete now; may be empty."""
        return self._release(self._decoder.decode(data), max(map(len, self._stop), default=1) - 1)

    def finish(self) -> str:
        """The rest at the end of the text."""
        return self._release(self._decoder.decode(b"", final=True), 0)

    def _release(self, text: str, hold_back: int) -> str:
        """The text but its last `hold_back` characters, up to a stop text."""
        if self._ended:
            return ""
        pending = self._pending + text
        stops = [at for one in self._stop if (at := pending.find(one)) >= 0]
        if stops:
            self._ended = True
            return pending[: min(stops)]
        cut = len(pending) - hold_back if hold_back else len(pending)
        self._pending = pending[max(cut, 0) :]
        return pending[: max(cut, 0)]
