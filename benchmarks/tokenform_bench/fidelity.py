"""How far each sampler's distribution is from the target, and what it costs: behind `tokenform evaluate
fidelity`.

Distances are total variation and never guesses; each says how it was found:

- exact: the distribution itself was computed (local masking; ASAp by its trie), or is the target (CARS);
- empirical: between the draws and the enumerated target; `noise` is what as many exact draws would show;
- certificate: a proven upper bound, where the target can't be enumerated;
- none: no bound; there the estimates of log Z of all samplers are held against each other.

Agreement on log Z: each estimate against the exact value, or against the precision-weighted mean of the
*others*, in standard errors.
Invariant: every sampler gets a problem of its own, so that no distribution is paid for by another one.
Rejected: distance to "the set of texts that anybody has drawn", which is not a distance to the target.
"""

from __future__ import annotations

import copy
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tokenform.decoding.aligned.asap import ASAp
from tokenform.decoding.aligned.awrs import AWRS
from tokenform.decoding.aligned.cars import CARS
from tokenform.decoding.aligned.enumeration import (
    ExactDistribution,
    enumerate_target,
    sampling_noise,
    total_variation,
    trie_distribution,
)
from tokenform.decoding.aligned.masked import Masked
from tokenform.decoding.aligned.mcmc import MCMC
from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.protocols import LanguageModel, Tokens
from tokenform.decoding.aligned.results import LogZ, Sample
from tokenform.decoding.aligned.sampler import AlignedSampler
from tokenform.decoding.aligned.smc import SMC
from tokenform.decoding.aligned.wrapped import Metered
from tokenform.errors import LimitExceeded, SamplingError

ENUMERABLE = 20_000  # prefixes up to which a target is enumerated
MOST_FORWARDS = 20_000  # forward passes of one sampler
ROUNDING = 1e-4  # of log Z: distributions in float32 differ that much between batches of other shapes

LEGEND = """\
distance   total variation to the target, 0 to 1; how it is known: exact; empirical (noise: what as many exact
           draws would show); certificate (a proven upper bound); none (more texts than can be enumerated)
log Z, ±   log-probability of the constraint under the model, and its standard error; off: standard errors
           from the exact value, or from what the other samplers say together
ESS        how many equally weighted draws the weighted ones are worth; logprob: mean of a draw
forwards   forward passes of the model a draw; rows: distributions asked of it a draw; evals/step: checks of
           the constraint a token"""
"""What the columns of the table mean."""


@dataclass(frozen=True)
class Row:
    """One sampler's result; costs are means over its draws.

    Attributes:
        agreement: in standard errors of log Z; nan where unknown.
        forwards, rows: forward passes and distributions a draw.
        forwards_per_token: forward passes a token of the draws, ends included.
        evaluations_per_token: of the constraint, a step of whatever took steps (walks, chains, particles).
    """

    sampler: str
    distance: float
    how: str
    noise: float
    log_z: float
    log_z_error: float
    agreement: float
    ess: float
    mean_logprob: float
    forwards: float
    rows: float
    forwards_per_token: float
    evaluations_per_token: float
    seconds: float


