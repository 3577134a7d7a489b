"""One request's text in a serving engine: a matcher that never raises into the engine's loop.

Purpose: the common part of the grammar objects of vLLM and SGLang.
Invariant: after a failure (a limit, a fault of the engine, a panic of its compiled part) this text's rows are
open and its next tokens are refused, so that the host ends that request alone.  A text that has ended accepts
any further tokens.
Threads: one at a time, as hosts use it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tokenform.engine import Matcher, TokenAutomaton, fill_draft_masks
from tokenform.errors import BudgetTooSmall, EngineError, TokenRejected
from tokenform.integrations.grammar_compiler import is_fault, token_budget

logger = logging.getLogger("tokenform")
T = TypeVar("T")

OPEN = -1
"""A word of a row of int32 that allows every token."""


class RequestMatcher:
    """One text.

    Args:
        automaton: its constraint.
        tokens_left: gives the most tokens of the text with its end-of-text token; None: there is no bound.
            Called once, at the first use, as a thought may have used some before.
    Attributes:
        failed: whether the text was given up.
    """

    def __init__(self, automaton: TokenAutomaton, tokens_left: Callable[[], int] | None = None) -> None:
        self._automaton = automaton
        self._tokens_left = tokens_left
        self.failed = False
        # set from the first use until the text is given up, so that one check finds it in order
        self.going: Matcher | None = None

    def check(self, most: int) -> None:
        """Raises `BudgetTooSmall` where no complete text, with its end-of-text token, has so few tokens."""
        token_budget(self._automaton, most)

    def begin(self) -> Matcher:
        """The matcher of a text at its first use.

        Raises:
            EngineError: the text was given up.
        """
        if self.failed:
            raise EngineError("the text was given up")
        self.going = Matcher(self._automaton, max_tokens=self._budget())
        return self.going

    def begin_ahead(self) -> None:
        """Begins the text before a step needs it; a fault ends this text alone, as in a step."""
        try:
            self.begin()
        except BaseException as error:
            self._fail(error)

    def _budget(self) -> int | None:
        if self._tokens_left is None:
            return None
        try:
            return token_budget(self._automaton, self._tokens_left())
        except BudgetTooSmall as error:
            # the thought before it used the budget: the host will cut this text, and report it
            logger.warning("a text will be cut: %s", error)
            return None

    def accept(self, tokens: Sequence[int]) -> bool:
        """Whether these were the next tokens; those after the end-of-text token don't matter."""
        try:
            (self.going or self.begin()).accept_tokens(tokens)
            return True
        except BaseException as error:
            return self.refused(tokens, error)

    def refused(self, tokens: Sequence[int], error: BaseException) -> bool:
        """After rejected tokens: whether the allowed ones among them end the text."""
        if self.failed:
            return False
        try:
            matcher = self.going
            if matcher is None or not isinstance(error, TokenRejected):
                raise error
            if not matcher.is_terminated():
                matcher.accept_tokens(tokens[: matcher.validate_tokens(tokens)])
            if not matcher.is_terminated():
                logger.error("a text can't go on: %s", error)
            return matcher.is_terminated()
        except BaseException as fault:
            self._fail(fault)
            return False

    def valid(self, tokens: Sequence[int]) -> int:
        """How many of these tokens may follow, one after the other."""
        return self._tried(lambda matcher: matcher.validate_tokens(tokens), 0)

    def fill(self, words: Any, row: int) -> None:
        """Writes the mask into a row of int32 [rows, ceil(V / 32)]."""
        if not self.failed:
            try:
                (self.going or self.begin()).fill_mask(words, row)
                return
            except BaseException as error:
                self._fail(error)
        words[row] = OPEN

    def rollback(self, count: int) -> None:
        """Takes the last tokens back."""
        self._tried(lambda matcher: matcher.rollback(count), None)

    def ended(self) -> bool:
        """Whether the end-of-text token was taken."""
        return self.going is not None and self.going.is_terminated()

    def forced(self) -> list[int]:
        """The forced tokens."""
        return self._tried(Matcher.forced_tokens, [])

    def complete(self) -> bool:
        """Whether only an end-of-text token may follow, or was taken; False for a text that was given up."""
        return self._tried(only_end, False)

    def _tried(self, use: Callable[[Matcher], T], otherwise: T) -> T:
        """What a use of the matcher gives; `otherwise` for a text that was given up, or is now."""
        try:
            return otherwise if self.failed else use(self.going or self.begin())
        except BaseException as error:
            self._fail(error)
            return otherwise

    def give_up(self, why: str) -> None:
        """Ends the use of the text."""
        self.failed, self.going = True, None
        logger.error("a text can't go on: %s", why)

    def reset(self) -> None:
        """Goes back to before the first token."""
        self.failed = False
        if self.going is not None:
            self.going.reset()

    def _fail(self, error: BaseException) -> None:
        """Gives the text up; raises interrupts and exits again."""
        if not is_fault(error):
            raise error
        self.give_up(f"{type(error).__name__}: {error}")


def fill_rows(
    texts: Sequence[RequestMatcher],
    words: Any,
    drafts: Sequence[Sequence[int]] | None = None,
    rows: Sequence[int] | None = None,
    threads: int = 1,
) -> bool:
    """Writes each text's block of rows in one call: the mask now, and after each token of its draft.

    Rows after the end are open, as hosts have them: tokens there are dropped, and a row that allows no token
    is no distribution.

    Args:
        words: int32 [rows, ceil(V / 32)].
        drafts: of each text; None: there are none.
        rows: the first of each block, ascending; None: they follow each other.
        threads: for masks that are not cached.
    Returns:
        Whether all of them were written.  If not (a text was given up or fails now, a draft token is not
        allowed), the caller fills the rows one by one, to find the text.
    """
    try:
        matchers = [one.going or one.begin() for one in texts]
        return not fill_draft_masks(
            matchers, drafts, words, rows=rows, threads=threads, open_after_end=True, errors="return"
        )
    except BaseException as error:
        if not is_fault(error):
            raise
        return False


def only_end(matcher: Matcher) -> bool:
    """Whether only an end-of-text token may follow, or was taken."""
    if matcher.is_terminated():
        return True
    if not matcher.is_accepting():
        return False
    allowed, ends = matcher.allowed_tokens(), matcher.stop_token_ids
    return len(allowed) <= len(ends) and set(allowed.tolist()) <= set(ends)
