"""Turns the bytes of tokens into text of whole characters."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence


def first_stop(text: str, stop: Sequence[str], complete: Callable[[str], bool]) -> tuple[int, str | None]:
    """Where the first of the stop texts begins, and which it is; else the text's length.

    Args:
        complete: whether the text before it may end there: other places don't count.
    """
    found = sorted((at, one) for one in stop for at in _places(text, one))
    return next((each for each in found if complete(text[: each[0]])), (len(text), None))


def _places(text: str, part: str) -> Iterator[int]:
    start = 0
    while (start := text.find(part, start)) >= 0:
        yield start
        start += 1


class TextPieces:
    """Holds back the bytes of an unfinished UTF-8 character, and a possible beginning of a stop text.

    Bytes that are not UTF-8 become U+FFFD.

    Args:
        stop: texts at which the text ends; nothing is returned from there on.
        complete: as for `first_stop`; None: every text may end anywhere.
    Attributes:
        ended: a stop text was found.
    """

    def __init__(self, stop: Sequence[str] = (), complete: Callable[[str], bool] | None = None) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stop, self._complete, self.ended = tuple(stop), complete, False
        self._pending, self._given = "", list[str]()  # what was returned: kept where `complete` asks for it
        self._longest = max(map(len, self._stop), default=1) - 1

    def feed(self, data: bytes) -> str:
        """The characters that are complete now; may be empty."""
        return self._release(self._decoder.decode(data), self._longest)

    def finish(self) -> str:
        """The rest at the end of the text."""
        return self._release(self._decoder.decode(b"", final=True), 0)

    def _release(self, text: str, hold_back: int) -> str:
        """The text but its last `hold_back` characters, up to a stop text."""
        if not self._stop:
            return text
        if self.ended:
            return ""
        pending = self._pending + text
        end, stopped = first_stop(pending, self._stop, self._may_end)
        self.ended = stopped is not None
        if not self.ended:
            end = max(end - hold_back, 0)
        given, self._pending = pending[:end], pending[end:]
        if self._complete is not None:
            self._given.append(given)
        return given

    def _may_end(self, pending: str) -> bool:
        return self._complete is None or self._complete("".join([*self._given, pending]))
