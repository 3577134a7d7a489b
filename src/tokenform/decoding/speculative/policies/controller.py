"""As many nodes as make the most tokens per second, by measured costs.

Purpose: node k of the best-first order is worth scoring while
(1 + sum of the k best chances) / (time of a pass with k nodes) still rises.  The lines of a batch are padded
to the longest, so there node k is a column: the k-th best node of every tree, at the price of a whole column.
Invariant: with no cost known yet the budget is small; with chances near 0 nothing is drafted,
so free text is not slowed down.
Complexity: O(n log n) in the nodes of a step, O(1) a pass.
Source: the throughput criterion of Sequoia (Chen et al. 2024, section 4.3), with the time of a
pass fitted online as a + b x tokens (least squares, forgetting 2 % a pass).
The time of drafting is spent before a tree is shaped, so it counts as fixed; a drafter that pays for
each token with a pass stops where that takes longer than the token is worth, its chance times the
seconds of a token.  The slope is drawn towards a belief, because sizes that hardly vary say nothing
about it, and passes that took far too long are cut: a busy machine must not end drafting.
A step of several sequences keeps all of them waiting, so it grows to `_LONGEST` times one without drafts
and no further, although a longer one may still give more tokens a second.
Rejected: a table of times by size (too few passes to fill it); each tree by itself (one of 20 nodes in a
batch of 32 made the pass as long as 32 of them would).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..drafters.base import Budget
from ..drafters.lookahead import INVESTMENT
from ..tree import DraftTree
from .base import best_first, chances

_KEEP = 0.98
_START = 16  # tokens of a line that cost as much as the fixed part of a pass, until measured
_WEIGHT = 320.0  # what that belief weighs: twenty passes whose sizes spread by four tokens
_LONGEST = 1.6  # times as long as a step without drafts that one of several sequences may take
_LEAST, _FAR = 8, 2.0  # after so many passes, one that takes so many times the expected time counts as that


class Controller:
    """Args:
    nodes: most nodes of a tree.
    """

    def __init__(self, nodes: int = 48) -> None:
        self.nodes = nodes
        self._n = self._x = self._y = self._xx = self._xy = self._d = self._tokens = 0.0
        self._active = 1

    def observe(self, tokens: float, seconds: float, drafting: float = 0.0) -> None:
        if tokens > 8 * self.nodes * self._active:  # a prompt: another regime
            return
        if self._n >= _LEAST:  # the machine was busy with something else
            seconds = min(seconds, _FAR * self._expected(tokens))
        for name, value in (
            ("_n", 1.0),
            ("_d", drafting),
            ("_x", tokens),
            ("_y", seconds),
            ("_xx", tokens**2),
            ("_xy", tokens * seconds),
        ):
            setattr(self, name, getattr(self, name) * _KEEP + value)
        self._tokens *= _KEEP

    def _line(self) -> tuple[float, float]:
        """(seconds of a pass without tokens, seconds of a token), both positive."""
        mean, size = self._y / self._n, self._x / self._n
        spread = self._xx - self._x * size
        belief = mean / (_START * self._active + size)
        slope = (self._xy - self._x * mean + _WEIGHT * belief) / (spread + _WEIGHT)
        slope = max(slope, mean * 0.002 / self._active)
        return max(mean - slope * size, mean * 0.02), slope

    def _expected(self, tokens: float) -> float:
        fixed, slope = self._line()
        return fixed + slope * tokens

    def costs(self) -> tuple[float, float]:
        """(seconds of a step without draft, seconds of a token), positive; no unit until measured."""
        if self._n < 1:
            return float(_START * self._active), 1.0
        fixed, slope = self._line()
        return fixed + self._d / self._n, slope

    def budget(self, active: int) -> Budget:
        self._active = max(active, 1)
        fixed, slope = self.costs()
        most = int(min(self.nodes, max(4.0, 4 * fixed / (slope * self._active))))
        least = slope * self._active / (fixed + slope * self._active)
        worth = self.worth()

        def stop(confidence: float, cumulative: float, seconds: float) -> bool:
            return cumulative < least or cumulative * worth < seconds

        return Budget(most, stop=stop)

    def worth(self) -> float:
        """Seconds that a token takes at present: what the next drafted one may cost where it is sure."""
        if self._n < 1 or self._tokens <= 0:
            return float("inf")
        return (self._y + self._d) / self._tokens

    def shape(self, trees: Sequence[DraftTree], padding: float = 1.0) -> list[list[bool]]:
        chance = [chances(tree) for tree in trees]
        order = [best_first(own) for own in chance]
        best = [[own[node] for node in nodes] for own, nodes in zip(chance, order, strict=True)]
        fixed, slope = self.costs()
        tokens, width = float(len(trees)), 0
        seconds, alone = fixed + slope * tokens, slope * (1 - padding)
        longest = seconds * (_LONGEST if len(trees) > 1 else math.inf)
        for width in range(max(map(len, trees), default=0) + 1):
            column = [own[width] for own in best if len(own) > width]
            worth = [one for one in column if one * seconds > tokens * alone]
            price = slope * padding * len(trees) + alone * len(worth)
            if (tokens + sum(worth)) * seconds <= tokens * (seconds + price) or seconds + price > longest:
                break
            tokens, seconds = tokens + sum(worth), seconds + price
        self._tokens += tokens
        least = alone * tokens / seconds
        keep = [[source == INVESTMENT for source in tree.sources] for tree in trees]
        for own, nodes, kept in zip(chance, order, keep, strict=True):
            for node in nodes[:width]:
                kept[node] = kept[node] or own[node] >= least
        return keep
