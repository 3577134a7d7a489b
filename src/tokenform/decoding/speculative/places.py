"""What is decided as a whole at the places of a text: a value, a short string, whether the text ends or a
word in it, whether a bracket stands alone.

Complexity: one look a state; what was found is kept for the states that were asked for last.
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

_KEPT = 2048


@dataclass(frozen=True)
class Short:
    """A place within a string of which little is left.

    Attributes:
        automaton, state: the constraint, and the place.
        tokens: the bytes of each token.
    """

    automaton: Any
    state: State
    tokens: Sequence[bytes]


def short_string(automaton: Any, state: State, tokens: Sequence[bytes]) -> Short | None:
    """The place, where the rest of a string is to be searched; None where it is long, or no string, or one in
    which anything may stand (an escape, say): such a string is text, and texts are written token by token."""
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
    """Where something is decided as a whole; for one thread at a time.

    Attributes:
        known: what stands at the states that were asked for last.
    """

    def __init__(self) -> None:
        self.known: Recent[tuple[State | None, Encode], Place] = Recent(_KEPT)

    def at(self, automaton: Any, state: State | None, spelling: Spelling, eos: frozenset[int]) -> Place:
        """What is decided at a state, or what is searched for the likeliest; None where there is nothing to
        decide, or too much."""
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
