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
    """Of what is done again and again: the last few, in seconds.

    Attributes:
        usual: what it is taken to cost; 0 where it was never done.
    """

    __slots__ = ("_last", "usual")

    def __init__(self) -> None:
        self._last, self.usual = deque[float](maxlen=_LAST), 0.0

    def __len__(self) -> int:
        return len(self._last)

    def add(self, seconds: float) -> None:
        self._last.append(seconds)
        self.usual = min(self._last) if len(self._last) < _FIRST else median(self._last)

    def fade(self, factor: float) -> None:
        """What was measured counts for less: it may have been a busy moment."""
        last, self._last, self.usual = self._last, deque(maxlen=_LAST), 0.0
        for seconds in last:
            self.add(factor * seconds)


class _Width(Times):
    """Passes of about one width, the last of them at `run`."""

    __slots__ = ("run", "tokens")

    def __init__(self) -> None:
        super().__init__()
        self.run, self.tokens = 0, deque[float](maxlen=_LAST)


class Prices:
    """A table of the seconds of a pass by its width."""

    def __init__(self) -> None:
        self._widths: dict[int, _Width] = {}
        self._now = 0
        self._points: list[tuple[float, float]] = []

    def observe(self, tokens: float, seconds: float) -> None:
        """A pass over so many tokens took so many seconds."""
        self._now += 1
        kind, widths = _kind(tokens), self._widths
        width = widths.get(kind) or widths.setdefault(kind, _Width())
        width.run = self._now
        width.tokens.append(tokens)
        width.add(max(seconds, 1e-9))
        points, least = list[tuple[float, float]](), math.inf
        for kind in sorted(widths, reverse=True):
            one = widths[kind]
            if self._now - one.run > _FORGET:
                del widths[kind]
                continue
            least = min(least, one.usual)  # a wider pass can't cost less
            points.append((fmean(one.tokens), least))
        self._points = points[::-1]

    def __bool__(self) -> bool:
        """Whether any pass was measured."""
        return bool(self._points)

    def known(self, tokens: float) -> bool:
        """Whether passes of about this width were measured, more than once."""
        width = self._widths.get(_kind(tokens))
        return width is not None and len(width) > 1

    def of(self, tokens: float, lines: int = 1) -> float:
        """Seconds of a pass over so many tokens in so many lines; where no pass was measured, of no unit."""
        return self.each((tokens,), lines)[0]

    def each(self, sizes: Iterable[float], lines: int = 1, beside: int = 0) -> list[float]:
        """The same of passes of several sizes.

        Args:
            beside: tokens of a prompt that the pass runs in any case; what they cost is left out.
        """
        if beside:
            base, plain, *found = self.each(
                [beside + lines, lines, *(beside + size for size in sizes)], lines
            )
            return [plain + seconds - base for seconds in found]
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
