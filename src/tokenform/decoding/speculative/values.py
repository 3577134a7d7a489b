"""The possible values at a place of a text, where they are few.

Purpose: the rest of a choice, an enum, a constant or a boolean is decided as a whole (`choosing.py`).
Distribution: a value may begin with or without a space.  Its end counts: the closing quote, or any text after
a value without one, alone or at the head of a longer token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tokenform.engine import State
from tokenform.errors import TokenformError, VocabularyError

from .choices import SPACE, Choices
from .drafters.spelling import Spelling
from .tree import ROOT

_NUMBER = frozenset(b"0123456789.eE+-")


class ValueChoices(Choices):
    """See the module's header.

    Args:
        left: the possible rests of the value (`TokenAutomaton.left`), sorted.
    """

    def __init__(
        self,
        automaton: Any,
        state: State,
        left: Sequence[tuple[bytes, bool]],
        spelling: Spelling,
        eos: frozenset[int],
    ) -> None:
        super().__init__(automaton, state, [text for text, _ in left], spelling, eos)
        self._closed = [closed for _, closed in left]
        self._firsts = {text[:1] for text in self.options}
        self._goes_on: dict[bytes, set[int]] = {}
        gaps = (b"", b" ") if self._may(state, b" ") and b" " not in self._firsts else (b"",)
        for option, text in enumerate(self.options):
            self._add_option(option, [self._leaf_after(option, gap, text) for gap in gaps])
            for end in range(len(text)):
                self._goes_on.setdefault(text[:end], set()).add(text[end])

    def begins(self, token: int) -> bool:
        data = b"" if token in self._eos else self._spelling.tokens[token]
        return data[:1] in self._firsts or (
            b"" not in self._firsts and data.lstrip(SPACE)[:1] in self._firsts
        )

    def weighed(self, rows: Mapping[int, np.ndarray]) -> dict[bytes, float]:
        """The log-probability of each value, its end included.

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

    def _leaf_after(self, option: int, gap: bytes, text: bytes) -> int | None:
        """The leaf of a value after a gap; None where its first token is only whitespace."""
        try:
            tokens = self._tokens(gap + text)
        except VocabularyError:
            if gap:
                return None
            raise
        if gap and not self._spelling.tokens[tokens[0]].lstrip(SPACE):
            return None  # the space is a token: the value after it is decided at another place
        return self._path(option, tokens, self._closed[option])

    def _completing(self, option: int, node: int, allowed: Sequence[int]) -> Sequence[int]:
        tokens, rest = self._spelling.tokens, self._rests[option, node]
        if self._closed[option]:
            return [t for t in allowed if t not in self._eos and tokens[t].startswith(rest)]
        text = self.options[option]
        onward = self._goes_on.get(text, set())
        if text and text[-1] in _NUMBER:
            onward = onward | _NUMBER
        return [t for t in allowed if t in self._eos or (tokens[t] and tokens[t][0] not in onward)]
