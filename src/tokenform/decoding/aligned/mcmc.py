"""Markov chain Monte Carlo over accepted texts, with local masking as the proposal.

A chain starts from a locally masked text x.  A step cuts x at a position i, writes a new suffix by local
masking, and moves to the result y with probability min(1, π(y)·q(x|y) / (π(x)·q(y|x))), where
    q(y|x) = Σ_{i ≤ common prefix of x and y} cut_x(i)·Π_{j ≥ i} q_local(y_j | y_<j).
All texts of L are reachable (cut 0), so the chain converges to the target, and each step brings the
distribution closer.
Source: arXiv 2506.05754.  Cuts: "restart" always 0, where the ratio is that of importance weights, min(1,
w_y/w_x); "uniform" any position; "priority" ∝ ε + entropy of the masked distribution there, so that suffixes
are rewritten where there was a choice.  Every accepted step leaves a valid text; a suffix that runs into a
dead end is a rejected move.

A restart may write several texts y_1..y_M side by side (`tries`): one of them, y, is picked ∝ w, and the
chain moves to it with probability min(1, Σw_i / (Σw_i − w_y + w_x)).
Proof of detailed balance: w_x·q(x) ∝ π(x), so the flow from x to y among the proposals y, y_2..y_M is
∝ q(x)w_x·q(y)w_y·Πq(y_i) / max(w_y + R, w_x + R) with R = Σ_{i ≥ 2} w_i, which is symmetric in x and y.
(Liu 2008, "Monte Carlo strategies", section 5.5: independent multiple tries; M = 1 is the published chain.)
On twenty random toys the distribution after ten steps is up to 0.34 off with one try, 0.04 with four: a chain
that starts from a text of small weight stays with the first heavy one that it meets, and meets more.

Invariant: cut_x depends on x alone, so the reverse probability can be computed.  A draw is a chain of its
own.
Cost: `steps` x `tries` + 1 texts a draw; the tries of a step are one batch, as are the chains of one call.
"""

from __future__ import annotations

import math

import numpy as np
from typing_extensions import Unpack

from tokenform.decoding.aligned.masked import Path, first_paths, masked_paths
from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.protocols import Float
from tokenform.decoding.aligned.results import LogZ, Sample, log_sum
from tokenform.decoding.aligned.sampler import AlignedSampler, Common
from tokenform.decoding.keyed_random import Purpose, fresh_seed, pick, stream
from tokenform.errors import OptionError

CUTS = ("restart", "uniform", "priority")
TRIES = 4
FLOOR = 0.01  # ε of the priority cut, nats: every position keeps a chance


