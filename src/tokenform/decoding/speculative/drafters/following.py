"""Following a text on the grammar of its writer's manner.

Purpose: where the request's grammar leaves its writer a choice, the narrower one of the manner in which the
text has been written so far tells what is likely next (see `hints.py`).
Invariant: a manner that the text has left is not looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tokenform.engine import State
from tokenform.errors import LimitExceeded, TokenformError

from .base import Context
from .hints import Hints


def following(context: Context, drafter: Any) -> Following | None:
    """Follows a text that begins, for a drafter with a `layout`; None where its grammar is not known."""
    if context.hints is None or context.automaton is None or context.state != context.automaton.start:
        return None
    return Following(context.hints, context.prompt_length, drafter)


class Following:
    """A text, followed on the grammar of its writer's manner.

    Args:
        hints: of its grammar.
        start: how many tokens stand before the text.
        drafter: its `layout` is the likeliest one, and becomes the one that was followed last.

    Attributes:
        given_up: whether following it took too much work.
    """

    def __init__(self, hints: Hints, start: int, drafter: Any) -> None:
        self._drafter, self._hints, self._manners = drafter, hints, hints.manners(drafter.layout)
        self._layout: str = drafter.layout
        self._start = self._read = start
        self.given_up = False
        self._automaton: Any = None
        self._state: State | None = None

    def after(self, tokens: Sequence[int], path: Iterable[int]) -> tuple[Any, State] | None:
        """The manner's automaton and its state after the text and a drafted path; None: none admits them.

        Args:
            tokens: the prompt and the text.
        """
        new, self._read = tokens[self._read :], len(tokens)
        if self._state is not None and new:
            self._state = self._advanced(self._automaton, self._state, new)
        while self._state is None and (found := next(self._manners, None)) is not None:
            layout, self._automaton = found
            self._state = self._advanced(self._automaton, self._automaton.start, tokens[self._start :])
            self._layout = layout if layout and self._state is not None else self._layout
        self._drafter.layout = self._layout
        state = None if self._state is None else self._advanced(self._automaton, self._state, path)
        return None if state is None else (self._automaton, state)

    def give_up(self) -> None:
        """Following it takes too much work."""
        self._hints.give_up()
        self.given_up, self._state, self._manners = True, None, iter(())

    def _advanced(self, automaton: Any, state: State, tokens: Iterable[int]) -> State | None:
        try:
            for token in tokens:
                state = automaton.advance(state, token)
        except LimitExceeded:
            self.give_up()
            return None
        except TokenformError:
            return None
        return state
