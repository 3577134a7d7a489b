"""Text that arrives in pieces, read as if it were all there.

Purpose: the readers are generators that ask a `Source` for characters and yield when it has none left; they
are fed pieces and never see where one ended.
Invariant: what a reader finds out depends on the whole text alone: every decision waits until the characters
that it needs are there or the text has ended.  So any way of cutting a text gives the same result.
Complexity: each character is looked at a constant number of times (times the number of markers searched for).
Rejected: one reader for whole texts and another for streams, which is how the two come to disagree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")
Reading = Generator[None, None, T]
WHITESPACE = " \t\r\n"


_BLANK = re.compile(f"[{WHITESPACE}]*")


@lru_cache(maxsize=256)
def _any_of(texts: tuple[str, ...]) -> tuple[re.Pattern[str], int, frozenset[str]]:
    """Finds the earliest of the texts, the longest of those at the same place; their greatest length; and
    what may become one of them."""
    ordered = sorted(texts, key=len, reverse=True)
    begun = frozenset(text[:size] for text in texts for size in range(1, len(text)))
    return re.compile("|".join(map(re.escape, ordered))), len(ordered[0]), begun


class Source:
    """The characters read and to be read.

    Attributes:
        ended: no more pieces will come.
        marks: places to which a reader may go back; what was read since the first is kept.
    """

    def __init__(self) -> None:
        self.ended = False
        self._text = ""
        # The place in `_text` up to which characters were taken, and how many were forgotten before it.
        self._at = 0
        self._base = 0
        self.marks: list[int] = []

    def feed(self, piece: str) -> None:
        """Append a piece; what was taken and is under no mark is forgotten once it is the larger part."""
        keep = min([self.position, *self.marks]) - self._base - 1  # `before` asks for one character more
        if keep > len(self._text) // 2:
            self._text = self._text[keep:]
            self._at -= keep
            self._base += keep
        # Appended to the only reference, the text grows in place; a copy for each piece would be quadratic.
        text, self._text = self._text, ""
        text += piece
        self._text = text

    def end(self) -> None:
        self.ended = True

    @property
    def position(self) -> int:
        """How many characters were taken, from the start of the text."""
        return self._base + self._at

    @property
    def spent(self) -> bool:
        """Whether every character that has arrived is taken."""
        return self._at >= len(self._text)

    @property
    def before(self) -> str:
        """The character before the position, or nothing at the start."""
        return self._text[self._at - 1 : self._at] if self._at else ""

    def mark(self) -> int:
        """Remember this place for `back`; every mark is released once."""
        self.marks.append(self.position)
        return self.position

    def back(self, mark: int) -> None:
        self._at = mark - self._base

    def release(self, mark: int) -> None:
        self.marks.remove(mark)

    def undo(self, mark: int) -> None:
        """Goes back to a mark for good."""
        self.back(mark)
        self.release(mark)

    def take(self, count: int) -> str:
        """The next `count` characters, which must have arrived."""
        at = self._at
        self._at += count
        return self._text[at : self._at]

    def peek(self, count: int = 1) -> Reading[str]:
        """The next `count` characters, fewer at the end of the text; nothing is taken."""
        while len(self._text) - self._at < count and not self.ended:
            yield
        return self._text[self._at : self._at + count]

    def matches(self, text: str) -> Reading[bool]:
        """Whether the text comes next; waits only as long as it might."""
        while True:
            if self._text.startswith(text, self._at):
                return True
            if self.ended or not text.startswith(self._text[self._at : self._at + len(text)]):
                return False
            yield

    def within(self, text: str) -> Reading[bool]:
        """Whether the text that is left, to its end, is a beginning of this one."""
        while True:
            if not text.startswith(self._text[self._at : self._at + len(text) + 1]):
                return False
            if self.ended:
                return True
            yield

    def accept(self, text: str) -> Reading[bool]:
        """Take the text if it comes next."""
        if (yield from self.matches(text)):
            self._at += len(text)
            return True
        return False

    def blank(self) -> Reading[str]:
        """Take whitespace."""
        if self._at < len(self._text) and self._text[self._at] not in WHITESPACE:
            return ""
        return (yield from self.word(_BLANK))

    def run(self, pattern: re.Pattern[str], emit: Callable[[str], None]) -> Reading[None]:
        """Take characters as long as they match the one-character pattern's repetition, and hand them on."""
        while True:
            found = pattern.match(self._text, self._at)
            if found and found.end() > self._at:
                emit(self.take(found.end() - self._at))
            if self._at < len(self._text) or self.ended:
                return
            yield

    def word(self, pattern: re.Pattern[str]) -> Reading[str]:
        """Take characters in the same way, as one text."""
        pieces: list[str] = []
        yield from self.run(pattern, pieces.append)
        return "".join(pieces)

    def until(self, stops: Sequence[str], emit: Callable[[str], None]) -> Reading[str | None]:
        """Hand on the text before the earliest stop; the stop itself is not taken.

        Returns: the stop, None where the text ends without one.
        """
        pattern, longest, begun = _any_of(tuple(stops))
        while True:
            text, at = self._text, self._at
            found = pattern.search(text, at)
            held = len(text)
            # A stop that is found does not count yet where a longer one may begin with it or before it.
            if not self.ended and not (found and found.start() <= held - longest):
                held = _open_tail(text, max(held - longest + 1, at), begun)
            if found and held > found.start():
                if found.start() > at:
                    emit(self.take(found.start() - at))
                return found.group()
            safe = min(held, found.start()) if found else held
            if safe > at:
                emit(self.take(safe - at))
            if self.ended:
                return None
            yield


def _open_tail(text: str, start: int, begun: frozenset[str]) -> int:
    """Where from `start` on the longest suffix begins that may become a stop."""
    for place in range(start, len(text)):
        if text[place:] in begun:
            return place
    return len(text)