class MCMC(AlignedSampler):
    """Markov chain Monte Carlo: a valid text that is rewritten step by step.

    Each step proposes another end of the text and takes it or leaves it, so that after many steps the draw
    is one of the model's distribution under the constraint.  Source: arXiv 2506.05754.

    Example:
        >>> tf.generate("It is paid.", choices=["paid", "new"], seed=0, sampler=tf.MCMC(10)).text
        'paid'

    Args:
        steps: k, moves proposed before a draw is taken.
        cut: "restart", "uniform" or "priority".
        tries: texts that a step writes side by side; None is 4 for restarts.  Other cuts have one.
        **common: the options that all samplers take (temperature, top_k, top_p, min_p, power, potential,
            batch_size, fast_forward, canonical); see `AlignedSampler`.
    """

    def __init__(
        self, steps: int = 10, *, cut: str = "restart", tries: int | None = None, **common: Unpack[Common]
    ) -> None:
        super().__init__(**common)
        if steps < 0:
            raise OptionError(f"steps is {steps}; it must be at least 0")
        if cut not in CUTS:
            raise OptionError(f"cut is {cut!r}; it must be one of {', '.join(CUTS)}")
        if tries is None:
            tries = TRIES if cut == "restart" else 1
        if tries < 1 or (tries > 1 and cut != "restart"):
            raise OptionError(f"tries is {tries}; it must be at least 1, and 1 where cut is not 'restart'")
        self.steps, self.cut, self.tries = steps, cut, tries

    def sample(self, problem: Problem, n: int = 1, *, seed: int | None = None) -> Sample:
        """n draws from n independent chains after `steps` moves; weights are equal."""
        seed = fresh_seed() if seed is None else seed
        before = problem.counts()
        paths, scores, _, estimates, tried = first_paths(problem, n, seed)
        for step in range(self.steps):
            cuts = [self._cut(path, seed, chain, step) for chain, path in enumerate(paths)]
            # steps below 2^32 belong to the attempts at a first text
            addresses = [
                (chain, (1 << 32) + step * self.tries + t) for chain in range(n) for t in range(self.tries)
            ]
            heads = [(paths[chain], cuts[chain]) for chain, _ in addresses]
            proposed = masked_paths(problem, heads, seed, addresses)
            fresh = iter(problem.log_potential([p.tokens for p in proposed if p is not None]).tolist())
            judged = [None if path is None else (path, next(fresh)) for path in proposed]
            if self.cut == "restart":
                estimates += [
                    -math.inf if one is None else float(one[0].log_mass.sum()) + one[1] for one in judged
                ]
            for chain in range(n):
                some = [
                    one for one in judged[chain * self.tries : (chain + 1) * self.tries] if one is not None
                ]
                numbers = stream(seed, Purpose.ACCEPTANCE, chain, step)
                moved = self._move((paths[chain], float(scores[chain])), some, numbers)
                paths[chain], scores[chain] = moved
        draws = [problem.draw(path.tokens, path.log_measure) for path in paths]
        sample = Sample(
            draws, problem.target, log_z=LogZ.mean(np.array(estimates)), counts=problem.counts() - before
        )
        sample.counts.attempts, sample.counts.tokens = (
            tried + n * self.steps * self.tries,
            sum(len(path.logf) for path in paths),
        )
        return sample

    def _move(
        self, at: tuple[Path, float], proposed: list[tuple[Path, float]], numbers: np.random.Generator
    ) -> tuple[Path, float]:
        """Where a chain goes: the text and log Φ of one of the proposals, or those that it had."""
        coin = math.log1p(-numbers.random())
        ratios = np.array(  # log of π(y)·q(x|y) / (π(x)·q(y|x)); for restarts w_y / w_x
            [
                path.log_measure + score - at[0].log_measure - at[1]
                + self._log_proposal(path, at[0]) - self._log_proposal(at[0], path)
                for path, score in proposed
            ]
        )  # fmt: skip
        if not np.isfinite(ratios).any():
            return at
        index = pick(ratios, numbers.random()) if len(proposed) > 1 else 0
        others = np.append(np.delete(ratios, index), 0.0)  # those left beside, and the chain's own text
        return proposed[index] if coin <= log_sum(ratios) - log_sum(others) else at

    def _cut_distribution(self, path: Path) -> Float:
        """Log-probabilities of the cuts 0..T, float64 `[T + 1]`."""
        length = len(path.logf)
        if self.cut == "restart":
            distribution = np.full(length, -np.inf)
            distribution[0] = 0.0
            return distribution
        weights = np.zeros(length) if self.cut == "uniform" else np.log(path.entropy + FLOOR)
        return np.asarray(weights - log_sum(weights))

    def _cut(self, path: Path, seed: int, chain: int, step: int) -> int:
        return pick(self._cut_distribution(path), stream(seed, Purpose.CUT, chain, step).random())

    def _log_proposal(self, x: Path, y: Path) -> float:
        """log q(y|x)."""
        common = 0
        for a, b in zip(x.tokens, y.tokens, strict=False):
            if a != b:
                break
            common += 1
        distribution = self._cut_distribution(x)
        tails = np.cumsum((y.logf - y.log_mass)[::-1])[::-1]
        return log_sum(distribution[: common + 1] + tails[: common + 1])
