"""What every aligned sampler returns: weighted draws, an estimate of log Z, counts and, where there is one, a
certificate.

Invariant: the draws are properly weighted.  With w = exp(log_weight), E[w·g(x)] = c·E_target[g(x)] for one
constant c; where the sampler says that its draws are exact, every log_weight is 0.

Rejected: one result class for each sampler; the caller should be able to swap samplers without touching his
code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tokenform.decoding.aligned.protocols import Float, Tokens

if TYPE_CHECKING:
    from tokenform.decoding.aligned.trie import Trie


@dataclass(frozen=True, slots=True)
class Draw:
    """One finished text.

    Attributes:
        text: the text; bytes that are not UTF-8 are replaced.
        tokens: its ids, EOS excluded.
        logprob: log P(tokens, EOS) under the model, temperature and truncation applied, natural log.
        log_weight: log importance weight towards the target, up to one constant for the whole sample.
    """

    text: str
    tokens: Tokens
    logprob: float
    log_weight: float = 0.0


ROUNDED = 1e-6  # nats: a smaller error is none where a model's float32 is rounded
LARGEST_ERROR = 1.0  # nats: a greater standard error is none that so few, so uneven estimates could know


@dataclass(frozen=True, slots=True)
class LogZ:
    """An estimate of log Z, Z = Σ over accepted texts of the model's mass (times potential), with its error.

    Attributes:
        value: log of the estimate of Z.  The estimate is unbiased for Z, not for log Z.
        error: standard error of `value`: the spread of the estimates over √runs, or, where they are too few
            to show it, what a log-normal distribution with the variance of their logs has for it, if that is
            more.  inf: the estimates can't tell it (one run, or a standard error of more than one nat).
        runs: independent estimates behind it.
    """

    value: float
    error: float
    runs: int

    @staticmethod
    def mean(log_estimates: Float, log_shares: Float | None = None) -> LogZ:
        """The mean of independent unbiased estimates of Z, given as logs (-inf stands for 0).

        Args:
            log_shares: what each counts by, known before it was made; None for all alike.
        """
        count = len(log_estimates)
        if count == 0:
            return LogZ(-math.inf, math.inf, 0)
        shares = np.full(count, 1 / count) if log_shares is None else normalised(log_shares)
        with np.errstate(divide="ignore"):
            value = log_sum(log_estimates + np.log(shares))
        size = 1 / float((shares**2).sum())  # so many of equal shares tell as much
        if count < 2 or size < 2 or value == -math.inf:
            return LogZ(value, math.inf, count)
        off = np.exp(log_estimates - value) - 1
        error = math.sqrt(float((shares**2 * off**2).sum()) * size / (size - 1))
        error = max(error, _log_normal_error(log_estimates, shares, size))
        # the spread is an estimate too: wider by its own standard error, which is great where few estimates
        # are far off, and for few runs (`benchmarks/zoo.py --parts samplers`: two errors hold in 95 of 100)
        moment = float((shares * off**2).sum())
        kurtosis = max(float((shares * off**4).sum()) / max(moment**2, ROUNDED**4), 3.0)
        error *= 1 + math.sqrt((kurtosis - 1) / (4 * size)) + 2 / (size - 1)
        error = max(error, ROUNDED)
        return LogZ(value, error if error <= LARGEST_ERROR else math.inf, count)


def _log_normal_error(log_estimates: Float, shares: Float, size: float) -> float:
    """The standard error of the log of their mean, were they log-normal; 0 where their own spread can be
    trusted.

    A mean of exp(x), x normal of variance s^2, needs exp(s^2 / 2 + s) draws and more (Chatterjee, Diaconis
    2018), so the mean of exp(2 x), of which the spread is made, needs exp(2 s^2 + 2 s): with fewer the rare
    great ones are missed, and nothing in the sample shows it.  Below s = 1 the greater of both is taken:
    where the mean is low by chance, so is the spread, and two errors of it alone hold in 90 of 100 runs (20
    estimates, s = 1).
    """
    finite = log_estimates > -math.inf
    part = float(shares[finite].sum())
    if finite.sum() < 2 or part <= 0 or size * part <= 1:
        return 0.0
    of, logs = shares[finite] / part, log_estimates[finite]
    mean = float((of * logs).sum())
    variance = float((of * (logs - mean) ** 2).sum()) * size * part / (size * part - 1)
    if variance > 1 and math.log(size * part) >= 2 * variance + 2 * math.sqrt(variance):
        return 0.0
    log_moment = variance - math.log(part)  # of E[w^2] / E[w]^2; zeros count as what they are
    if log_moment <= 0:
        return 0.0
    return float(np.logaddexp(0.0, (log_moment + math.log(-math.expm1(-log_moment)) - math.log(size)) / 2))


@dataclass(frozen=True, slots=True)
class Certificate:
    """Proven bounds: lower ≤ Z ≤ upper, and total variation between the sampler's distribution and the target
    ≤ distance.

    Attributes:
        log_lower: log of the mass of the accepted texts that are known.
        log_upper: log of the mass that is not yet ruled out.
    """

    log_lower: float
    log_upper: float

    @property
    def distance(self) -> float:
        """1 - lower/upper, in [0, 1]."""
        if self.log_lower == -math.inf:
            return 1.0
        return max(0.0, -math.expm1(self.log_lower - self.log_upper))


def sharper(estimate: LogZ, bounds: Certificate) -> LogZ:
    """The estimate kept inside proven bounds; their midpoint, with half their width as error, where that is
    tighter.
    """
    half = (bounds.log_upper - bounds.log_lower) / 2
    if half < estimate.error:
        return LogZ(bounds.log_lower + half, max(half, ROUNDED), estimate.runs)
    return LogZ(min(max(estimate.value, bounds.log_lower), bounds.log_upper), estimate.error, estimate.runs)


@dataclass(slots=True)
class Counts:
    """Counts of work: for a sample, the difference between two readings of the counters.

    Attributes:
        forwards, rows: forward passes, and next-token distributions they computed.
        evaluations: of the constraint.
        tokens: steps taken by walks, chains and particles, ends included.
        attempts: texts begun (SMC: runs).
        resamplings: of particles.
    """

    forwards: int = 0
    rows: int = 0
    evaluations: int = 0
    tokens: int = 0
    attempts: int = 0
    resamplings: int = 0

    def __sub__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) - getattr(other, name) for name in self.__slots__))


@dataclass(slots=True)
class Sample:
    """The draws of one call and the estimates about them.

    Attributes:
        draws: in the order drawn.
        target: the distribution aimed at, in words.
        exact: True if each draw has exactly the target distribution.
        log_z: estimate of log Z, or None where the sampler gives none.
        certificate: bounds on Z and the distance, or None.
        counts: the work done by this call.
        trie: of the learning samplers, to start from next time, to save, or to twist SMC with; else None.

    """

    draws: list[Draw]
    target: str
    exact: bool = False
    log_z: LogZ | None = None
    certificate: Certificate | None = None
    counts: Counts = field(default_factory=Counts)
    trie: Trie | None = None

    @property
    def weights(self) -> Float:
        """Normalised importance weights, float64 `[n]`."""
        return normalised(np.array([draw.log_weight for draw in self.draws], dtype=np.float64))

    @property
    def ess(self) -> float:
        """Effective sample size 1/Σw̄²."""
        return effective_size(np.array([draw.log_weight for draw in self.draws], dtype=np.float64))


def log_sum(values: Float) -> float:
    """log Σ exp(values), -inf for none."""
    if len(values) == 0:
        return -np.inf
    top = float(values.max())
    if top == -np.inf:
        return -np.inf
    return top + float(np.log(np.exp(values - top).sum()))


def normalised(log_weights: Float) -> Float:
    """Weights that sum to one; all zero if every weight is zero."""
    total = log_sum(log_weights)
    if total == -math.inf:
        return np.zeros_like(log_weights)
    weights: Float = np.exp(log_weights - total)
    return weights


def effective_size(log_weights: Float) -> float:
    """1/Σw̄² of the normalised weights, 0 if every weight is zero (Kong, Liu, Wong 1994)."""
    weights = normalised(log_weights)
    squares = float((weights**2).sum())
    return 1.0 / squares if squares > 0 else 0.0
