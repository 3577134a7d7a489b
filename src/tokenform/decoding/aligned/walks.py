"""The walks of one call through a trie, and the options of the samplers that learn by them: ASAp, AWRS, CARS.

Each walk changes the trie that the next one sees.  But a walk's random numbers are known beforehand (they
depend on its number alone), and the trie changes little from one walk to the next, so where the next k walks
will go is guessed on the present trie.  The guesses run side by side, one model call a level, and fill the
problem's cache of distributions; then the real walks run, one by one, and mostly find theirs.

Between walks some prefixes are visited that no walk has come to yet, most uncertain mass first (`explore`).
U - Lo is the sum, over prefixes that the trie promises mass but has not visited, of their mass f(u)·θ(u).
Walks shrink it where they happen to go; this visits the largest terms directly, many in one model call, so
that the certificate and the bounds improve at the price of rows of a batch, not of more forward passes.

Invariant: walk k draws by the numbers of (seed, k), whatever was fetched for it beforehand.  Exploring only
lowers θ, so ASAp's certificate and CARS's exactness are untouched; it depends on the trie alone, so draws
stay the same for any batch size.
Cost: wrong guesses are rows that may not be used.
Complexity of exploring: a best-first search that opens at most `OPENED` visited nodes, O(|C(u)|) each.
Rejected: walking k times on a frozen trie and merging: the draws would depend on k; exploring siblings of the
walk's own path: after a few walks the largest terms lie elsewhere.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from typing_extensions import Unpack

from tokenform.decoding.aligned.descent import Descent, Walk, allowed, walk_numbers
from tokenform.decoding.aligned.problem import Prefix, Problem
from tokenform.decoding.aligned.protocols import Float
from tokenform.decoding.aligned.rejection_step import Step, run_steps, two_loops
from tokenform.decoding.aligned.results import Counts
from tokenform.decoding.aligned.sampler import AlignedSampler, Common
from tokenform.decoding.aligned.trie import Trie, TrieNode
from tokenform.errors import OptionError

OPENED = 256  # visited nodes looked into at a time
EVERY = 8  # walks between two explorations


class WalkingSampler(AlignedSampler):
    """Base of ASAp, AWRS and CARS; their options are described there."""

    restricted, bounded = True, True  # distributions are those of the candidates; θ is to be an upper bound
    step: Callable[[Float, np.random.Generator], Step] = staticmethod(two_loops)

    def __init__(
        self,
        trie: Trie | None,
        limit_bytes: int,
        explore: int,
        lookahead: int,
        max_attempts: int,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(**common)
        if self.bounded and self.power < 1:
            raise OptionError(
                f"power is {self.power}; {type(self).__name__} needs at least 1, else steps have more mass "
                "than 1 (use SMC)"
            )
        self.trie, self.limit_bytes, self.max_attempts = trie, limit_bytes, max_attempts
        self.explore, self.lookahead = explore, lookahead

    def fresh(self, problem: Problem) -> Trie:
        """A trie that has learned nothing yet."""
        return Trie(problem, limit_bytes=self.limit_bytes, restricted=self.restricted)


class Walks:
    """The walks of one call.

    Attributes:
        attempt: how many were made.
        visited: prefixes whose distribution they looked at.
        uppers: log U of the trie that each started from.
        ahead: walks whose model calls are batched.
    """

    reject = False  # see `descent.py`

    def __init__(self, sampler: WalkingSampler, problem: Problem, seed: int) -> None:
        if sampler.trie is not None:
            sampler.trie.belongs_to(problem)
        self.problem, self.seed = problem, seed
        self.trie = sampler.trie if sampler.trie is not None else sampler.fresh(problem)
        self._step = sampler.step
        self._explored, self.ahead = sampler.explore * EVERY, sampler.lookahead
        self._before = problem.counts()
        self.attempt, self.visited = 0, 0
        self.uppers: list[float] = []

    def next(self) -> Walk:
        """The next walk; the trie learns from it."""
        descent = Descent(self.problem, self.trie, self.reject, self._step)
        if self.attempt % EVERY == 0:
            explore(self.problem, self.trie, self._explored)
        if self.ahead > 1 and self.attempt % self.ahead == 0:
            self._prefetch(descent)
        self.uppers.append(self.log_upper)
        walk = descent.walk(walk_numbers(self.seed, self.attempt))
        self.trie.shrink()
        self.attempt += 1
        self.visited += walk.visited
        return walk

    def _prefetch(self, descent: Descent) -> None:
        """Fills the cache of distributions for the walks to come."""
        coming = range(self.attempt, self.attempt + self.ahead)
        guesses = [replace(descent, learn=False).way(walk_numbers(self.seed, k)) for k in coming]
        run_steps(guesses, lambda _, prefixes: descent.distributions(prefixes))

    @property
    def log_upper(self) -> float:
        """log U of the trie."""
        return 0.0 if self.trie.root is None else self.trie.root.log_theta

    @property
    def no_mass_left(self) -> bool:
        """True once nothing is left that could be accepted."""
        return self.log_upper == -math.inf

    @property
    def counts(self) -> Counts:
        """The work of the call so far."""
        counts = self.problem.counts() - self._before
        counts.attempts, counts.tokens = self.attempt, self.visited
        return counts


def explore(problem: Problem, trie: Trie, count: int) -> None:
    """Visits up to `count` prefixes of largest uncertain mass.  Does nothing for predicates (their
    distributions aren't masked), but for those that say that they are `cheap`.
    """
    exact = problem.constraint.exact
    may = exact or getattr(problem.constraint, "cheap", False)
    if count < 1 or trie.root is None or not (may and trie.restricted):
        return
    found: list[tuple[TrieNode, int, Prefix]] = []
    for parent, index in _frontier(problem, trie.root, count):
        before = _prefix_of(problem, parent)
        if exact or allowed(problem, trie, parent, before, [index])[0]:
            found.append((parent, index, problem.extend(before, int(parent.ids[index]))))
        else:
            trie.propagate(parent)
    distributions = problem.distributions([prefix for _, _, prefix in found], masked=exact) if found else []
    for (parent, index, _), distribution in zip(found, distributions, strict=True):
        trie.visit(distribution, parent, index, exact=exact)
        trie.propagate(parent)


def _frontier(problem: Problem, root: TrieNode, count: int) -> list[tuple[TrieNode, int]]:
    """The unvisited children of largest f(u)·θ(u), best first."""
    found: list[tuple[TrieNode, int]] = []
    # (-log of the uncertain mass, tie-break, log f(u) of the node, node, index of an unvisited child or -1)
    heap: list[tuple[float, int, float, TrieNode, int]] = [(0.0, 0, 0.0, root, -1)]
    serial = opened = 0
    while heap and len(found) < count:
        _, _, above, node, index = heapq.heappop(heap)
        if index >= 0:
            found.append((node, index))
            continue
        opened += 1
        if opened > OPENED:
            continue
        for mass, path, child, place in _parts(problem, node, above, count):
            serial += 1
            heapq.heappush(heap, (-mass, serial, path, child, place))
    return found


def _parts(
    problem: Problem, node: TrieNode, above: float, count: int
) -> Iterator[tuple[float, float, TrieNode, int]]:
    """What the uncertain mass of a node splits into: visited children and the largest unvisited ones."""
    for index, child in sorted(node.children.items()):
        path = above + float(node.logf[index])
        if child.log_known < child.log_theta:
            share = child.log_theta + math.log(-math.expm1(child.log_known - child.log_theta))
            yield path + share, path, child, -1
    weights = node.log_weights().copy()
    weights[list(node.children)] = -np.inf
    end = node.find(problem.eos)
    if end is not None:
        weights[end] = -np.inf
    best = np.argpartition(-weights, count)[:count] if len(weights) > count else np.arange(len(weights))
    for index in np.sort(best).tolist():
        if weights[index] > -math.inf:
            yield above + float(weights[index]), 0.0, node, index


def _prefix_of(problem: Problem, node: TrieNode) -> Prefix:
    tokens: list[int] = []
    while node.parent is not None:
        tokens.append(int(node.parent.ids[node.index]))
        node = node.parent
    prefix = problem.root()
    for token in reversed(tokens):
        prefix = problem.extend(prefix, token)
    return prefix
