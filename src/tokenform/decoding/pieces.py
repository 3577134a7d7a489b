"""Bytes that come in tokens, as text that comes in whole characters."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class TextPieces:
    """Holds back the bytes of an unfinished UTF-8 character, and what may be the beginning of a text at
    which to stop.

    Bytes that are not UTF-8 become U+FFFD.

    Args:
        stop: texts at which the text ends; nothing is given from there on.
    """

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stop, self._pending, self._ended = tuple(stop), "", False

    def feed(self, data: bytes) -> str:
        """The characters that are complete now; may be empty."""
        return self._release(self._decoder.decode(data), max(map(len, self._stop), default=1) - 1)

    def finish(self) -> str:
        """What is left at the end of the text."""
        return self._release(self._decoder.decode(b"", final=True), 0)

    def _release(self, text: str, hold_back: int) -> str:
        """All that is known but the last characters, and nothing of a text at which to stop."""
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
