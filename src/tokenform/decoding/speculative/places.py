"""What is decided as a whole at a place of a text: a value, a short string, whether the text or a word ends,
whether a bracket stands alone.

Complexity: one look a state; the answers for the last states are cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokenform.decoding.recent import Recent
from tokenform.engine import State
from tokenform.errors import TokenformError

from .choices import Choices
from .drafters.spelling import Encode, Spelling
from .ending import ending
from .opening import opening
from .values import ValueChoices
from .word_end import WordEnd, string_end, word_end

MOST = 4096
"""Values of one place that are decided as wholes."""

LONGEST = 40
"""Code points of a string that is searched, at most."""

_CACHED_PLACES = 2048


@dataclass(frozen=True)
class Short:
    """A place in a string of which at most `LONGEST` characters are left.

    Attributes:
        automaton, state: the constraint, and the place.
        tokens: the bytes of each token.
    """

    automaton: Any
    state: State
    tokens: Sequence[bytes]


def short_string(automaton: Any, state: State, tokens: Sequence[bytes]) -> Short | None:
    """The place, if the rest of a string is short enough to search.  None where it is long, no string, or
    free text (escapes are allowed), which is written token by token."""
    longest = automaton.longest_left(state) if hasattr(automaton, "longest_left") else None
    if longest is None or not 1 < longest <= LONGEST:
        return None
    allowed = automaton.allowed_tokens(state)
    if b"\\" in b"".join(map(tokens.__getitem__, allowed.tolist())):
        return None
    return Short(automaton, state, tokens)


Place = Choices | Short | WordEnd | None
"""What is decided at a state; None: nothing."""


class Places:
    """What is decided as a whole, by state; for one thread at a time.

    Attributes:
        known: the answers for the last states.
    """

    def __init__(self) -> None:
        self.known: Recent[tuple[State | None, Encode], Place] = Recent(_CACHED_PLACES)

    def at(self, automaton: Any, state: State | None, spelling: Spelling, eos: frozenset[int]) -> Place:
        """What is decided at a state; None where there is nothing to decide, or too much."""
        key = state, spelling.encode
        if key in self.known:
            return self.known[key]
        if state is None or automaton.is_finished(state):
            self.known[key] = None
            return None
        try:
            left = automaton.left(state, MOST) if hasattr(automaton, "left") else None
            found: Place = None
            if left is None:
                found = short_string(automaton, state, spelling.tokens)
                found = found or string_end(automaton, state, spelling, eos)
                found = found or ending(automaton, state, spelling, eos)
                found = found or word_end(automaton, state, spelling, eos)
                found = found or opening(automaton, state, spelling, eos)
            elif len(left) > 1:
                found = ValueChoices(automaton, state, left, spelling, eos)
        except TokenformError:  # a limit: the mask tells, or the text goes on token by token
            found = None
        self.known[key] = found
        return found
