"""The particles of one run of sequential Monte Carlo; see `smc.py`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tokenform.decoding.aligned.problem import Prefix, Problem
from tokenform.decoding.aligned.proposals import Move
from tokenform.decoding.aligned.protocols import Float, Tokens
from tokenform.decoding.aligned.resampling import Method, resample
from tokenform.decoding.aligned.results import effective_size, log_sum, normalised
from tokenform.decoding.keyed_random import Purpose, stream


class Finished(NamedTuple):
    """A text that has ended: its log measure and its weight in the run."""

    logf: float
    log_weight: float


class Population:
    """The particles of one run, and the texts that have ended; a slot of weight zero is free.

    Attributes:
        finished: tokens -> what is known of the text.
        steps: moves that were made.
    """

    def __init__(self, problem: Problem, count: int, run: int, seed: int) -> None:
        self.run, self.seed, self.resamplings, self.steps = run, seed, 0, 0
        self.prefixes: list[Prefix] = [problem.root()] * count
        self.log_weights: Float = np.zeros(count)
        self.logf: Float = np.zeros(count)
        self.factor: Float = np.zeros(count)  # provisional log-score that the weight holds
        self.done = np.zeros(count, dtype=np.bool_)
        self.finished: dict[Tokens, Finished] = {}

    @property
    def open(self) -> list[int]:
        """Slots that still need a token."""
        slots: list[int] = np.flatnonzero(~self.done & (self.log_weights > -np.inf)).tolist()
        return slots

    def finish(self, slot: int, log_end: float, logf: float) -> None:
        """Counts the text that ends here.

        Args:
            log_end: what its end multiplies the particle's weight by, log.
            logf: the log measure of the end.
        """
        weight = float(self.log_weights[slot]) + log_end
        if weight == -math.inf:
            return
        tokens = self.prefixes[slot].tokens
        known = self.finished.get(tokens)
        if known is not None:
            weight = float(np.logaddexp(weight, known.log_weight))
        self.finished[tokens] = Finished(float(self.logf[slot]) + logf, weight)

    def apply(self, problem: Problem, slot: int, move: Move, *, weigh: bool) -> None:
        """Takes a move, and its weight where the particle does not have that yet."""
        self.steps += 1
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

    def leave(self) -> None:
        """Counts those that have drawn their end, and frees their slots."""
        for slot in np.flatnonzero(self.done).tolist():
            self.finish(slot, 0.0, 0.0)
            self.log_weights[slot], self.done[slot] = -np.inf, False

    def balance(self, step: int, threshold: float, method: Method) -> None:
        """Resamples those that still have to go on if their effective size is below threshold times the
        number that their share of the weight is due; if that is not one, one goes on with that chance.
        """
        size, weights = len(self.log_weights), self.log_weights
        total = log_sum(weights)
        if total == -math.inf:
            return
        whole = np.logaddexp(total, log_sum(np.array([text.log_weight for text in self.finished.values()])))
        due = size * math.exp(total - whole)
        count = min(max(math.ceil(due), 1), size)
        if due >= 1 and effective_size(weights) >= threshold * count:
            return
        generator = stream(self.seed, Purpose.RESAMPLING, self.run, step)
        if due < 1 and generator.random() >= due:
            self.log_weights = np.full(size, -np.inf)
            return
        ancestors = resample(normalised(weights), method, generator, count)
        self.log_weights = np.full(size, -np.inf)
        self.log_weights[:count] = total - math.log(min(due, 1.0) * count)
        free = [self.prefixes[0]] * (size - count)
        self.prefixes = [self.prefixes[i] for i in ancestors] + free
        for values in (self.logf, self.factor):
            values[:count] = values[ancestors]
        self.resamplings += 1

    @property
    def texts(self) -> tuple[list[Tokens], Float, Float]:
        """The texts that have ended, their log measures and their log weights."""
        columns = np.array(list(self.finished.values()), dtype=np.float64).reshape(-1, 2)
        return list(self.finished), columns[:, 0], columns[:, 1]

    @property
    def log_z(self) -> float:
        """log of the weight of all that has ended, a particle."""
        return log_sum(self.texts[2]) - math.log(len(self.log_weights))
