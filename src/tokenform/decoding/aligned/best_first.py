"""The queue of a best-first search over texts, and what stands in it.

Invariant: entries come off by falling bound; a prefix's children are made one by one, each when the one
before it has come off, for they fall in f.
Complexity: O(log n) an entry.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tokenform.decoding.aligned.phrases import Progress
from tokenform.decoding.aligned.problem import Prefix, Problem, StepDistribution
from tokenform.errors import SamplingError

EXPANSIONS = 1_000_000  # prefixes after which an unbounded search is given up


class Hypothesis(NamedTuple):
    """A prefix with its log measure; `done` once EOS is taken."""

    prefix: Prefix
    logf: float
    progress: Progress
    done: bool = False
    score: float = 0.0  # log Φ: provisional before the end

    @property
    def length(self) -> int:
        """Tokens, EOS included."""
        return len(self.prefix.tokens) + self.done


class Queue:
    """See the module's header.

    Args:
        bound: an upper bound of the score of every text that continues a hypothesis.
        empty: whether the empty text is an answer.
    """

    def __init__(self, problem: Problem, bound: Callable[[Hypothesis], float], empty: bool) -> None:
        self.problem, self.bound, self.empty, self.serial, self.opened = problem, bound, empty, 0, 0
        self._heap: list[tuple[float, int, Hypothesis, Iterator[Hypothesis]]] = []
        self._push(Hypothesis(problem.root(), 0.0, ()), iter(()))

    def open(self, hypothesis: Hypothesis, distribution: StepDistribution) -> None:
        """Adds the children of a prefix."""
        self.opened += 1
        if self.opened > EXPANSIONS:
            raise SamplingError(
                f"the search has opened {EXPANSIONS} prefixes; give a width or a smaller max_tokens"
            )
        # children fall in f, but a finished one is scored by its own length: it goes in by itself
        end = np.flatnonzero(distribution.ids == self.problem.eos)
        if len(end) and (self.empty or hypothesis.prefix.tokens):
            score = float(self.problem.log_potential([hypothesis.prefix.tokens])[0])
            logf = hypothesis.logf + float(distribution.logf[end[0]])
            self._push(Hypothesis(hypothesis.prefix, logf, (), True, score), iter(()))
        order = [
            i
            for i in np.argsort(-distribution.logf, kind="stable").tolist()
            if distribution.ids[i] != self.problem.eos
        ]
        self._push_next(
            Hypothesis(
                self.problem.extend(hypothesis.prefix, int(distribution.ids[i])),
                hypothesis.logf + float(distribution.logf[i]),
                (),
            )
            for i in order
        )

    def pop(self, *, only_open: bool) -> Hypothesis | None:
        """The best entry; None if there is none, or if it is finished and only open ones are wanted."""
        if not self._heap or (only_open and self._heap[0][2].done):
            return None
        _, _, hypothesis, siblings = heapq.heappop(self._heap)
        self._push_next(siblings)
        return hypothesis

    def _push_next(self, siblings: Iterator[Hypothesis]) -> None:
        if (following := next(siblings, None)) is not None:
            self._push(following, siblings)

    def _push(self, hypothesis: Hypothesis, siblings: Iterator[Hypothesis]) -> None:
        self.serial += 1
        heapq.heappush(self._heap, (-self.bound(hypothesis), self.serial, hypothesis, siblings))
