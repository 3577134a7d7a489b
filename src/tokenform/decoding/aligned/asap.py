"""ASAp: sampling with approximate expected futures.

Every draw walks the trie with a ∝ f(a|u)·θ(ua) and what it visits sharpens θ for the next one.  The first
draw is local masking; the distribution moves to the target as the trie covers the accepted texts, with a
certificate on the way: total variation ≤ 1 - Lo/U.  Each draw also carries its importance weight f(x)/q(x),
so that weighted means are right from the first draw on.
Source: Park et al., "Grammar-aligned decoding", NeurIPS 2024; the certificate and the weights are ours (see
`trie`).

Invariants: warpers act on p before θ; a dead end gets θ = 0 and the walk starts again; the trie belongs to
one problem.
Cost: as many distributions as new prefixes; walks inside the trie cost no forward pass at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from typing_extensions import Unpack

from tokenform.decoding.aligned.descent import Walk
from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.results import Draw, LogZ, Sample, sharper
from tokenform.decoding.aligned.sampler import Common
from tokenform.decoding.aligned.trie import Trie
from tokenform.decoding.aligned.walks import WalkingSampler, Walks
from tokenform.decoding.keyed_random import fresh_seed
from tokenform.errors import OptionError, SamplingError

REPORT_EVERY = 32  # walks after which learning is reported


class ASAp(WalkingSampler):
    """Draws that come closer to the model's distribution with each one, and a proof of how close they are.

    The first draw is local masking; what was visited corrects the next.  The total variation is bounded by
    `result.estimates.distance`.  Source: Park et al., "Grammar-aligned decoding", NeurIPS 2024.

    Example:
        >>> sampler = tf.ASAp(until=0.05)
        >>> len(tf.generate("Is it paid?", choices=["yes", "no"], n=20, sampler=sampler))
        20

    Args:
        until: learn, before the first draw is handed out, until the certificate's distance is at most this.
        max_learning, max_forwards: walks and forward passes spent on that; if they don't suffice, the draws
            are made and the certificate says how far.
        report: told now and then what was learnt: (walks, distance).
        trie: a trie to start from (it goes on learning); None starts afresh in each call.
        limit_bytes: bound on a fresh trie's memory.
        explore: prefixes visited beside each walk, those of most uncertain mass, 8 walks' worth in one model
            call; 0 is the algorithm of the paper.
        lookahead: walks whose model calls are batched; never changes a draw.
        max_attempts: dead ends in a row before SamplingError.
        **common: the options that all samplers take (temperature, top_k, top_p, min_p, power, potential,
            batch_size, fast_forward, canonical); see `AlignedSampler`.
    """

    takes_potential = False

    def __init__(
        self,
        *,
        until: float | None = None,
        max_learning: int = 10_000,
        max_forwards: int | None = None,
        report: Callable[[int, float], None] | None = None,
        trie: Trie | None = None,
        limit_bytes: int = 512 << 20,
        explore: int = 1,
        lookahead: int = 8,
        max_attempts: int = 1000,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(trie, limit_bytes, explore, lookahead, max_attempts, **common)
        if until is not None and not 0 <= until <= 1:
            raise OptionError(f"until is {until}; a distance is in [0, 1]")
        self.until, self.max_learning = until, max_learning
        self.max_forwards, self.report = max_forwards, report

    def sample(self, problem: Problem, n: int = 1, *, seed: int | None = None) -> Sample:
        """n draws in the order in which the trie learned from them; `trie` of the sample holds what was
        learned.
        """
        run = _WeightedWalks(self, problem, fresh_seed() if seed is None else seed)
        if self.until is not None:
            self._learn(run, self.until)
        else:
            run.ahead = min(run.ahead, n)
        draws: list[Draw] = []
        failures = 0
        while len(draws) < n:
            walk = run.walk()
            if walk.tokens is not None:
                draws.append(problem.draw(walk.tokens, walk.logf, walk.log_weight))
                failures = 0
                continue
            failures += 1
            if failures > self.max_attempts or run.no_mass_left:
                raise SamplingError(
                    f"no accepted text was found in {failures} walks: the model gives the constraint no mass "
                    "within the budget; use a larger max_tokens or less truncation (top_p, top_k)"
                )
        # a trie with less mass left gives weights of less variance: a walk counts by 1/U, known before it
        log_z = LogZ.mean(np.array(run.estimates), -np.array(run.uppers))
        sample = Sample(draws, problem.target, False, log_z, None, run.counts, run.trie)
        if problem.potential is None and problem.power >= 1:
            sample.certificate = run.trie.certificate()
            sample.log_z = sharper(log_z, sample.certificate)
        return sample

    def _learn(self, run: _WeightedWalks, until: float) -> None:
        """Walks until the certificate's distance is small enough, or no more may be spent."""
        while run.attempt < self.max_learning:
            distance = run.trie.certificate().distance
            if run.attempt % REPORT_EVERY == 0 and self.report is not None:
                self.report(run.attempt, distance)
            spent = run.counts.forwards
            if distance <= until or (self.max_forwards is not None and spent >= self.max_forwards):
                return
            run.walk()


class _WeightedWalks(Walks):
    """With the estimates of Z (0 for a dead end)."""

    def __init__(self, sampler: ASAp, problem: Problem, seed: int) -> None:
        super().__init__(sampler, problem, seed)
        self.estimates: list[float] = []

    def walk(self) -> Walk:
        """The next walk; its weight is with the potential."""
        walk = self.next()
        if walk.tokens is not None and self.problem.potential is not None:
            walk.log_weight += float(self.problem.log_potential([walk.tokens])[0])
        self.estimates.append(-math.inf if walk.tokens is None else walk.log_weight)
        return walk