@dataclass(frozen=True)
class Fidelity:
    """The table, and what it is about.

    `log_z` and `texts` are None where the target was not enumerated; `gave_up` names the samplers that drew
    nothing within their limits, and why.
    """

    target: str
    draws: int
    log_z: float | None
    texts: int | None
    rows: list[Row]
    gave_up: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def table(self) -> str:
        """The table as text, aligned."""
        head = [
            "sampler",
            "distance",
            "how",
            "noise",
            "log Z",
            "±",
            "off",
            "ESS",
            "logprob",
            "forwards",
            "rows",
            "fwd/token",
            "evals/step",
            "s/draw",
        ]
        body = [
            [
                r.sampler,
                _n(r.distance, 3),
                r.how,
                _n(r.noise, 3),
                _n(r.log_z, 3),
                _n(r.log_z_error, 3),
                _n(r.agreement, 1),
                _n(r.ess, 1),
                _n(r.mean_logprob, 2),
                _n(r.forwards, 2),
                _n(r.rows, 2),
                _n(r.forwards_per_token, 3),
                _n(r.evaluations_per_token, 2),
                _n(r.seconds, 4),
            ]
            for r in self.rows
        ]
        widths = [max(len(row[i]) for row in [head, *body]) for i in range(len(head))]
        lines = [
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in [head, *body]
        ]
        missing = [f"{name} gave up: {why}" for name, why in self.gave_up.items()]
        return "\n".join([f"target: {self.target}", *lines, *missing])

    def plot(self, path: str | Path) -> None:
        """Distance against cost, a labelled point for each sampler; see `fidelity_plot`."""
        from tokenform_bench.fidelity_plot import plot

        plot(self, path)


def _bounded(sampler: ASAp, name: str, most: int, report: Callable[[str], None]) -> ASAp:
    """The same sampler, which learns for so many forward passes at most and tells how far it is."""
    own = copy.copy(sampler)
    own.max_forwards = most if sampler.max_forwards is None else min(most, sampler.max_forwards)
    own.report = lambda walks, distance: report(f"{name}: {walks} walks, distance at most {distance:.3f}")
    return own


def default_samplers(**common: Any) -> dict[str, AlignedSampler]:
    """Each sampler at several settings of what it costs."""
    out: dict[str, AlignedSampler] = {
        "local masking": Masked(**common),
        "ASAp": ASAp(**common),
        "ASAp(until=0.05)": ASAp(until=0.05, **common),
    }
    out["CARS"] = CARS(max_attempts=5000, **common)
    out["AWRS"] = AWRS(always_reject=True, **common)
    out.update({f"SMC({n})": SMC(n, **common) for n in (5, 20)})
    out["SMC-AWRS(20)"] = SMC(20, weights="rejection", **common)
    out.update({f"MCMC({k})": MCMC(k, **common) for k in (3, 10)})
    return out


