"""Whether a word ends or gets longer, where the text or string must end soon.

Purpose: a number of any length ("move north 3", the bare answer to "how many rooms?", `pen=3`) may get longer
by any digit, or end.  A model that has written all of it wants to go on with text that the constraint refuses
(" steps", a full stop).  The end has little probability, so a mask leaves the digits: the model writes
30000000000 to the end of its budget.  Likewise a string in which `maxLength` leaves too few characters for
the next word gets fragments ("I would highly,i").
Distribution: a word gets longer with the model's probability of all tokens that lengthen it; its end has all
the rest, refused tokens included.  Temperature and truncation apply to these two as to tokens; then a token
that ends or lengthens the word is drawn.  Greedily a string gets longer where one token has more than its
end.
Invariant: only where a longer word may follow and otherwise the end or one character, or where few characters
are left of a string that stands after a word of text: no other continuation is cut.
Complexity: the allowed tokens of such a place; elsewhere a few bits of its mask.
Rejected: counting what is refused at each place where a text may end (`[a-z ]*` would end before "France");
a limit on digits; a `Choosing` for each such place (69 calls a token of a short string, 60 may be).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenform.decoding.keyed_random import uniform
from tokenform.decoding.samplers.local import Local
from tokenform.engine import State

from .drafters.spelling import WORD, Spelling

_LONGER = WORD.copy()
_LONGER[ord(".")] = True
_NEAR = 16
"""Most remaining code points of a string at which its end is weighed."""
_LARGE = 700.0  # numbers much larger have no exponential
_STREAM = 1 << 42  # of numbers, apart from tokens' and values'


@dataclass(frozen=True, slots=True, eq=False)
class WordEnd:
    """A place where a word may end or get longer; see the module's header.

    Attributes:
        automaton, state: the constraint, and the place.
        spelling: how the model's tokenizer writes.
        eos: tokens that end the text.
        after: of each token, whether it ends within a word (of a string: within a later word than the
            first); the place counts only after such a token.
        quoted: whether a JSON string may end here.
    """

    automaton: Any
    state: State
    spelling: Spelling
    eos: frozenset[int]
    after: np.ndarray
    quoted: bool = False

    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """The allowed tokens, int64: those that end the word, and those that lengthen it."""
        allowed = self.automaton.allowed_tokens(self.state).astype(np.int64)
        firsts = self.spelling.firsts[allowed]
        ends = firsts == ord('"') if self.quoted else ~_LONGER[firsts]
        for token in () if self.quoted else self.eos:
            ends |= allowed == token
        return allowed[ends], allowed[~ends]

    def ends(self, longer: float, likeliest: float, local: Local, key: tuple[int, int, int]) -> bool:
        """Whether it ends.

        Args:
            longer: the probability of all tokens that lengthen the word.
            likeliest: of the likeliest of them.
            key: seed, sequence and position of the draw.
        """
        end = max(1.0 - longer, 0.0)
        if local.greedy and self.quoted:
            longer = likeliest
        if local.greedy or not (longer and end):
            return end >= longer
        scores = np.log([end, longer]) / local.temperature
        least = local.truncation.row_threshold(scores)
        if scores.min() < least:
            return end >= longer
        odds = math.exp(min(scores[1] - scores[0], _LARGE))
        return uniform(*key, stream=_STREAM) * (1.0 + odds) < 1.0


def word_end(automaton: Any, state: State, spelling: Spelling, eos: frozenset[int]) -> WordEnd | None:
    """The place, where a word may get longer or end in one way; None elsewhere."""
    marks = spelling.marks
    allowed = (automaton.mask(state)[marks >> 5] >> (marks & 31)) & 1
    if int(allowed.sum()) > 1:
        return None
    found = WordEnd(automaton, state, spelling, eos, spelling.in_word)
    end, longer = found.parts()
    marked = end[~np.isin(end, list(eos))]
    ways = len(np.unique(spelling.firsts[marked])) + (len(marked) < len(end))
    return found if ways == 1 and len(longer) else None


def string_end(automaton: Any, state: State, spelling: Spelling, eos: frozenset[int]) -> WordEnd | None:
    """The place, where few characters are left of a string that may end; None elsewhere."""
    left = automaton.longest_left(state) if hasattr(automaton, "longest_left") else None
    if left is None or not 0 < left <= _NEAR:
        return None
    found = WordEnd(automaton, state, spelling, eos, spelling.in_next_word, quoted=True)
    return found if all(map(len, found.parts())) else None
