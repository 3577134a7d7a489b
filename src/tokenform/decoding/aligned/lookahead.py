"""Fetching the distributions that coming walks and particles will need in one batch, without changing what
they do.

ASAp and CARS are sequential: each walk changes the trie that the next one sees.  But a walk's random numbers
are known beforehand (they depend on its number alone), and the trie changes little from one walk to the next,
so where the next k walks will go can be guessed on the present trie.  The guesses run side by side, one model
call a level, and fill the problem's cache of distributions; then the real walks run, one by one, and mostly
find theirs.

Particles go side by side, and a model call that one of them needs can carry what the others will need: along
distributions that are known already (those of forced bytes come early) the expected number of particles that
take each token is known too.

Invariant: nothing but the cache is touched, so draws are the same for every k.
Cost: wrong guesses are forwards of rows that may not be used.  Rejected: walking k times on a frozen trie and
merging: the draws would depend on k.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tokenform.decoding.aligned.descent import Descent, walk_numbers
from tokenform.decoding.aligned.problem import Prefix, Problem
from tokenform.decoding.aligned.rejection_step import run_steps

EXPECTED = 0.5  # particles at a prefix from which on its distribution is asked for beforehand
BESIDE = 32  # prefixes that are asked for beforehand in one call


def prefetch(descent: Descent, seed: int, attempts: range) -> None:
    """Fills the cache of distributions for the walks of these numbers."""
    guesses = [replace(descent, learn=False).way(walk_numbers(seed, attempt)) for attempt in attempts]
    run_steps(guesses, lambda _, prefixes: descent.distributions(prefixes))


def likely(problem: Problem, crowd: Mapping[Prefix, int]) -> list[Prefix]:
    """Prefixes without a known distribution where half a particle or more of the crowd is expected to
    come."""
    if not problem.constraint.exact or all(problem.known_measure(p) is not None for p in crowd):
        return []
    found: list[Prefix] = []
    waiting: list[tuple[Prefix, float]] = [(prefix, float(count)) for prefix, count in crowd.items()]
    while waiting and len(found) < BESIDE:
        prefix, count = waiting.pop(0)
        logf = problem.known_measure(prefix)
        if logf is None:
            if prefix not in crowd:
                found.append(prefix)
            continue
        distribution = problem.distribution_of(problem.candidates([prefix])[0], logf)
        if distribution.log_mass == -math.inf:
            continue
        expected = count * np.exp(distribution.logf - distribution.log_mass)
        for i in np.flatnonzero(expected >= EXPECTED).tolist():
            if distribution.ids[i] != problem.eos:
                waiting.append((problem.extend(prefix, int(distribution.ids[i])), float(expected[i])))
    return found
