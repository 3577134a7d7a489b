"""A stand-in for the engine's matcher, over its states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenform.engine import State, TokenAutomaton, fill_masks
from tokenform.errors import TokenRejected


class Matcher:
    """One text of an automaton: tokens accepted so far, and what may follow."""

    def __init__(self, automaton: TokenAutomaton, *, max_tokens: int | None = None) -> None:
        self.automaton = automaton
        self.max_tokens = max_tokens
        self._states: list[State] = [automaton.start]

    def accept_tokens(self, tokens: Sequence[int]) -> None:
        before = len(self._states)
        for token in tokens:
            if self.is_terminated() or not self._allows(token):
                del self._states[before:]
                raise TokenRejected(f"the token {token} is not allowed here")
            self._states.append(self.automaton.advance(self._states[-1], token))

    def validate_tokens(self, tokens: Sequence[int]) -> int:
        taken = 0
        for token in tokens:
            if self.is_terminated() or not self._allows(token):
                break
            self._states.append(self.automaton.advance(self._states[-1], token))
            taken += 1
        self.rollback(taken)
        return taken

    def _allows(self, token: int) -> bool:
        if not 0 <= token < self.automaton.vocabulary.size:
            return False
        left = self._left()
        state = self._states[-1]
        if left is None:
            return self.automaton.allows(state, token)
        mask = self.automaton.mask_within(state, left)
        return bool(mask[token // 32] >> (token % 32) & 1)

    def _left(self) -> int | None:
        return None if self.max_tokens is None else max(self.max_tokens - len(self._states) + 1, 0)

    @property
    def state(self) -> State:
        return self._states[-1]

    @property
    def budget(self) -> int | None:
        return self._left()

    def forced_tokens(self) -> list[int]:
        return self.automaton.forced(self._states[-1])

    def rollback(self, count: int) -> None:
        del self._states[len(self._states) - count :]

    def fork(self) -> Matcher:
        other = Matcher(self.automaton, max_tokens=self.max_tokens)
        other._states = list(self._states)
        return other

    def reset(self) -> None:
        del self._states[1:]

    def fill_mask(self, out: Any, row: int = 0) -> None:
        fill_masks(self._states[-1:], out[row : row + 1], budgets=[self._left()])

    def is_terminated(self) -> bool:
        return self.automaton.is_finished(self._states[-1])
