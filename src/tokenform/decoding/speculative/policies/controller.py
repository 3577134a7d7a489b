"""As many nodes as make the most tokens per second, by measured prices, where drafts pay in the text.

Purpose: of the best-first order the k likeliest nodes are scored, for the k with the most
(1 + sum of the k best chances) / (time of a pass with k nodes).  The lines of a batch are padded to the
longest, so there k is a number of columns: the k-th best node of every tree, at the price of a whole column.
Every k is tried, for prices are a table by width (`prices.py`): two tokens may not be worth their pass where
eight are.
Invariant: a text's account (`account.py`) pays for its drafts; where it can't, its drafters are not asked.
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

from ..drafters.base import Budget
from ..drafters.lookahead import INVESTMENT
from ..tree import DraftTree
from .account import FIRST, Account
from .base import best_first, chances
from .prices import Prices

_KEEP = 0.98
_LONGEST = 1.6  # times as long as a step without drafts that one of several sequences may take
_FORGET = 0.99
_MEASURED = 2  # steps without drafts that are run to learn what they cost


class Controller:
    """Args:
    nodes: most nodes of a tree.

    Attributes:
        prices: of passes.
        drafting: mean seconds of drafting, in a step that drafts.
    """

    def __init__(self, nodes: int = 48) -> None:
        self.nodes, self.prices, self.drafting = nodes, Prices(), 0.0
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
            self.drafting += (drafting - self.drafting) * (0.1 if self.drafting else 1.0)
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
        plain = self.prices.of(active, active)
        share, most, least = plain / active, 0, math.inf
        if self.drafting + self.prices.of(active + 1, active) > (1 + FIRST) * plain:
            self.drafting *= _FORGET  # no text may ask at such a price: a first draft may have been slow
        room = math.inf if account is None else account.room(share) - self.drafting / active
        for nodes in self._sizes:
            more = self.prices.of(active * (1 + nodes), active) - plain
            own = more / active  # the others of the batch draft too; or none does
            if min(own, self.prices.of(active + nodes, active) - plain) > room:
                break
            least = min(least, own / (nodes * share))
            if own < nodes * share:  # it pays if all come true
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
        chance = [chances(tree) for tree in trees]
        order = [best_first(own) for own in chance]
        best = [[own[node] for node in nodes] for own, nodes in zip(chance, order, strict=True)]
        lines, keep = len(trees), [[source == INVESTMENT for source in tree.sources] for tree in trees]
        padding = padding if lines > 1 else 1.0  # there is nothing to pad
        plain = self.prices.of(lines, lines)
        drafting = self.drafting if any(map(len, trees)) else 0.0
        longest = (plain + drafting) * _LONGEST - drafting if lines > 1 else math.inf
        if accounts:
            room = sum(one.room(plain / lines) for one in accounts if one.asked)
            longest = min(longest, plain + room - drafting)
        size = tokens = expected = float(lines)
        chosen, rate, least = 0, tokens / (plain + drafting), 0.0
        for width in range(max(map(len, trees), default=0)):
            column, alone = [own[width] for own in best if len(own) > width], 0.0
            if padding < 1.0:
                alone = (self.prices.of(size + lines, lines) - self.prices.of(size, lines)) / lines
                column = [one for one in column if one > rate * alone * (1 - padding)]
            size += padding * lines + (1 - padding) * len(column)
            tokens += sum(column)
            seconds = self.prices.of(size, lines)
            if seconds > longest:
                break
            if tokens / (seconds + drafting) > rate:
                chosen, rate, expected = width + 1, tokens / (seconds + drafting), tokens
                least = alone * (1 - padding)
        self._tokens += expected
        for own, nodes, kept in zip(chance, order, keep, strict=True):
            for node in nodes[:chosen]:
                kept[node] = kept[node] or own[node] > rate * least
        if accounts and self.prices:
            self._book(keep, padding, accounts)
        return keep

    def _book(self, keep: Sequence[list[bool]], padding: float, accounts: Sequence[Account]) -> None:
        """The texts pay for the step: each for its nodes, and all that were asked for the drafting."""
        lines, nodes = len(keep), [sum(kept) for kept in keep]
        plain, asked = self.prices.of(lines, lines), sum(account.asked for account in accounts)
        size = padding * lines * (1 + max(nodes)) + (1 - padding) * (lines + sum(nodes))
        more = (self.prices.of(size, lines) - plain) / max(sum(nodes), 1)
        for account, own in zip(accounts, nodes, strict=True):
            account.step(plain / lines, more * own + (self.drafting / asked if account.asked else 0.0))
