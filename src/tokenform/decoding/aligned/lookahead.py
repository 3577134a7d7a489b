"""Fetching the laws that coming walks will need in one batch, without changing what they do.

ASAp and CARS are sequential: each walk changes the trie that the next one sees.  But a walk's random numbers
are known beforehand (they depend on its number alone), and the trie changes little from one walk to the next,
so where the next k walks will go can be guessed on the present trie.  The guesses run side by side, one model
call a level, and fill the problem's cache of laws; then the real walks run, one by one, and mostly find
theirs.

Invariant: nothing but the cache is touched, so draws are the same for every k.
Cost: wrong guesses are forwards of rows that may not be used.  Rejected: walking k times on a frozen trie and
merging: the draws would depend on k.
"""

from __future__ import annotations

import math
from collections.abc import Generator

from tokenform.decoding.aligned.descent import Numbers
from tokenform.decoding.aligned.problem import Prefix, Problem, StepLaw
from tokenform.decoding.aligned.streams import Purpose, pick, stream
from tokenform.decoding.aligned.trie import Node, Trie

Guess = Generator[Prefix, StepLaw, None]


def prefetch(problem: Problem, trie: Trie, seed: int, attempts: range, *, reject: bool) -> None:
    """Fills the cache of laws for the walks of these numbers.  Only for exact constraints; others are left
    alone.
    """
    if not (problem.constraint.exact and trie.restricted):
        return
    guesses = [_guess(problem, trie, seed, attempt, reject) for attempt in attempts]
    waiting: list[tuple[Guess, Prefix]] = []
    for guess in guesses:
        if (prefix := next(guess, None)) is not None:
            waiting.append((guess, prefix))
    while waiting:
        laws = problem.laws([prefix for _, prefix in waiting], masked=False)
        still: list[tuple[Guess, Prefix]] = []
        for (guess, _), law in zip(waiting, laws, strict=True):
            try:
                still.append((guess, guess.send(law)))
            except StopIteration:
                continue
        waiting = still


def _guess(problem: Problem, trie: Trie, seed: int, attempt: int, reject: bool) -> Guess:
    """Mirrors `descent.descend` on the present trie; yields the prefixes that are not in it."""
    numbers = Numbers(stream(seed, Purpose.DESCENT, attempt))
    prefix = problem.root()
    parent: Node | None = None
    node = trie.root
    index = 0
    while True:
        if node is None:
            law = yield prefix
            promised = trie.bound(parent, index)
            if reject and math.log1p(-numbers.uniform()) > law.log_mass - promised:
                return
            ids, weights, total = law.ids, law.logf, law.log_mass
        else:
            ids, weights, total = node.ids, node.log_weights(), node.log_theta
        if total == -math.inf:
            return
        index = pick(weights, numbers.uniform())
        if ids[index] == problem.eos:
            return
        prefix = problem.extend(prefix, int(ids[index]))
        parent, node = node, (None if node is None else node.children.get(index))
