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


@lru_cache(maxsize=256)
def _any_of(texts: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the earliest of the texts, the longest of those at the same place."""
    return re.compile("|".join(re.escape(t) for t in sorted(texts, key=len, reverse=True)))


class Source:
    """The characters read and to be read.

    Attributes:
        position: how many characters were taken, from the start of the text.
        ended: no more pieces will come.
    """

    def __init__(self) -> None:
        self.position = 0
        self.ended = False
        self._text = ""
        self._base = 0
        self._marks: list[int] = []

    def feed(self, piece: str) -> None:
        """Append a piece; what was taken and is under no mark is forgotten."""
        keep = min([self.position, *self._marks]) - self._base
        # The character before the position is kept: a word boundary may ask for it.
        keep = max(keep - 1, 0)
        self._text = self._text[keep:] + piece
        self._base += keep

    def end(self) -> None:
        self.ended = True

    @property
    def before(self) -> str:
        """The character before the position, or nothing at the start."""
        at = self.position - self._base
        return self._text[at - 1 : at] if at else ""

    @property
    def here(self) -> str:
        """The characters that have arrived and are not yet taken."""
        return self._text[self.position - self._base :]

    def mark(self) -> int:
        """Remember this place for `back`; every mark is released once."""
        self._marks.append(self.position)
        return self.position

    def back(self, mark: int) -> None:
        self.position = mark

    def release(self, mark: int) -> None:
        self._marks.remove(mark)

    def take(self, count: int) -> str:
        """The next `count` characters, which must have arrived."""
        at = self.position - self._base
        self.position += count
        return self._text[at : at + count]

    def peek(self, count: int = 1) -> Reading[str]:
        """The next `count` characters, fewer at the end of the text; nothing is taken."""
        while len(self._text) - (self.position - self._base) < count and not self.ended:
            yield
        at = self.position - self._base
        return self._text[at : at + count]

    def matches(self, text: str) -> Reading[bool]:
        """Whether the text comes next; waits only as long as it might."""
        while True:
            here = self.here[: len(text)]
            if here == text:
                return True
            if not text.startswith(here) or self.ended:
                return False
            yield

    def accept(self, text: str) -> Reading[bool]:
        """Take the text if it comes next."""
        if (yield from self.matches(text)):
            self.take(len(text))
            return True
        return False

    def blank(self) -> Reading[str]:
        """Take whitespace."""
        taken = ""
        while True:
            here = self.here
            count = len(here) - len(here.lstrip(WHITESPACE))
            taken += self.take(count)
            if count < len(here) or self.ended:
                return taken
            yield

    def run(self, pattern: re.Pattern[str], emit: Callable[[str], None]) -> Reading[None]:
        """Take characters as long as they match the one-character pattern's repetition, and hand them on."""
        while True:
            found = pattern.match(self._text, self.position - self._base)
            size = found.end() - found.start() if found else 0
            if size:
                emit(self.take(size))
            if self.here or self.ended:
                return
            yield

    def until(self, stops: Sequence[str], emit: Callable[[str], None]) -> Reading[str | None]:
        """Hand on the text before the earliest stop; the stop itself is not taken.

        Returns: the stop, None where the text ends without one.
        """
        pattern = _any_of(tuple(stops))
        while True:
            here = self.here
            found = pattern.search(here)
            # A stop that is found does not count yet where a longer one may begin with it or before it.
            held = len(here) if self.ended else _open_tail(here, stops)
            if found and held > found.start():
                if found.start():
                    emit(self.take(found.start()))
                return found.group()
            safe = min(held, found.start()) if found else held
            if safe:
                emit(self.take(safe))
            if self.ended:
                return None
            yield


def _open_tail(text: str, stops: Sequence[str]) -> int:
    """Where the longest suffix of the text starts that is the beginning of a stop, but not all of it."""
    longest = max(map(len, stops)) - 1
    for start in range(max(len(text) - longest, 0), len(text)):
        tail = text[start:]
        if any(len(tail) < len(stop) and stop.startswith(tail) for stop in stops):
            return start
    return len(text)
