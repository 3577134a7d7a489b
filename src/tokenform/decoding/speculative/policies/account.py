"""Whether drafts have paid in a text.

Purpose: a text that copies nothing shall not pay for drafts.  Its account has what plain decoding would have
taken (its tokens, each at its share of a pass without drafts) and what it took (passes as wide as they were,
and the drafters' own time), at measured prices.  A draft that the account can't pay for is not scored; what
the text goes on with still tells what it would have saved, for nothing.
Invariant: nothing is spent that could leave the text behind plain decoding by more than the allowance, even
if no guess comes true.  The allowance is `RATE` of what plain decoding takes; and a loan where the constraint
all but forces the next token, else what guesses that were not scored would have saved, up to `LATER` of what
plain decoding takes.  It takes the text's tokens so far, and at least those that its constraint asks for: a
text that can't end for thirty tokens may spend a part of these thirty before its first.  The loan is `LATER`
of them where the prompt's pass has the first draft with it, else (the prompt is known, or the text is one of
a batch) `FIRST` passes.  So a text alone with a new prompt takes at most 1 + `RATE` + `LATER` times as long
as plain decoding, whatever is drafted; the texts of a batch together keep to the sum.
Rejected: a stop after so many wrong guesses (wide passes and narrow ones would count alike); `FIRST` passes
for any guess, or any likely one (a free text of 21 tokens took 1.08 and 1.04 times as long); a loan of a
fifth of a pass beside the prompt, and an allowance of the tokens so far alone (a text of 7 tokens may lose
more by it, and a long one whose first guess failed can't pay for another).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..tree import ROOT, DraftTree

FIRST = 1.25  # passes without drafts that a text may lose: a first guess of a few tokens
RATE = 0.01  # of what plain decoding takes
LATER = 0.015  # of the same, more, where guesses that were not scored would have saved as much
SURE = 0.84  # probability from which on what the constraint forces is all but sure


class Account:
    """Of one text.

    Args:
        least: tokens that it has at least, as far as is known.

    Attributes:
        asked: whether drafts were asked for, for the step at hand.
        beside: tokens of the prompt that the step's pass runs in any case, where the text is alone in it.
        loan: passes that it may lose for what the constraint all but forces.
        plain: seconds that its tokens would have taken without drafts.
        spent: seconds that they took.
        foretold: passes that guesses which were not scored would have saved, at least 0 and at most `FIRST`.
    """

    __slots__ = ("_guess", "_share", "asked", "beside", "foretold", "least", "loan", "plain", "spent")

    def __init__(self, least: int = 0) -> None:
        self.asked, self.beside, self.plain, self.spent, self.foretold = False, 0, 0.0, 0.0, 0.0
        self.least = least
        self.loan, self._share = FIRST, 0.0
        self._guess: _Guess | None = None

    def begins(self, beside: int) -> None:
        """Its next pass runs `beside` tokens of its prompt in any case."""
        self.beside = beside
        if beside:
            self.loan = LATER * self.least

    def room(self, share: float, loan: float | None = None) -> float:
        """Seconds that may be spent for guesses now.

        Args:
            share: the text's part of a pass without drafts.
            loan: passes that it may lose; None: as many as guesses that were not scored would have saved.
        """
        sure = max(self.plain, self.least * share)
        more = min(self.foretold * share, LATER * sure) if loan is None else loan * share
        return more + RATE * sure + self.plain - self.spent

    def step(self, share: float, more: float) -> None:
        """A step of the text begins, which takes `more` seconds beside its share of a pass without drafts."""
        self._share = share
        self.asked = False
        self.spent += share + more

    def foretell(self, tree: DraftTree, kept: Sequence[bool], more: float) -> None:
        """A guess that is not scored; scored, it would take `more` seconds.

        Args:
            kept: nodes of the tree that would be.
        """
        if self._guess is None:
            self._guess = _Guess(tree, kept, more)

    def wrote(self, tokens: Sequence[int]) -> None:
        """The step gave these tokens."""
        self.plain += len(tokens) * self._share
        guess = self._guess
        if guess is not None and not guess.goes_on(tokens):
            saved = guess.right - guess.more / self._share if self._share else 0.0
            self.foretold = min(max(self.foretold + saved, 0.0), FIRST)
            self._guess = None


@dataclass(slots=True)
class _Guess:
    """What would have been scored, beside what the text goes on with: it is at a node, after so many."""

    tree: DraftTree
    kept: Sequence[bool]
    more: float
    at: int = ROOT
    right: int = 0

    def goes_on(self, tokens: Sequence[int]) -> bool:
        """Whether all of it has come true so far, and more of it may."""
        for token in tokens:
            node = self.tree.child(self.at, token)
            if node is None or not self.kept[node]:
                return False
            self.at, self.right = node, self.right + 1
        return any(self.kept[child] for child in self.tree.children(self.at))
