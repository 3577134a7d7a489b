"""The walks of one call through a trie, and the options of the samplers that learn by them: ASAp, AWRS, CARS.

Each walk changes the trie that the next one sees.  But a walk's random numbers are known beforehand (they
depend on its number alone), and the trie changes little from one walk to the next, so where the next k walks
will go is guessed on the present trie.  The guesses run side by side, one model call a level, and fill the
problem's cache of distributions; then the real walks run, one by one, and mostly find theirs.

Invariant: walk k draws by the numbers of (seed, k), whatever was fetched for it beforehand.
Cost: wrong guesses are rows that may not be used.  Rejected: walking k times on a frozen trie and merging:
the draws would depend on k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from typing_extensions import Unpack

from tokenform.decoding.aligned.descent import Descent, Walk, walk_numbers
from tokenform.decoding.aligned.explore import EVERY, explore
from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.protocols import Float
from tokenform.decoding.aligned.rejection_step import Step, run_steps, two_loops
from tokenform.decoding.aligned.results import Counts
from tokenform.decoding.aligned.sampler import AlignedSampler, Common
from tokenform.decoding.aligned.trie import Trie
from tokenform.errors import OptionError


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
    def hopeless(self) -> bool:
        """True once nothing is left that could be accepted."""
        return self.log_upper == -math.inf

    @property
    def counts(self) -> Counts:
        """The work of the call so far."""
        counts = self.problem.counts() - self._before
        counts.attempts, counts.tokens = self.attempt, self.visited
        return counts
