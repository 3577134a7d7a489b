"""What a pass costs by its width, as it was measured.

Purpose: on a CPU the second token of a pass may cost nearly as much as the first, and the next six hardly
anything (a product with a matrix instead of one with a vector): no line fits that.  Widths are kept apart as
1, 2, 3-4, 5-8, ...; each keeps its last passes.
Invariant: a price is positive and does not fall with the width.  Between two measured widths it is a line;
beyond them it follows the belief that `_START` tokens of a line cost as much as the fixed part of a pass.
Complexity: O(log width) a pass.
Source: on SmolLM2-135M with one thread 61 ms at width 1, and 107, 129, 132, 176 at 2, 4, 8, 16.
Rejected: least squares of a + b x width; means (a busy machine makes some passes many times as long: of the
last few the median counts, of the first four the least, for what is done first is often slow).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from statistics import fmean, median

_START = 16  # tokens of a line that cost as much as the fixed part of a pass, until measured
_LAST = 9  # passes of about one width that are looked at
_FIRST = 5  # of them from which on the median counts
_FORGET = 512  # passes after which a width that was not run counts as unknown: it may have been a busy moment


class Times:
    """Of what is done again and again: the last few, in seconds."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = deque[float](maxlen=_LAST)

    def __len__(self) -> int:
        return len(self._last)

    def add(self, seconds: float) -> None:
        self._last.append(seconds)

    def fade(self, factor: float) -> None:
        """What was measured counts for less: it may have been a busy moment."""
        self._last = deque((factor * one for one in self._last), maxlen=_LAST)

    @property
    def usual(self) -> float:
        """What it is taken to cost; 0 where it was never done."""
        if len(self._last) < _FIRST:
            return min(self._last, default=0.0)
        return median(self._last)


class _Width:
    """Passes of about one width."""

    __slots__ = ("run", "times", "tokens")

    def __init__(self) -> None:
        self.run, self.times, self.tokens = 0, Times(), deque[float](maxlen=_LAST)

    def add(self, tokens: float, seconds: float, now: int) -> None:
        self.run = now
        self.tokens.append(tokens)
        self.times.add(seconds)


class Prices:
    """A table of the seconds of a pass by its width."""

    def __init__(self) -> None:
        self._widths: dict[int, _Width] = {}
        self._now = 0
        self._points: list[tuple[float, float]] = []

    def observe(self, tokens: float, seconds: float) -> None:
        """A pass over so many tokens took so many seconds."""
        self._now += 1
        self._widths.setdefault(_kind(tokens), _Width()).add(tokens, max(seconds, 1e-9), self._now)
        for kind in [kind for kind, one in self._widths.items() if self._now - one.run > _FORGET]:
            del self._widths[kind]
        self._points = []
        least = math.inf
        for _, one in sorted(self._widths.items(), reverse=True):  # a wider pass can't cost less
            least = min(least, one.times.usual)
            self._points.append((fmean(one.tokens), least))
        self._points.reverse()

    def __bool__(self) -> bool:
        """Whether any pass was measured."""
        return bool(self._points)

    def known(self, tokens: float) -> bool:
        """Whether passes of about this width were measured, more than once."""
        width = self._widths.get(_kind(tokens))
        return width is not None and len(width.times) > 1

    def of(self, tokens: float, lines: int = 1) -> float:
        """Seconds of a pass over so many tokens in so many lines; where no pass was measured, of no unit."""
        return self.each((tokens,), lines)[0]

    def each(self, sizes: Iterable[float], lines: int = 1) -> list[float]:
        """The same of passes of several sizes."""
        fixed, points, found = float(_START * lines), self._points, []
        for tokens in sizes:
            if not points:
                found.append(fixed + tokens)
                continue
            low, high = points[0], points[-1]
            for point in points:
                if point[0] <= tokens:
                    low = point
                else:
                    high = point
                    break
            if low[0] < tokens < high[0]:
                found.append(low[1] + (high[1] - low[1]) * (tokens - low[0]) / (high[0] - low[0]))
            else:
                near = low if tokens <= low[0] else high
                found.append(near[1] * (fixed + tokens) / (fixed + near[0]))
        return found


def _kind(tokens: float) -> int:
    """0 for up to one token, 1 for two, 2 for three and four, 3 for five to eight, ..."""
    return max(0, math.ceil(math.log2(max(tokens, 1.0))))
