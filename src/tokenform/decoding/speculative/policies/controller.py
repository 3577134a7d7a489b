"""As many nodes as make the most tokens per second, by measured prices, where drafts pay in the text.

Purpose: of the best-first order the k likeliest nodes are scored, for the k with the most
(1 + sum of the k best chances) / (time of a pass with k nodes).  The lines of a batch are padded to the
longest, so there k is a number of columns: the k-th best node of every tree, at the price of a whole column.
Every k is tried, for prices are a table by width (`prices.py`): two tokens may not be worth their pass where
eight are.
Invariant: a text's account (`base.py`) pays for its drafts; where it can't, its drafters are not asked.
Where times are known at all, nothing is drafted before passes without drafts have been measured.
Complexity: O(n log n) in the nodes of a step, O(1) a pass.
Source: the throughput criterion of Sequoia (Chen et al. 2024, section 4.3).
The time of drafting is spent before a tree is shaped, so it counts whatever k is; a drafter that pays for
each token with a pass stops where that takes longer than the token is worth, its chance times the
seconds of a token.
A step of several sequences keeps all of them waiting, so it grows to `_LONGEST` times one without drafts
and no further, although a longer one may still give more tokens a second.
Rejected: each tree by itself (one of 20 nodes in a batch of 32 made the pass as long as 32 of them would).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..drafters.base import Budget
from ..tree import FORCED, ROOT, DraftTree
from .account import FIRST, SURE, Account
from .base import best_first, chances
from .prices import Prices, Times

_KEEP = 0.98
_LONGEST = 1.6  # times as long as a step without drafts that one of several sequences may take
_FORGET = 0.99
_MEASURED = 2  # steps without drafts that are run to learn what they cost


class Controller:
    """Args:
    nodes: most nodes of a tree.

    Attributes:
        prices: of passes.
        drafted: seconds of drafting, in steps that draft.
    """

    def __init__(self, nodes: int = 48) -> None:
        self.nodes, self.prices, self.drafted = nodes, Prices(), Times()
        self._seconds = self._tokens = 0.0
        self._active, self._asked, self._plainly = 1, False, 0
        self._sizes = [*(2**n - 1 for n in range(1, nodes.bit_length()) if 2**n - 1 < nodes), nodes]

    def observe(self, tokens: float, seconds: float, drafting: float = 0.0) -> None:
        if tokens > 8 * self.nodes * self._active:  # a prompt: another regime
            return
        self.prices.observe(tokens, seconds)
        if self.prices.known(self._active):
            self._plainly = 0
        if self._asked:
            self.drafted.add(drafting)
            self._asked = False
        self._seconds = self._seconds * _KEEP + self.prices.of(tokens, self._active) + drafting
        self._tokens *= _KEEP

    def budget(self, active: int, account: Account | None = None) -> Budget:
        self._active = active = max(active, 1)
        if account is not None:
            account.asked = False
        if not self.prices.known(active) and self._plainly < _MEASURED * active:
            self._plainly += 1
            return Budget(0)
        sizes = self._sizes
        wide = [active, active + 1, *[active + n for n in sizes], *[active * (1 + n) for n in sizes]]
        beside = 0 if account is None or active > 1 else account.beside
        plain, one, *own = self.prices.each(wide, active, beside)
        share, most, least, drafted = plain / active, 0, math.inf, self.drafted.usual
        if drafted + one > (1 + FIRST) * plain:
            self.drafted.fade(_FORGET)  # no text may ask at such a price: a first draft may have been slow
            drafted = self.drafted.usual
        # of guesses behind the first so much may be foretold at least
        loan = account.loan if account is not None and beside else FIRST
        room = math.inf if account is None else account.room(share, loan) - drafted / active
        for nodes, alone, every in zip(sizes, own, own[len(sizes) :], strict=False):
            more = (every - plain) / active  # the others of the batch draft too; or none does
            if min(more, alone - plain) > room:
                break
            least = min(least, more / (nodes * share))
            if more < nodes * share:  # it pays if all come true
                most = nodes
        if not most:
            return Budget(0)
        if account is not None:
            account.asked = True
        self._asked = True
        worth = self.worth()

        def stop(confidence: float, cumulative: float, seconds: float) -> bool:
            return cumulative < least or cumulative * worth < seconds

        return Budget(most, stop=stop)

    def worth(self) -> float:
        """Seconds that a token takes at present: what the next drafted one may cost where it is sure."""
        return self._seconds / self._tokens if self._seconds and self._tokens else math.inf

    def shape(
        self, trees: Sequence[DraftTree], padding: float = 1.0, accounts: Sequence[Account] = ()
    ) -> list[list[bool]]:
        chance, order, best = list[list[float]](), list[list[int]](), list[list[float]]()
        for tree in trees:
            chance.append(chances(tree))
            order.append(best_first(chance[-1]))
            best.append(sorted(chance[-1], reverse=True))
        lines = len(trees)
        if not any(order):  # nothing is drafted
            self._tokens += lines
            empty: list[list[bool]] = [[] for _ in trees]
            if accounts and self.prices:
                self._book(empty, padding, accounts)
            return empty
        padding = padding if lines > 1 else 1.0  # there is nothing to pad
        plain, drafting = self.prices.of(lines, lines), self.drafted.usual
        beside = accounts[0].beside if len(accounts) == 1 else 0
        longest = (plain + drafting) * _LONGEST - drafting if lines > 1 else math.inf
        columns = wished = self._columns(best, padding, drafting, longest, beside)
        if accounts and wished.width:
            room = sum(
                one.room(plain / lines, one.loan if _sure(tree, own) else None)
                for one, tree, own in zip(accounts, trees, chance, strict=True)
                if one.asked
            )
            columns = self._columns(best, padding, drafting, min(longest, plain + room - drafting), beside)
        self._tokens += columns.tokens
        keep = [_kept(*one, columns) for one in zip(trees, chance, order, strict=True)]
        if accounts and self.prices:
            self._book(keep, padding, accounts, beside)
            if wished.width and not columns.width:
                would = [_kept(*one, wished) for one in zip(trees, chance, order, strict=True)]
                more = self._more(would, padding, beside)
                for account, tree, own in zip(accounts, trees, would, strict=True):
                    if any(own):
                        account.foretell(tree, own, more * sum(own))
        return keep

    def _columns(
        self,
        best: Sequence[Sequence[float]],
        padding: float,
        drafting: float,
        longest: float,
        beside: int = 0,
    ) -> _Columns:
        """The columns that make the most tokens a second, in a pass of at most `longest` seconds.

        Args:
            best: chances of each line's nodes, best first.
            beside: of the prompt of the one text that there is then (`Prices.each`).
        """
        lines, longest_line = len(best), max(map(len, best), default=0)
        size = tokens = expected = float(lines)
        widths = [size + lines * width for width in range(longest_line + 1)]
        first, *known = self.prices.each(widths, lines, beside)
        chosen, rate, least, alone = 0, tokens / (first + drafting), 0.0, 0.0
        for width, seconds in enumerate(known):
            column = (
                [own[width] for own in best if len(own) > width] if lines > 1 else best[0][width : width + 1]
            )
            if padding < 1.0:
                now, more = self.prices.each((size, size + lines), lines)
                alone = (more - now) / lines
                column = [one for one in column if one > rate * alone * (1 - padding)]
                size += padding * lines + (1 - padding) * len(column)
                seconds = self.prices.of(size, lines)
            tokens += sum(column)
            if seconds > longest:
                break
            if tokens / (seconds + drafting) > rate:
                chosen, rate, expected = width + 1, tokens / (seconds + drafting), tokens
                least = alone * (1 - padding)
        return _Columns(chosen, expected, rate * least)

    def _more(self, keep: Sequence[list[bool]], padding: float, beside: int = 0) -> float:
        """Seconds that a node adds to a pass without drafts."""
        lines, nodes = len(keep), list(map(sum, keep))
        if not any(nodes):
            return 0.0
        size = padding * lines * (1 + max(nodes)) + (1 - padding) * (lines + sum(nodes))
        plain, wide = self.prices.each((lines, size), lines, beside)
        return (wide - plain) / max(sum(nodes), 1)

    def _book(
        self, keep: Sequence[list[bool]], padding: float, accounts: Sequence[Account], beside: int = 0
    ) -> None:
        """The texts pay for the step: each for its nodes, and all that were asked for the drafting."""
        lines, asked = len(keep), [account.asked for account in accounts].count(True)
        plain, more = self.prices.of(lines, lines), self._more(keep, padding, beside)
        for account, own in zip(accounts, keep, strict=True):
            drafting = self.drafted.usual / asked if account.asked else 0.0
            account.step(plain / lines, more * sum(own) + drafting)


class _Columns(NamedTuple):
    """What is scored of a step's trees.

    Attributes:
        width: nodes of each tree, the likeliest.
        tokens: how many the step is expected to give.
        least: chance above which one of these nodes is worth its price.
    """

    width: int
    tokens: float
    least: float


def _sure(tree: DraftTree, chance: Sequence[float]) -> bool:
    """Whether the constraint all but forces the next token."""
    for node in tree.kids.get(ROOT, {}).values():
        if chance[node] >= SURE and tree.sources[node] == FORCED:
            return True
    return False


def _kept(tree: DraftTree, chance: Sequence[float], order: Sequence[int], columns: _Columns) -> list[bool]:
    """Which nodes of a tree are scored."""
    kept = [False] * len(tree.tokens)
    for node in order[: columns.width]:
        kept[node] = chance[node] > columns.least
    return kept
