"""Whether a text ends behind a word or a number, or this gets longer.

Purpose: a number that may have any length ("move north 3", the bare answer to "how many rooms?") may get
longer by any digit, and else only end.  The model that has written all of it goes on with what the
constraint refuses (" steps", a full stop), its end has little probability, and a mask leaves the digits: it
writes 30000000000 to the end of its budget.
Distribution: a word gets longer with the model's probability of all tokens that may lengthen it; its end has
all that is left, what is refused included.
Invariant: only where nothing but a longer word may follow; a text is never cut within what else may come.
Complexity: a look at the allowed tokens of a place where a text may end.
Rejected: counting what is refused at each place where a text may end (`[a-z ]*` would end before "France");
a limit on digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tokenform.engine import State

from .choices import Choices, Ends
from .drafters.spelling import Spelling
from .tree import ROOT

END, LONGER = 0, 1
_WORD = np.array([byte >= 128 or chr(byte).isalnum() or byte == ord("_") for byte in range(256)])
_LONGER = _WORD.copy()
_LONGER[ord(".")] = True


class WordEnd(Choices):
    """See the module's header."""

    rest = END

    def __init__(self, automaton: Any, state: State, spelling: Spelling, eos: frozenset[int]) -> None:
        super().__init__(automaton, state, (b"end", b"longer"), spelling, eos)
        self._written(END, [ROOT])
        self._written(LONGER, [ROOT])

    def begins(self, token: int) -> bool:
        return True

    def stands_behind(self, token: int | None) -> bool:
        """Whether a token, the one before this place, ends within a word; None: none is before it."""
        data = b"" if token is None else self._spelling.tokens[token]
        return bool(data) and bool(_WORD[data[-1]])

    def fits(self, option: int, node: int, budget: int) -> bool:
        if option == END:
            return True  # the end itself takes no token of the budget
        automaton, state = self._automaton, self.state(node)
        longer = map(int, self.ends(node)[LONGER].tokens)
        return budget > 0 and any(automaton.fits(automaton.advance(state, one), budget - 1) for one in longer)

    def ends(self, node: int) -> list[Ends]:
        # not kept: a place may be one of thousands, and its tokens half of the vocabulary
        return [
            Ends(option, tokens)
            for option, tokens in enumerate(_parts(self._automaton, self.state(node), self._eos))
        ]

    def _completing(self, option: int, node: int, allowed: Sequence[int]) -> Sequence[int]:
        return [token for token in allowed if (token in self._eos) == (option == END)]


def word_end(automaton: Any, state: State, spelling: Spelling, eos: frozenset[int]) -> WordEnd | None:
    """What is decided where a text may end, or a word get longer; None where it may not, or something else
    may follow."""
    if not automaton.is_accepting(state) or automaton.is_finished(state):
        return None
    end, longer = _parts(automaton, state, eos)
    if not (len(end) and len(longer) and _LONGER[spelling.firsts[longer]].all()):
        return None
    return WordEnd(automaton, state, spelling, eos)


def _parts(automaton: Any, state: State | None, eos: frozenset[int]) -> tuple[np.ndarray, np.ndarray]:
    """The allowed tokens, int64: those that end the text, and the others."""
    allowed = automaton.allowed_tokens(state).astype(np.int64)
    ends = np.isin(allowed, list(eos))
    return allowed[ends], allowed[~ends]
