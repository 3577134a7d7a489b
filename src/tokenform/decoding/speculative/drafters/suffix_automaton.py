"""A suffix automaton that grows with its text.

Purpose: the longest suffix of the text that occurred before, and where, in amortised O(1) a token.
Invariant: state 0 is the empty string; `length[s]` is the longest string of state s, `link[s]`
the state of its longest suffix in another state; `end[s]` is the index after an occurrence,
the latest one that is known, never the text's own end.
Complexity: `extend` amortised O(1) plus at most `_REFRESH` links; memory at most 2n states.
Source: Blumer et al. 1985; Hu et al. 2024 (SAM decoding).
Rejected: the first occurrence alone (recent text predicts better); refreshing every link (O(n) a token).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_REFRESH = 8
SEPARATOR = -1


class SuffixAutomaton:
    """Over tokens; `SEPARATOR` ends a document and is never proposed."""

    def __init__(self, tokens: Iterable[int] = ()) -> None:
        self.text: list[int] = []
        self.next: list[dict[int, int]] = [{}]
        self.link: list[int] = [-1]
        self.length: list[int] = [0]
        self.end: list[int] = [0]
        self.last = 0
        for token in tokens:
            self.extend(token)

    def extend(self, token: int) -> None:
        """Appends a token to the text."""
        state, hops = self.last, 0
        while state > 0 and hops < _REFRESH:
            self.end[state] = len(self.text)
            state, hops = self.link[state], hops + 1
        self.text.append(token)
        new = self._state({}, self.length[self.last] + 1, len(self.text))
        at = self.last
        while at >= 0 and token not in self.next[at]:
            self.next[at][token] = new
            at = self.link[at]
        if at < 0:
            self.link[new] = 0
        else:
            below = self.next[at][token]
            if self.length[below] == self.length[at] + 1:
                self.link[new] = below
            else:
                clone = self._state(dict(self.next[below]), self.length[at] + 1, self.end[below])
                self.link[clone] = self.link[below]
                self.link[below] = self.link[new] = clone
                while at >= 0 and self.next[at].get(token) == below:
                    self.next[at][token] = clone
                    at = self.link[at]
        self.last = new

    def _state(self, following: dict[int, int], length: int, end: int) -> int:
        self.next.append(following)
        self.link.append(0)
        self.length.append(length)
        self.end.append(end)
        return len(self.next) - 1

    def step(self, state: int, matched: int, token: int) -> tuple[int, int]:
        """The longest suffix of (the matched string, then token) that the text has: (state, length)."""
        while state > 0 and token not in self.next[state]:
            state = self.link[state]
            matched = self.length[state]
        if token in self.next[state]:
            return self.next[state][token], matched + 1
        return 0, 0

    def before(self) -> tuple[int, int]:
        """The longest proper suffix of the text that occurred earlier: (state, length)."""
        state = max(self.link[self.last], 0)
        return state, self.length[state]

    def continuation(self, state: int, most: int) -> list[int]:
        """What followed an occurrence of the state's strings, up to a separator."""
        start = self.end[state]
        piece = self.text[start : start + most]
        return piece[: piece.index(SEPARATOR)] if SEPARATOR in piece else piece

    def copy(self, state: int, most: int, drafted: Sequence[int]) -> list[int]:
        """The same where the string ends the text and what is `drafted` after it: see `copied`."""
        return copied(self.text, drafted, self.end[state], most)


def copied(text: Sequence[int], drafted: Sequence[int], start: int, most: int) -> list[int]:
    """The `most` tokens from `start` on; where the text and what is drafted after it end, the copy goes on
    with itself: what repeats with a short period is foretold further than the period (Ziv and Lempel 1977).
    """
    piece = list(text[start : start + most])
    piece += drafted[max(start - len(text), 0) : most - len(piece)]
    for i in range(len(piece), most if piece else 0):
        piece.append(piece[i - (len(text) + len(drafted) - start)])
    return piece
