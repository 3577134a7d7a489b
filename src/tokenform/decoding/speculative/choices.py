"""The values that may stand at a place of a text, where they are few, as one tree of tokens.

Purpose: what is left of a choice, an enum, a constant or a boolean is decided as a whole (`choosing.py`), so
its values are spelled, and paths that begin alike are shared.
Distribution: a value is written in the tokens that the model's own tokenizer writes it in, after each way to
begin (with a space before it or without); other ways to cut it count nothing, and are not written.  Its end
counts: the closing quote, or whatever may follow a value that has none, alone or at the head of a longer
token.
Invariant: a path is one that the automaton allows; a value that it allows is never left out.
Complexity: one spelling a value and way to begin, once a state; states and ends where they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tokenform.decoding.recent import Recent
from tokenform.engine import State
from tokenform.errors import TokenformError, VocabularyError

from .drafters.spelling import Encode, Spelling
from .tree import ROOT, DraftTree

MOST = 4096
"""Values of one place that are decided as wholes."""

LONGEST = 40
"""Code points of a string that is searched, at most."""

_KEPT = 2048
_SPACE = b" \t\r\n"
_NUMBER = frozenset(b"0123456789.eE+-")


class Ends(NamedTuple):
    """Tokens that complete a value at a node.

    Attributes:
        option: which.
        tokens: their ids, int64.
    """

    option: int
    tokens: np.ndarray


class Choices:
    """See the module's header.

    Args:
        automaton, state: the constraint, and where the value begins or goes on.
        left: what may be left of it (`TokenAutomaton.left`).
        spelling: how the model's tokenizer writes.
        eos: tokens that end the text.

    Attributes:
        options: what may be left of the value, as bytes, sorted.
        tree: the paths, without the tokens that complete a value.
        leaves: the nodes at which each option is completed; empty where no path is allowed.
    """

    def __init__(
        self,
        automaton: Any,
        state: State,
        left: Sequence[tuple[bytes, bool]],
        spelling: Spelling,
        eos: frozenset[int],
    ) -> None:
        self._automaton, self._spelling, self._eos = automaton, spelling, eos
        self.options = [text for text, _ in left]
        self._closed = [closed for _, closed in left]
        self._firsts = {text[:1] for text in self.options}
        self._goes_on: dict[bytes, set[int]] = {}
        self._states: dict[int, State | None] = {ROOT: state}
        self._rests: dict[tuple[int, int], bytes] = {}
        self._ends: dict[int, list[Ends]] = {}
        self.tree = DraftTree()
        self.leaves: list[list[int]] = []
        self._at: dict[int, list[int]] = {}
        gaps = (b"", b" ") if self._may(state, b" ") and b" " not in self._firsts else (b"",)
        for option, text in enumerate(self.options):
            nodes = [node for gap in gaps if (node := self._path(option, gap, text)) is not None]
            self.leaves.append(list(dict.fromkeys(nodes)))
            for node in self.leaves[-1]:
                self._at.setdefault(node, []).append(option)
            for end in range(len(text)):
                self._goes_on.setdefault(text[:end], set()).add(text[end])

    def begins(self, token: int) -> bool:
        """Whether a token at the root holds the beginning of a value; else it is whitespace, or something
        else that may stand there."""
        data = b"" if token in self._eos else self._spelling.tokens[token]
        return data[:1] in self._firsts or (
            b"" not in self._firsts and data.lstrip(_SPACE)[:1] in self._firsts
        )

    def state(self, node: int) -> State | None:
        """The automaton's state at a node; None where it refuses the path."""
        if node not in self._states:
            above, token = self.state(self.tree.parents[node]), self.tree.tokens[node]
            allowed = above is not None and self._automaton.allows(above, token)
            self._states[node] = self._automaton.advance(above, token) if allowed else None
        return self._states[node]

    def fits(self, node: int, budget: int) -> bool:
        """Whether some text is known to end within so many tokens after a node."""
        return budget > 0 and bool(self._automaton.fits(self.state(node), budget))

    def ends(self, node: int) -> list[Ends]:
        """What completes values at a node, for the options whose leaf it is."""
        if node not in self._ends:
            state = self.state(node)
            assert state is not None
            allowed = self._automaton.allowed_tokens(state).tolist()
            self._ends[node] = [
                Ends(one, self._completing(one, node, allowed)) for one in self._at.get(node, ())
            ]
        return self._ends[node]

    def weighed(self, rows: Mapping[int, np.ndarray]) -> dict[bytes, float]:
        """The log-probability of each option, its end included.

        Args:
            rows: at each node that is allowed, the log-probability of each token.
        """
        reach, tree = {ROOT: 0.0}, self.tree
        for node in sorted(rows)[1:]:
            above = tree.parents[node]
            reach[node] = reach[above] + float(rows[above][tree.tokens[node]])
        parts: dict[bytes, list[float]] = {}
        for node in self._at:
            for end in self.ends(node) if node in rows else ():
                scores = [reach[node] + float(rows[node][token]) for token in end.tokens]
                parts.setdefault(self.options[end.option], []).extend(scores)
        return {text: float(np.logaddexp.reduce(np.array(some))) for text, some in parts.items() if some}

    def _may(self, state: State, data: bytes) -> bool:
        try:
            return self._automaton.step_bytes(state, data) is not None
        except TokenformError:
            return False

    def _path(self, option: int, gap: bytes, text: bytes) -> int | None:
        """Adds the path of a value; its leaf, or None where it begins with whitespace alone."""
        tokens, data = self._spelling.encode(gap + text), self._spelling.tokens
        if b"".join(data[token] for token in tokens) != gap + text:
            if gap:
                return None
            raise VocabularyError("a value can't be spelled")  # the text goes on token by token
        if gap and not data[tokens[0]].lstrip(_SPACE):
            return None  # the space is a token: what follows it is another place
        rest = b""
        if self._closed[option]:
            rest = data[tokens[-1]]
            tokens = tokens[:-1]
        node = self.tree.add_path(ROOT, tokens)
        self._rests[option, node] = rest
        return node if self.state(node) is not None else None

    def _completing(self, option: int, node: int, allowed: Sequence[int]) -> np.ndarray:
        tokens, rest = self._spelling.tokens, self._rests[option, node]
        if self._closed[option]:
            found = [t for t in allowed if t not in self._eos and tokens[t].startswith(rest)]
        else:
            text = self.options[option]
            onward = self._goes_on.get(text, set())
            if text and text[-1] in _NUMBER:
                onward = onward | _NUMBER
            found = [t for t in allowed if t in self._eos or (tokens[t] and tokens[t][0] not in onward)]
        return np.array(found, np.int64)


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


class Places:
    """Where values of which there are few begin; for one thread at a time.

    Attributes:
        known: what stands at the states that were asked for last.
    """

    def __init__(self) -> None:
        self.known: Recent[tuple[State | None, Encode], Choices | Short | None] = Recent(_KEPT)

    def at(
        self, automaton: Any, state: State | None, spelling: Spelling, eos: frozenset[int]
    ) -> Choices | Short | None:
        """The values at a state, or what is searched for the likeliest; None where there is nothing to
        decide, or too much."""
        key = state, spelling.encode
        if key in self.known:
            return self.known[key]
        if state is None or automaton.is_finished(state):
            self.known[key] = None
            return None
        try:
            left = automaton.left(state, MOST) if hasattr(automaton, "left") else None
            found: Choices | Short | None = None
            if left is None:
                found = short_string(automaton, state, spelling.tokens)
            elif len(left) > 1:
                found = Choices(automaton, state, left, spelling, eos)
        except TokenformError:  # a limit: the mask tells, or the text goes on token by token
            found = None
        self.known[key] = found
        return found
