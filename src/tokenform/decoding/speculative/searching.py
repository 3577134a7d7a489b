"""One short string being decided: the likeliest way to write all of what is left of it.

Purpose: a date, a time, a code of letters and digits.  Token by token a model that would write "7 July 1969"
begins a date with its 7, can't go back, and ends in the year 7774; as a whole other dates are likelier.
Distribution: of greedy sampling alone.  A way to write the string has the model's probability of its tokens
(after mixture, penalties and transforms), and of the quote behind them, whatever follows it in its token.
Invariant: what is decided is a function of the text and the model: no draft and no batch changes it.
Complexity: best first; a way has at most the probability of what is known of it, so a model that is sure
scores one way alone.  After `LIMIT` nodes the likeliest of them is gone on with, token by token.
Source: best-first search with an admissible bound (Hart, Nilsson, Raphael 1968).
Rejected: the same at a temperature (the sum over all ways is not known), and for strings that may go on for
long (their likeliest way is a short one).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tokenform.engine import State

from .choosing import Chosen
from .places import Short
from .tree import ROOT, DraftTree

LIMIT = 48
"""Nodes after which the search goes on below the likeliest one alone."""
_WIDTH = 12  # nodes of a pass up to which others are scored beside what must be
_NEAR = 2.0  # nats below the likeliest within which others are scored beside it
_KIDS = 64  # tokens after a node that are looked at: the likeliest


class _Known(NamedTuple):
    """A scored node: the tokens that close the string there, their log-probabilities, the same under the
    model alone, and the log-probability of the whole."""

    ends: np.ndarray
    scores: np.ndarray
    own: np.ndarray
    total: float


class Search:
    """Args:
    place: where it begins.
    position: tokens of the text before it.
    remaining: tokens that may still be written.
    deepest: most tokens of a path.
    """

    def __init__(self, place: Short, position: int, remaining: int, deepest: int) -> None:
        self.place, self.position = place, position
        self.tree, self.learnt = DraftTree(), dict[int, _Known]()
        self.settled = False
        """Whether the place was met before."""
        self._remaining, self._deepest = remaining, deepest
        self._states: dict[int, State | None] = {ROOT: place.state}
        self._reach, self._own = {ROOT: 0.0}, dict[int, float]()
        self._asked: dict[int, list[np.ndarray]] = {}

    possible, logprobs = True, None

    def begins(self, token: int) -> bool:
        """Nothing else may stand within a string."""
        return True

    def state(self, node: int) -> State | None:
        """The automaton's state at a node; None where no text ends within the budget."""
        if node not in self._states:
            automaton, depth = self.place.automaton, self.tree.depths[node]
            above = self.state(self.tree.parents[node])
            state = None if above is None else automaton.advance(above, self.tree.tokens[node])
            budget = self._remaining - depth
            fits = depth <= self._deepest and budget > 0 and automaton.fits(state, budget)
            self._states[node] = state if fits else None
        return self._states[node]

    def child(self, node: int, token: int) -> int | None:
        """The node after a token; None where the string does not go on so."""
        known, state = self.tree.child(node, token), self.state(node)
        if known is not None or state is None or b'"' in self.place.tokens[token]:
            return known
        return self.tree.add(node, token) if self.place.automaton.allows(state, token) else None

    def asked(self, node: int) -> list[np.ndarray]:
        """The tokens whose log-probabilities at a node are wanted."""
        found = self._asked.get(node)
        if found is None:
            tokens = self.place.automaton.allowed_tokens(self.state(node))
            found = self._asked[node] = [tokens.astype(np.int64)]
        return found

    def learn(self, node: int, scores: Sequence[np.ndarray], own: Sequence[np.ndarray]) -> None:
        """Takes what a pass said at a node: log-probabilities of `asked`, and the model's own."""
        if node in self.learnt or node not in self._reach:
            return
        (tokens,), (found,), (alone,) = self.asked(node), scores, own
        closes = np.array([b'"' in self.place.tokens[token] for token in tokens.tolist()], bool)
        parts = found[closes]
        top = float(parts.max(initial=-math.inf))
        total = top if top == -math.inf else top + math.log(float(np.exp(parts - top).sum()))
        self.learnt[node] = _Known(tokens[closes], parts, alone[closes], self._reach[node] + total)
        onward = np.flatnonzero(~closes & np.isfinite(found))
        best = onward[np.lexsort((tokens[onward], -found[onward]))][:_KIDS]
        for place in best.tolist():
            child = self.tree.add(node, int(tokens[place]))
            self._reach[child] = self._reach[node] + float(found[place])
            self._own[child] = float(alone[place])

    def settle(self) -> Chosen | None:
        """The decision; None while too little is known."""
        best, needed, _, refused = self._searched()
        if needed is not None or best is None:
            return None
        known = self.learnt[best]
        return Chosen(-1, best, known.ends, known.scores, refused)

    def wanted(self, most: int, chain: bool) -> list[int]:
        """Nodes to be scored in the next pass, each after the one that it stands below.

        Args:
            chain: one path alone.
        """
        _, needed, heap, _ = self._searched()
        if needed is None or needed == ROOT:
            return []
        ends = [needed]
        if not chain:
            least = self._reach[needed] - _NEAR
            others = heapq.nsmallest(4, (one for one in heap if -one[0] >= least))
            ends += [node for _, node in others if node not in self.learnt and self.state(node) is not None]
        taken = dict[int, None]()
        for node in ends:
            path = [node]
            while self.tree.parents[path[-1]] != ROOT:
                path.append(self.tree.parents[path[-1]])
            while len(only := self.asked(path[0])[0]) == 1:
                child = self.tree.add(path[0], int(only[0]))
                if self.state(child) is None:
                    break
                path.insert(0, child)
            new = [one for one in reversed(path) if one not in taken]
            if taken and len(taken) + len(new) > _WIDTH:
                break
            taken.update(dict.fromkeys(new[:most]))
        return list(taken)

    def value(self, chosen: Chosen) -> bytes:
        """The bytes of the string's rest, its quote included."""
        return b"".join(self.place.tokens[token] for token in self.tree.path(chosen.leaf)) + b'"'

    def own(self, node: int) -> float:
        """The log-probability of a node's token under the model alone."""
        return self._own[node]

    def own_end(self, chosen: Chosen, end: int) -> float:
        """The same of the token that closes the string."""
        known = self.learnt[chosen.leaf]
        return float(known.own[np.flatnonzero(known.ends == end)[0]])

    def _searched(self) -> tuple[int | None, int | None, list[tuple[float, int]], bool]:
        """(the end of the likeliest way, a node that must be scored before that is known, nodes beside it,
        whether the budget has no room for what may be likelier)."""
        heap, best, total = [(0.0, ROOT)], None, -math.inf
        expanded, refused = 0, -math.inf
        while heap:
            reach, node = -heap[0][0], heap[0][1]
            if total >= reach:
                break
            if self.state(node) is None:
                refused = max(refused, reach)
                heapq.heappop(heap)
                continue
            if node not in self.learnt:
                return best, node, heap[1:], False
            heapq.heappop(heap)
            expanded += 1
            if self.learnt[node].total > total:
                best, total = node, self.learnt[node].total
            reaches = [(-self._reach.get(child, -math.inf), child) for child in self.tree.children(node)]
            kids = sorted(one for one in reaches if -one[0] > total)
            if expanded >= LIMIT:
                heap, kids = [], kids[:1]
            for kid in kids:
                heapq.heappush(heap, kid)
        return best, None, [], refused > total
