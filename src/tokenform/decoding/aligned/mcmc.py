"""Markov chain Monte Carlo over accepted texts, with local masking as the proposal.

A chain starts from a locally masked text x.  A step writes `tries` texts y_1..y_M by local masking, side by
side; one of them, y, is picked ∝ w, and the chain moves to it with probability
min(1, Σw_i / (Σw_i − w_y + w_x)), where w are importance weights, Π Z_u·Φ.  A text that runs into a dead end
is a rejected move.
Proof of detailed balance: w_x·q(x) ∝ π(x), so the flow from x to y among the proposals y, y_2..y_M is
∝ q(x)w_x·q(y)w_y·Πq(y_i) / max(w_y + R, w_x + R) with R = Σ_{i ≥ 2} w_i, which is symmetric in x and y.
Source: arXiv 2506.05754, whose chain with restarts is M = 1; Liu 2008, "Monte Carlo strategies", section 5.5:
independent multiple tries.  On twenty random toys the distribution after ten steps is up to 0.34 off with one
try, 0.04 with four: a chain that starts from a text of small weight stays with the first heavy one that it
meets, and meets more.  The paper's other cuts, which rewrite an end of the text, did not pay (`removed.py`).

Cost: `steps` x `tries` + 1 texts a draw; the tries of a step are one batch, as are the chains of one call.
"""

from __future__ import annotations

import math

import numpy as np
from typing_extensions import Unpack

from tokenform.decoding import removed
from tokenform.decoding.aligned.masked import Path, first_paths, masked_paths
from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.results import LogZ, Sample, log_sum
from tokenform.decoding.aligned.sampler import AlignedSampler, Common
from tokenform.decoding.keyed_random import Purpose, fresh_seed, pick, stream
from tokenform.errors import OptionError

TRIES = 4


class MCMC(AlignedSampler):
    """Markov chain Monte Carlo: a valid text that is written anew step by step.

    Each step proposes other texts and takes one or leaves it, so that after many steps the draw
    is one of the model's distribution under the constraint.  Source: arXiv 2506.05754.

    Example:
        >>> tf.generate("It is paid.", choices=["paid", "new"], seed=0, sampler=tf.MCMC(10)).text
        'paid'

    Args:
        steps: k, moves proposed before a draw is taken.
        tries: texts that a step writes side by side.
        cut: is gone, and refused.
        **common: the options that all samplers take (temperature, top_k, top_p, min_p, power, potential,
            batch_size, fast_forward, canonical); see `AlignedSampler`.
    """

    def __init__(
        self, steps: int = 10, *, tries: int | None = None, cut: None = None, **common: Unpack[Common]
    ) -> None:
        super().__init__(**common)
        removed.check(cut=cut)
        tries = TRIES if tries is None else tries
        if steps < 0:
            raise OptionError(f"steps is {steps}; it must be at least 0")
        if tries < 1:
            raise OptionError(f"tries is {tries}; it must be at least 1")
        self.steps, self.tries = steps, tries

    def sample(self, problem: Problem, n: int = 1, *, seed: int | None = None) -> Sample:
        """n draws from n independent chains after `steps` moves; weights are equal."""
        seed = fresh_seed() if seed is None else seed
        before = problem.counts()
        paths, scores, _, estimates, tried = first_paths(problem, n, seed)
        for step in range(self.steps):
            # steps below 2^32 belong to the attempts at a first text
            addresses = [
                (chain, (1 << 32) + step * self.tries + t) for chain in range(n) for t in range(self.tries)
            ]
            proposed = masked_paths(problem, seed, addresses)
            fresh = iter(problem.log_potential([p.tokens for p in proposed if p is not None]).tolist())
            judged = [None if path is None else (path, next(fresh)) for path in proposed]
            estimates += [-math.inf if one is None else one[0].log_mass + one[1] for one in judged]
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
            sum(len(path.tokens) + 1 for path in paths),
        )
        return sample

    def _move(
        self, at: tuple[Path, float], proposed: list[tuple[Path, float]], numbers: np.random.Generator
    ) -> tuple[Path, float]:
        """Where a chain goes: the text and log Φ of one of the proposals, or those that it had."""
        coin = math.log1p(-numbers.random())
        held = at[0].log_mass + at[1]
        ratios = np.array([path.log_mass + score - held for path, score in proposed])  # log w_y / w_x
        if not np.isfinite(ratios).any():
            return at
        index = pick(ratios, numbers.random()) if len(proposed) > 1 else 0
        others = np.append(np.delete(ratios, index), 0.0)  # those left beside, and the chain's own text
        return proposed[index] if coin <= log_sum(ratios) - log_sum(others) else at
