"""One request's text in a serving engine: a matcher that never raises into the engine's loop.

Purpose: what the grammar objects of vLLM and SGLang have in common.
Invariant: what fails (a limit, a fault of the engine, a panic of its compiled part) leaves this text's rows
open and refuses its next tokens, so that the host ends that request alone.  A text that has ended takes what
comes without looking.
Threads: one at a time, as hosts use it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from tokenform.engine import Matcher, TokenAutomaton
from tokenform.errors import BudgetTooSmall, TokenRejected
from tokenform.integrations.asked import is_fault, room

logger = logging.getLogger("tokenform")

OPEN = -1
"""A word of a row of int32 that allows every token."""


class Text:
    """One text.

    Args:
        automaton: its constraint.
        left: says, when the text begins, how many tokens it may have with its end-of-text token; None: there
            is no bound.  It is asked once, at the first use, as a thought may have used some before.
    """

    def __init__(self, automaton: TokenAutomaton, left: Callable[[], int] | None = None) -> None:
        self._automaton = automaton
        self._left = left
        self._matcher: Matcher | None = None
        self._failed = False

    @property
    def matcher(self) -> Matcher:
        """What may follow."""
        if self._matcher is None:
            self._matcher = Matcher(self._automaton, max_tokens=self._budget())
        return self._matcher

    def _budget(self) -> int | None:
        if self._left is None:
            return None
        try:
            return room(self._automaton, self._left())
        except BudgetTooSmall as error:
            # the thought before it took what there was: the host will cut this text, and say so
            logger.warning("a text will be cut: %s", error)
            return None

    def accept(self, tokens: Sequence[int]) -> bool:
        """Whether these were the next tokens; those after the end-of-text token don't matter."""
        if self._failed:
            return False
        try:
            (self._matcher or self.matcher).accept_tokens(tokens)
            return True
        except BaseException as error:
            return self._refused(tokens, error)

    def _refused(self, tokens: Sequence[int], error: BaseException) -> bool:
        """After tokens not all of which may be next: whether those that may be end the text."""
        try:
            if not isinstance(error, TokenRejected):
                raise error
            matcher = self.matcher
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
        try:
            return 0 if self._failed else (self._matcher or self.matcher).validate_tokens(tokens)
        except BaseException as error:
            self._fail(error)
            return 0

    def fill(self, words: Any, row: int) -> None:
        """Writes the mask into a row of int32 [rows, ceil(V / 32)]."""
        if not self._failed:
            try:
                (self._matcher or self.matcher).fill_mask(words, row)
                return
            except BaseException as error:
                self._fail(error)
        words[row] = OPEN

    def rollback(self, count: int) -> None:
        """Takes the last tokens back."""
        if self._failed:
            return
        try:
            self.matcher.rollback(count)
        except BaseException as error:
            self._fail(error)

    def ended(self) -> bool:
        """Whether the end-of-text token was taken."""
        return self._matcher is not None and self._matcher.is_terminated()

    def complete(self) -> bool:
        """Whether nothing may follow but an end-of-text token, or that was taken; a text that was given up
        is not complete.
        """
        if self._failed:
            return False
        try:
            return only_end(self.matcher)
        except BaseException as error:
            self._fail(error)
            return False

    @property
    def failed(self) -> bool:
        """Whether the text was given up."""
        return self._failed

    def give_up(self, why: str) -> None:
        """Nothing more is asked of the text."""
        self._failed = True
        logger.error("a text can't go on: %s", why)

    def reset(self) -> None:
        """Goes back to before the first token."""
        self._failed = False
        if self._matcher is not None:
            self._matcher.reset()

    def _fail(self, error: BaseException) -> None:
        """Gives the text up; raises what the process itself asks for (an interrupt, an exit)."""
        if not is_fault(error):
            raise error
        self.give_up(f"{type(error).__name__}: {error}")


def only_end(matcher: Matcher) -> bool:
    """Whether nothing may follow but an end-of-text token, or that was taken."""
    if matcher.is_terminated():
        return True
    if not matcher.is_accepting():
        return False
    allowed, ends = matcher.allowed_tokens(), matcher.stop_token_ids
    return len(allowed) <= len(ends) and set(allowed.tolist()) <= set(ends)
