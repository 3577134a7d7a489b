"""Suffix automaton drafts from the text itself and from earlier outputs.

Purpose: the longest match decides what is copied and how much of it: the longer the match,
the longer the draft; a copied token lengthens the match of the next.  Shorter suffixes that continue
otherwise become branches.
Invariant: the text's automaton has seen the committed tokens and nothing else; the datastore is bounded.
Complexity: amortised O(1) a committed token, O(path + draft) a proposal.
Source: Blumer et al. 1985; Hu et al. 2024 (SAM decoding), draft length min(n, 1 + 4 x match); Oliaro et al.
2024 (SuffixDecoding), outputs of earlier requests.
Rejected: an automaton that knows first occurrences alone (recent text predicts better).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from threading import Lock

from ..tree import ROOT, DraftTree
from .base import Budget, Context, Seen, Session, Silent

_REFRESH = 8  # links of the last state whose latest place is kept up to date: all would be O(n) a token
SEPARATOR = -1


class Suffix:
    """Args:
    datastore: token lists of earlier texts.
    tokens: longest draft.
    shortest: matches shorter than this give no draft.
    branches: how many different continuations a tree may have.
    remember: add every finished output to the datastore.
    keep: tokens that the datastore holds at least before its older half is forgotten.

    Memory: 450 bytes a token, of up to 3 x `keep` tokens: 45 MB.
    """

    name = "suffix"

    def __init__(
        self,
        datastore: Iterable[Sequence[int]] = (),
        tokens: int = 32,
        shortest: int = 1,
        branches: int = 3,
        remember: bool = True,
        keep: int = 1 << 15,
    ) -> None:
        self.tokens, self.shortest, self.branches, self.remember = tokens, shortest, branches, remember
        self.keep, self._adding = keep, Lock()
        self.store, self._newer = SuffixAutomaton(), SuffixAutomaton()
        for text in datastore:
            self.add(text)

    def add(self, text: Sequence[int]) -> None:
        """Adds a text to the datastore; sessions at work keep the automaton that they began with."""
        # what is to stay is added to a second automaton meanwhile, so that forgetting costs no pause
        with self._adding:
            if len(self._newer.text) >= self.keep:
                self.store, self._newer = self._newer, SuffixAutomaton()
            stores = [self.store, self._newer][: 1 + (len(self.store.text) >= self.keep)]
            for store in stores:
                store.extend([*text, SEPARATOR])

    def session(self, context: Context) -> Session:
        return _SuffixSession(self, context)


class _SuffixSession(Silent):
    def __init__(self, drafter: Suffix, context: Context) -> None:
        self.drafter = drafter
        self.own, self.store = SuffixAutomaton(context.tokens), drafter.store
        self.output: list[int] = []
        self.match = (0, 0)
        if self.store.text:
            self.match = self.store.step(*self.match, context.tokens[-64:])

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        d, tree, path = self.drafter, DraftTree(), context.path
        own, stored = self.own.before(), self.match
        if path:
            own, stored = self.own.step(*own, path), self.store.step(*stored, path)
        found = [*self._candidates(self.own, *own, path), *self._candidates(self.store, *stored)]
        found.sort(key=itemgetter(0), reverse=True)
        for rank, (matched, tokens) in enumerate(found[: d.branches]):
            longest = 1 + 4 * matched if rank == 0 else 1 + matched
            room = max(min(budget.nodes - len(tree.tokens), budget.depth, d.tokens, longest), 0)
            each = [1 - 0.6 ** (matched + i) for i in range(room)]
            each[:1] = [0.6**rank * one for one in each[:1]]
            tree.add_path(ROOT, tokens[:room], d.name, each)
        return tree

    def _candidates(
        self, automaton: SuffixAutomaton, state: int, matched: int, drafted: Sequence[int] | None = None
    ) -> list[tuple[int, list[int]]]:
        """(match, continuation) of the match and its shorter suffixes, each with another next token.

        Args:
            drafted: what is drafted after the text, where the automaton is the text's own.
        """
        d, out, heads = self.drafter, list[tuple[int, list[int]]](), set[int]()
        while state > 0 and matched >= d.shortest and len(out) < d.branches:
            start = automaton.end[state]
            if drafted is None:
                tokens = automaton.text[start : start + d.tokens]
                if SEPARATOR in tokens:
                    del tokens[tokens.index(SEPARATOR) :]
            else:
                tokens = copied(automaton.text, drafted, start, d.tokens)
            if tokens and tokens[0] not in heads:
                heads.add(tokens[0])
                out.append((matched, tokens))
            state = automaton.link[state]
            matched = automaton.length[state]
        return out

    def observe(self, context: Context, seen: Seen) -> None:
        self.own.extend(seen.committed)
        self.match = self.store.step(*self.match, seen.committed)
        self.output.extend(seen.committed)

    def close(self) -> None:
        if self.drafter.remember and self.output:
            self.drafter.add(self.output)


class SuffixAutomaton:
    """The longest suffix of a text that occurred before, and where, in amortised O(1) a token.

    State 0 is the empty string; `length[s]` is the longest string of state s, `link[s]` the state of its
    longest suffix in another state; `end[s]` is the index after an occurrence, the latest one that is known,
    never the text's own end.  At most 2n states.  `SEPARATOR` ends a document and is never proposed.
    """

    def __init__(self, tokens: Iterable[int] = ()) -> None:
        self.text: list[int] = []
        self.next: list[dict[int, int]] = [{}]
        self.link: list[int] = [-1]
        self.length: list[int] = [0]
        self.end: list[int] = [0]
        self.last = 0
        self.extend(tokens)

    def extend(self, tokens: Iterable[int]) -> None:
        """Appends tokens to the text."""
        text, following, link, length, end = self.text, self.next, self.link, self.length, self.end
        for token in tokens:
            state, hops = self.last, 0
            while state > 0 and hops < _REFRESH:
                end[state] = len(text)
                state, hops = link[state], hops + 1
            text.append(token)
            new, at, below = len(following), self.last, 0
            following.append({})
            length.append(length[at] + 1)
            end.append(len(text))
            link.append(0)
            while at >= 0 and token not in following[at]:
                following[at][token] = new
                at = link[at]
            if at >= 0:
                below = following[at][token]
                if length[below] != length[at] + 1:  # its shorter strings become a state of their own
                    clone = len(following)
                    following.append(dict(following[below]))
                    length.append(length[at] + 1)
                    end.append(end[below])
                    link.append(link[below])
                    link[below] = clone
                    while at >= 0 and following[at].get(token) == below:
                        following[at][token] = clone
                        at = link[at]
                    below = clone
            link[new], self.last = below, new

    def step(self, state: int, matched: int, tokens: Iterable[int]) -> tuple[int, int]:
        """The longest suffix of (the matched string, then tokens) that the text has: (state, length)."""
        following, link, length = self.next, self.link, self.length
        for token in tokens:
            while state > 0 and token not in following[state]:
                state = link[state]
                matched = length[state]
            below = following[state].get(token, 0)
            state, matched = below, matched + 1 if below else 0
        return state, matched

    def before(self) -> tuple[int, int]:
        """The longest proper suffix of the text that occurred earlier: (state, length)."""
        state = max(self.link[self.last], 0)
        return state, self.length[state]


def copied(text: Sequence[int], drafted: Sequence[int], start: int, most: int) -> list[int]:
    """The `most` tokens from `start` on; where the text and what is drafted after it end, the copy goes on
    with itself: what repeats with a short period is foretold further than the period (Ziv and Lempel 1977).
    """
    piece = list(text[start : start + most])
    piece += drafted[max(start - len(text), 0) : most - len(piece)]
    for i in range(len(piece), most if piece else 0):
        piece.append(piece[i - (len(text) + len(drafted) - start)])
    return piece