def evaluate_fidelity(
    model: LanguageModel | Callable[[], LanguageModel],
    constraint: Any,
    samplers: Mapping[str, AlignedSampler] | None = None,
    *,
    prompt: Sequence[int] = (),
    max_tokens: int | None = None,
    draws: int = 200,
    seed: int = 0,
    limit: int = ENUMERABLE,
    max_forwards: int | None = MOST_FORWARDS,
    report: Callable[[str], None] = lambda name: None,
) -> Fidelity:
    """Runs each sampler for `draws` draws of the same target and measures it.

    Args:
        model: a language model; or a function that makes one, called for each sampler: a model keeps what it
            was asked, so that of those who share it only the first to ask pays.
        samplers: by name; those of one call must have the same transforms, power and potential.
        limit: prefixes up to which the target is enumerated; 0 never.
        max_forwards: forward passes after which a sampler gives up, a half of them for what ASAp learns
            before its first draw; None for no bound.
        report: called with each sampler's name before it runs, and now and then with how far it is.
    A sampler that gives up (SamplingError) has no row; `gave_up` says so.
    Raises:
        SamplingError: every sampler gave up.
    """
    samplers = default_samplers() if samplers is None else samplers
    first = next(iter(samplers.values()))
    fresh = model if callable(model) else lambda: model
    reference = first.bind(fresh(), constraint, prompt, max_tokens)
    report("enumerating the target")
    exact = _enumerated(reference, limit)
    found: dict[str, tuple[Problem, Sample, float]] = {}
    gave_up: dict[str, str] = {}
    for name, sampler in samplers.items():
        report(name)
        if isinstance(sampler, ASAp) and max_forwards is not None:
            sampler = _bounded(sampler, name, max_forwards // 2, report)
        counted = Metered(fresh(), name, max_forwards, report)
        problem = sampler.bind(counted, constraint, prompt, max_tokens)
        start = time.perf_counter()
        try:
            sample = sampler.sample(problem, draws, seed=seed)
        except SamplingError as error:
            gave_up[name] = str(error)
            continue
        found[name] = (problem, sample, time.perf_counter() - start)
    if not found:
        raise SamplingError(f"every sampler gave up; the first said: {next(iter(gave_up.values()))}")
    estimates = {name: sample.log_z for name, (_, sample, _) in found.items() if sample.log_z is not None}
    rows = [
        _row(name, samplers[name], problem, sample, seconds, exact, _agreement(name, estimates, exact))
        for name, (problem, sample, seconds) in found.items()
    ]
    texts = None if exact is None else len(exact.log_measure)
    return Fidelity(reference.target, draws, None if exact is None else exact.log_z, texts, rows, gave_up)


def _enumerated(problem: Problem, limit: int) -> ExactDistribution | None:
    if limit <= 0:
        return None
    try:
        return enumerate_target(problem, limit=limit)
    except LimitExceeded:
        return None


def _row(
    name: str,
    sampler: AlignedSampler,
    problem: Problem,
    sample: Sample,
    seconds: float,
    exact: ExactDistribution | None,
    agreement: float,
) -> Row:
    count = len(sample.draws)
    distance, how, noise = _distance(sampler, problem, sample, exact)
    log_z = sample.log_z or LogZ(math.nan, math.nan, 0)
    tokens = sum(len(draw.tokens) + 1 for draw in sample.draws)
    return Row(
        name,
        distance,
        how,
        noise,
        log_z.value,
        log_z.error,
        agreement,
        sample.ess,
        float(np.mean([draw.logprob for draw in sample.draws])),
        sample.counts.forwards / count,
        sample.counts.rows / count,
        sample.counts.forwards / tokens,
        sample.counts.evaluations / max(sample.counts.tokens, 1),
        seconds / count,
    )


def _distance(
    sampler: AlignedSampler, problem: Problem, sample: Sample, exact: ExactDistribution | None
) -> tuple[float, str, float]:
    if sample.exact:
        return 0.0, "exact", 0.0
    if exact is None:
        return (
            (sample.certificate.distance, "certificate", 0.0)
            if sample.certificate is not None
            else (math.nan, "none", math.nan)
        )
    target = exact.probabilities
    known = sample.trie is None or sample.trie.restricted  # the trie's tokens are those of the masks
    if isinstance(sampler, ASAp | Masked) and problem.constraint.exact and known:
        return total_variation(target, trie_distribution(problem, sample.trie)), "exact", 0.0
    count = len(sample.draws)
    seen = Counter(draw.tokens for draw in sample.draws)
    return (
        total_variation(target, {x: c / count for x, c in seen.items()}),
        "empirical",
        sampling_noise(target, count),
    )


def kl_divergence(p: dict[Tokens, float], q: dict[Tokens, float]) -> float:
    """KL(p‖q) in nats; inf where q is 0 and p is not."""
    total = 0.0
    for x, mass in p.items():
        if mass > 0:
            other = q.get(x, 0.0)
            if other == 0.0:
                return math.inf
            total += mass * math.log(mass / other)
    return total


def _agreement(name: str, estimates: Mapping[str, LogZ], exact: ExactDistribution | None) -> float:
    mine = estimates.get(name)
    if mine is None or not math.isfinite(mine.error):
        return math.nan
    if exact is not None:
        return _off(mine.value - exact.log_z, mine.error)
    others = [e for other, e in estimates.items() if other != name and math.isfinite(e.error) and e.error > 0]
    if not others:
        return math.nan
    precision = np.array([e.error**-2 for e in others])
    mean = float((precision * np.array([e.value for e in others])).sum() / precision.sum())
    return _off(mine.value - mean, math.hypot(mine.error, float(precision.sum()) ** -0.5))


def _off(difference: float, error: float) -> float:
    """A difference in standard errors; an error of 0 is a value known up to rounding."""
    return difference / max(error, ROUNDING)


def _n(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"
