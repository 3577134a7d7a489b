"""Decides one short string: the likeliest way to write the rest of it.

Purpose: a date, a time, a code of letters and digits.  Token by token a model that would write "7 July 1969"
begins a date with its 7, can't go back, and ends in the year 7774; as a whole other dates are likelier.
Distribution: of greedy sampling only.  A path has the model's probability of its tokens (after mixture,
penalties and transforms), and of the quote after them, whatever follows it in its token.
Invariant: the decision is a function of the text and the model: no draft and no batch changes it.
Complexity: best first; the scored part of a path bounds its probability, so a confident model scores one path
alone.  After `LIMIT` nodes the search goes on below the likeliest of them, token by token.
Source: best-first search with an admissible bound (Hart, Nilsson, Raphael 1968).
Rejected: the same at a temperature (the sum over all paths is not known), and for long strings (their
likeliest path is a short one).
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
_WIDTH = 12  # most nodes of a pass with others beside those that must be scored
_NEAR = 2.0  # nats below the likeliest within which others are scored beside it
_KIDS = 64  # the likeliest tokens after a node, which are its children


class _Known(NamedTuple):
    """A scored node: the tokens that close the string there, their log-probabilities, these under the model
    alone, and the log-probability of the whole string."""

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
        self.value_begins = False
        """Whether the string certainly begins here."""
        self._remaining, self._deepest = remaining, deepest
        self._states: dict[int, State | None] = {ROOT: place.state}
        self._reach, self._own = {ROOT: 0.0}, dict[int, float]()
        self._tokens_to_score: dict[int, list[np.ndarray]] = {}

    possible, logprobs = True, None

    def begins(self, token: int) -> bool:
        """Always: nothing else is allowed in a string."""
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
        """The node after a token; None where the string can't have it."""
        known, state = self.tree.child(node, token), self.state(node)
        if known is not None or state is None or b'"' in self.place.tokens[token]:
            return known
        return self.tree.add(node, token) if self.place.automaton.allows(state, token) else None

    def tokens_to_score(self, node: int) -> list[np.ndarray]:
        """The tokens to score at a node."""
        found = self._tokens_to_score.get(node)
        if found is None:
            tokens = self.place.automaton.allowed_tokens(self.state(node))
            found = self._tokens_to_score[node] = [tokens.astype(np.int64)]
        return found

    def learn(self, node: int, scores: Sequence[np.ndarray], own: Sequence[np.ndarray]) -> None:
        """Takes a pass's log-probabilities of `tokens_to_score(node)`, and the model's own."""
        if node in self.learnt or node not in self._reach:
            return
        (tokens,), (scores_here,), (own_scores,) = self.tokens_to_score(node), scores, own
        closes = np.array([b'"' in self.place.tokens[token] for token in tokens.tolist()], bool)
        parts = scores_here[closes]
        top = float(parts.max(initial=-math.inf))
        total = top if top == -math.inf else top + math.log(float(np.exp(parts - top).sum()))
        self.learnt[node] = _Known(tokens[closes], parts, own_scores[closes], self._reach[node] + total)
        onward = np.flatnonzero(~closes & np.isfinite(scores_here))
        best = onward[np.lexsort((tokens[onward], -scores_here[onward]))][:_KIDS]
        for place in best.tolist():
            child = self.tree.add(node, int(tokens[place]))
            self._reach[child] = self._reach[node] + float(scores_here[place])
            self._own[child] = float(own_scores[place])

    def decide(self) -> Chosen | None:
        """The decision; None while too little is known."""
        best, needed, _, refused = self._searched()
        if needed is not None or best is None:
            return None
        known = self.learnt[best]
        return Chosen(-1, best, known.ends, known.scores, refused)

    def nodes_to_score(self, most: int, chain: bool) -> list[int]:
        """Nodes for the next pass, each after its parent.

        Args:
            chain: one path alone.
        """
        _, unscored, heap, _ = self._searched()
        if unscored is None or unscored == ROOT:
            return []
        ends = [unscored]
        if not chain:
            least = self._reach[unscored] - _NEAR
            others = heapq.nsmallest(4, (one for one in heap if -one[0] >= least))
            ends += [node for _, node in others if node not in self.learnt and self.state(node) is not None]
        nodes = dict[int, None]()
        for node in ends:
            path = [node]
            while self.tree.parents[path[-1]] != ROOT:
                path.append(self.tree.parents[path[-1]])
            while len(only := self.tokens_to_score(path[0])[0]) == 1:
                child = self.tree.add(path[0], int(only[0]))
                if self.state(child) is None:
                    break
                path.insert(0, child)
            new = [one for one in reversed(path) if one not in nodes]
            if nodes and len(nodes) + len(new) > _WIDTH:
                break
            nodes.update(dict.fromkeys(new[:most]))
        return list(nodes)

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
        """(the end of the likeliest path, a node that must be scored first, other nodes, whether a likelier
        path may exceed the budget)."""
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
            children = sorted(one for one in reaches if -one[0] > total)
            if expanded >= LIMIT:
                heap, children = [], children[:1]
            for kid in children:
                heapq.heappush(heap, kid)
        return best, None, [], refused > total
