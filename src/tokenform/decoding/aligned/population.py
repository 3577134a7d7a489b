"""The particles of one run of sequential Monte Carlo; see `smc.py`."""

from __future__ import annotations

import math

import numpy as np

from tokenform.decoding.aligned.problem import Prefix, Problem
from tokenform.decoding.aligned.proposals import Move
from tokenform.decoding.aligned.protocols import Float
from tokenform.decoding.aligned.resampling import Method, resample
from tokenform.decoding.aligned.results import effective_size, log_sum, normalised
from tokenform.decoding.keyed_random import Purpose, stream


class Population:
    """The particles of one run."""

    def __init__(self, problem: Problem, count: int, run: int, seed: int) -> None:
        self.run, self.seed, self.resamplings = run, seed, 0
        self.prefixes: list[Prefix] = [problem.root()] * count
        self.log_weights: Float = np.zeros(count)
        self.logf: Float = np.zeros(count)
        self.factor: Float = np.zeros(count)  # provisional log-score that the weight holds
        self.done = np.zeros(count, dtype=np.bool_)

    @property
    def open(self) -> list[int]:
        """Slots that still need a token."""
        alive = self.log_weights > -np.inf
        slots: list[int] = np.flatnonzero(~self.done & alive).tolist()
        return slots

    def apply(self, problem: Problem, slot: int, move: Move, *, weigh: bool) -> None:
        """Takes a move, and its weight where the particle does not have that yet."""
        if weigh:
            self.log_weights[slot] += move.log_weight
        if move.token is None:
            return
        self.logf[slot] += move.logf
        if move.token == problem.eos:
            self.done[slot] = True
        else:
            self.prefixes[slot] = problem.extend(self.prefixes[slot], move.token)

    def rescore(self, slots: list[int], scores: Float) -> None:
        """Replaces provisional scores."""
        before = self.factor[slots]
        self.log_weights[slots] += np.where(scores == -np.inf, -np.inf, scores - before)
        self.factor[slots] = scores

    def balance(self, step: int, threshold: float, method: Method) -> None:
        """Resamples if the effective size is below threshold·N and somebody still has to go on."""
        count = len(self.log_weights)
        if not self.open or effective_size(self.log_weights) >= threshold * count:
            return
        generator = stream(self.seed, Purpose.RESAMPLING, self.run, step)
        ancestors = resample(normalised(self.log_weights), method, generator)
        self.log_weights[:] = log_sum(self.log_weights) - math.log(count)
        self.prefixes = [self.prefixes[i] for i in ancestors]
        self.logf, self.factor, self.done = self.logf[ancestors], self.factor[ancestors], self.done[ancestors]
        self.resamplings += 1

    @property
    def log_z(self) -> float:
        """log of the mean weight."""
        return log_sum(self.log_weights) - math.log(len(self.log_weights))
