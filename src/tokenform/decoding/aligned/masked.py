"""Local masking, step by step and in batches: the proposal of MCMC and the control that faithful samplers are
held against.

Each token is drawn from f restricted to its mask.  A text's probability is Π f(a|u)/Z_u over its steps, so
that its importance weight towards the target is w = Π Z_u.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokenform.decoding.aligned.problem import Prefix, Problem, StepDistribution
from tokenform.decoding.aligned.protocols import Float, Tokens
from tokenform.decoding.aligned.results import LogZ, Sample
from tokenform.decoding.aligned.sampler import AlignedSampler, first_of_each
from tokenform.decoding.keyed_random import Purpose, fresh_seed, pick, stream
from tokenform.errors import SamplingError

ATTEMPTS = 100  # restarts of a path that ran into a dead end (a budget, or truncation that empties a mask)


@dataclass(slots=True)
class Path:
    """A finished text.

    Attributes:
        tokens: ids, EOS excluded.
        log_measure: log f(x).
        log_mass: log Π Z_u over its steps, EOS included.
    """

    tokens: Tokens
    log_measure: float
    log_mass: float


def masked_paths(problem: Problem, seed: int, numbers: Sequence[tuple[int, int]]) -> list[Path | None]:
    """Texts by local masking, all in lockstep.

    Args:
        numbers: for each text the (run, step) of its stream.

    Returns a path each, None where it ran into a dead end.
    """
    writers = [_Writer(problem, stream(seed, Purpose.PROPOSAL, *address)) for address in numbers]
    while live := [writer for writer in writers if writer.prefix is not None and not writer.done]:
        distributions = problem.distributions([writer.prefix for writer in live if writer.prefix is not None])
        for writer, distribution in zip(live, distributions, strict=True):
            writer.take(problem, distribution)
    return [writer.path() for writer in writers]


class _Writer:
    def __init__(self, problem: Problem, generator: np.random.Generator) -> None:
        self.generator, self.done = generator, False
        self.prefix: Prefix | None = problem.root()
        self.logf: list[float] = []
        self.log_mass: list[float] = []
        self.tokens: Tokens = self.prefix.tokens

    def take(self, problem: Problem, distribution: StepDistribution) -> None:
        mass = distribution.log_mass
        if mass == -math.inf:
            self.prefix = None
            return
        index = pick(distribution.logf, self.generator.random())
        self.logf.append(float(distribution.logf[index]))
        self.log_mass.append(mass)
        token = int(distribution.ids[index])
        if token == problem.eos:
            self.done = True
        else:
            assert self.prefix is not None
            self.prefix = problem.extend(self.prefix, token)
            self.tokens = self.prefix.tokens

    def path(self) -> Path | None:
        if not self.done:
            return None
        return Path(self.tokens, float(np.array(self.logf).sum()), float(np.array(self.log_mass).sum()))


class Begun(NamedTuple):
    """Texts by local masking.

    Attributes:
        scores: log Φ of each.
        weights: log Π Z_u·Φ of each.
        estimates: the same for an estimate of Z, where a text that needed a second try counts as 0: a mean
            over all tries is too high.
        tried: how many were.
    """

    paths: list[Path]
    scores: Float
    weights: list[float]
    estimates: list[float]
    tried: int


def first_paths(problem: Problem, n: int, seed: int) -> Begun:
    """n texts by local masking."""
    tries: list[tuple[int, int]] = []

    def make(missing: list[tuple[int, int]]) -> list[Path | None]:
        tries.extend(missing)
        return masked_paths(problem, seed, missing)

    out = first_of_each(n, ATTEMPTS, make)
    if len(out) < n:
        raise SamplingError(
            f"local masking ran into a dead end {ATTEMPTS} times; "
            "use a larger max_tokens or less truncation (top_p, top_k)"
        )
    paths, repeated = [out[i] for i in range(n)], {draw for draw, attempt in tries if attempt}
    scores = problem.log_potential([path.tokens for path in paths])
    weights = [path.log_mass + float(score) for path, score in zip(paths, scores, strict=True)]
    estimates = [-math.inf if i in repeated else weight for i, weight in enumerate(weights)]
    return Begun(paths, scores, weights, estimates, len(tries))


class Masked(AlignedSampler):
    """Local masking, token by token, with an importance weight for each draw.

    As fast as `Local`, and means weighted by exp(`log_weight`) are those of the model's distribution under
    the constraint.  Temperature and truncation act before the mask.

    Example:
        >>> tf.generate("It is paid.", choices=["paid", "new"], seed=0, sampler=tf.samplers.Masked()).text
        'paid'

    Args:
        **common: the options that all samplers take (temperature, top_k, top_p, min_p, power, potential,
            batch_size, fast_forward, canonical); see `AlignedSampler`.
    """

    def sample(self, problem: Problem, n: int = 1, *, seed: int | None = None) -> Sample:
        """n draws by local masking; log_weight is log Π Z_u (times Φ)."""
        before = problem.counts()
        begun = first_paths(problem, n, fresh_seed() if seed is None else seed)
        draws = [
            problem.draw(path.tokens, path.log_measure, weight)
            for path, weight in zip(begun.paths, begun.weights, strict=True)
        ]
        log_z = LogZ.mean(np.array(begun.estimates))
        sample = Sample(draws, problem.target, log_z=log_z, counts=problem.counts() - before)
        sample.counts.attempts = begun.tried
        sample.counts.tokens = sum(len(draw.tokens) + 1 for draw in draws)
        return sample
