"""Whether drafts have paid in a text.

Purpose: a text that copies nothing shall not pay for drafts.  Its account has what plain decoding would have
taken (its tokens, each at its share of a pass without drafts) and what it took (passes as wide as they were,
and the drafters' own time), at measured prices.
Invariant: nothing is spent that could leave the text behind plain decoding by more than the allowance, even
if no guess comes true.  So a text alone takes at most (1 + `_RATE`) times what plain decoding takes, and
`FIRST` passes, whatever is drafted; the texts of a batch together keep to the sum.
Rejected: a stop after so many wrong guesses (wide passes and narrow ones would count alike).
"""

from __future__ import annotations

FIRST = 1.5  # passes without drafts that a text may lose: a first guess of a few tokens
_RATE = 0.01  # of what plain decoding would have taken so far


class Account:
    """Of one text.

    Attributes:
        asked: whether drafts were asked for, for the step at hand.
        plain: seconds that its tokens would have taken without drafts.
        spent: seconds that they took.
    """

    __slots__ = ("_share", "asked", "plain", "spent")

    def __init__(self) -> None:
        self.asked, self.plain, self.spent, self._share = False, 0.0, 0.0, 0.0

    def room(self, share: float) -> float:
        """Seconds that may be spent for guesses now.

        Args:
            share: the text's part of a pass without drafts.
        """
        return FIRST * share + (1 + _RATE) * self.plain - self.spent

    def step(self, share: float, more: float) -> None:
        """A step of the text begins, which takes `more` seconds beside its share of a pass without drafts."""
        self._share = share
        self.asked = False
        self.spent += share + more

    def wrote(self, tokens: int) -> None:
        """The step gave so many tokens."""
        self.plain += tokens * self._share
