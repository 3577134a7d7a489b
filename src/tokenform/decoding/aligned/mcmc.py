"""Markov chain Monte Carlo over accepted texts: each step proposes the text of a fresh run of particles.

A run of sequential Monte Carlo (`smc`) gives a text, picked ∝ weight, and Ẑ, an unbiased estimate of Z.  A
chain that holds a text and the Ẑ of its run moves to the next run's with probability min(1, Ẑ'/Ẑ).  That is
Metropolis-Hastings on all random numbers of a run, whose target has the text's marginal exactly π, however
few the particles (particle independent Metropolis-Hastings: Andrieu, Doucet, Holenstein 2010, section 4.2).
With one particle it is the chain with restarts of arXiv 2506.05754.

No run depends on another, so all runs of all chains go side by side: a call makes as many passes as its
longest text has tokens, and their Ẑ are independent estimates.

Measured with SmolLM2-135M on ten cities (`benchmarks/zoo.py --parts samplers`), ten steps: texts by local
masking, four a step, are 0.75 off, for "Paris" has a ten-thousandth of what is proposed and three quarters of
the target; runs of four particles 0.03 off, but two stated errors of log Z held in 83 runs of 100; of eight
in 91.  Runs of 16: 0.013 off, as exact draws are, and 99 of 100 (40 years: 97).
Rejected: proposals by a trie that is explored beforehand (with few prefixes known, what is not known is taken
for likely: log Z 0.3 to 1 off).
Cost: (`steps` + 1) x `tries` texts a draw.
"""

from __future__ import annotations

import math

from typing_extensions import Unpack

from tokenform.decoding import removed
from tokenform.decoding.aligned.population import Population
from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.sampler import Common
from tokenform.decoding.aligned.smc import SMC, run_number
from tokenform.decoding.keyed_random import Purpose, stream
from tokenform.errors import OptionError

TRIES = 16


class MCMC(SMC):
    """Markov chain Monte Carlo: a valid text that is written anew step by step.

    Each step proposes another text and takes it or leaves it, so that after many steps the draw is one of the
    model's distribution under the constraint.  Source: Andrieu, Doucet, Holenstein 2010; arXiv 2506.05754.

    Example:
        >>> tf.generate("It is paid.", choices=["paid", "new"], seed=0, sampler=tf.MCMC(10)).text
        'paid'

    Args:
        steps: k, moves proposed before a draw is taken.
        tries: particles of the run that proposes a move; see `SMC`.
        cut: is gone, and refused.
        **common: the options that all samplers take (temperature, top_k, top_p, min_p, power, potential,
            batch_size, fast_forward, canonical); see `AlignedSampler`.
    """

    weighted = False

    def __init__(
        self, steps: int = 10, *, tries: int | None = None, cut: None = None, **common: Unpack[Common]
    ) -> None:
        removed.check(cut=cut)
        tries = TRIES if tries is None else tries
        if steps < 0:
            raise OptionError(f"steps is {steps}; it must be at least 0")
        if tries < 1:
            raise OptionError(f"tries is {tries}; it must be at least 1")
        super().__init__(tries, **common)
        self.steps = steps

    def _chosen_runs(self, problem: Problem, n: int, seed: int) -> tuple[list[Population], list[Population]]:
        """All runs, and for each of n chains the one whose text it holds after `steps` moves."""
        first, current = super()._chosen_runs(problem, n, seed)
        # the attempts at a first run have the numbers below these
        numbers = [run_number(chain, self.max_attempts + k) for k in range(self.steps) for chain in range(n)]
        moves = self._runs(problem, numbers, seed)
        for step in range(self.steps):
            for chain, proposed in enumerate(moves[step * n : (step + 1) * n]):
                coin = math.log1p(-stream(seed, Purpose.ACCEPTANCE, chain, step).random())
                if proposed.log_z > -math.inf and coin <= proposed.log_z - current[chain].log_z:
                    current[chain] = proposed
        return first + moves, current
