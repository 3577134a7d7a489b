"""Markov chain Monte Carlo over accepted texts, with local masking as the proposal.

A chain starts from a locally masked text x.  A step cuts x at a position i, writes a new suffix by local
masking, and moves to the result y with probability min(1, π(y)·q(x|y) / (π(x)·q(y|x))), where
    q(y|x) = Σ_{i ≤ common prefix of x and y} cut_x(i)·Π_{j ≥ i} q_local(y_j | y_<j).
All texts of L are reachable (cut 0), so the chain converges to the target, and each step brings the law
closer.
Source: arXiv 2506.05754.  Cuts: "restart" always 0, where the ratio is that of importance weights, min(1,
w_y/w_x); "uniform" any position; "priority" ∝ ε + entropy of the masked law there, so that suffixes are
rewritten where there was a choice.  Every accepted step leaves a valid text; a suffix that runs into a dead
end is a rejected move.

Invariant: cut_x depends on x alone, so the reverse probability can be computed.  A draw is a chain of its
own.
Cost: `steps` + 1 texts a draw, chains of one call in lockstep.
"""

from __future__ import annotations

import math

import numpy as np

from tokenform.decoding.aligned.masked import Path, first_paths, masked_paths
from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.protocols import Float
from tokenform.decoding.aligned.results import LogZ, Sample
from tokenform.decoding.aligned.sampler import AlignedSampler
from tokenform.decoding.aligned.streams import Purpose, fresh_seed, log_sum, pick, stream
from tokenform.errors import OptionError

CUTS = ("restart", "uniform", "priority")
FLOOR = 0.01  # ε of the priority cut, nats: every position keeps a chance


class MCMC(AlignedSampler):
    """See the module's header.

    Args:
        steps: k, moves proposed before a draw is taken.
        cut: "restart", "uniform" or "priority".
    """

    def __init__(self, steps: int = 10, *, cut: str = "restart", **common: object) -> None:
        super().__init__(**common)  # type: ignore[arg-type]
        if steps < 0:
            raise OptionError(f"steps is {steps}; it must be at least 0")
        if cut not in CUTS:
            raise OptionError(f"cut is {cut!r}; it must be one of {', '.join(CUTS)}")
        self.steps, self.cut = steps, cut

    def sample(self, problem: Problem, n: int = 1, *, seed: int | None = None) -> Sample:
        """n draws from n independent chains after `steps` moves; weights are equal."""
        seed = fresh_seed() if seed is None else seed
        before = problem.counts()
        paths, tried, repeated = first_paths(problem, n, seed)
        scores = problem.log_potential([path.tokens for path in paths])
        weights = [float(path.log_mass.sum() + score) for path, score in zip(paths, scores, strict=True)]
        estimates = [-math.inf if i in repeated else weight for i, weight in enumerate(weights)]
        accepted = 0
        for step in range(self.steps):
            cuts = [self._cut(path, seed, chain, step) for chain, path in enumerate(paths)]
            # steps below 2^32 belong to the attempts at a first text
            addresses = [(chain, (1 << 32) + step) for chain in range(n)]
            proposed = masked_paths(problem, list(zip(paths, cuts, strict=True)), seed, addresses)
            fresh = problem.log_potential([p.tokens for p in proposed if p is not None]).tolist()
            for chain, path in enumerate(proposed):
                if path is None:
                    estimates += [-math.inf] if self.cut == "restart" else []
                    continue
                score = fresh.pop(0)
                if self.cut == "restart":
                    estimates.append(float(path.log_mass.sum()) + score)
                log_ratio = path.log_measure + score - paths[chain].log_measure - float(scores[chain])
                log_ratio += self._log_proposal(path, paths[chain]) - self._log_proposal(paths[chain], path)
                if math.log1p(-stream(seed, Purpose.ACCEPTANCE, chain, step).random()) <= log_ratio:
                    paths[chain], scores[chain] = path, score
                    accepted += 1
        draws = [problem.draw(path.tokens, path.log_measure) for path in paths]
        sample = Sample(
            draws, problem.target, log_z=LogZ.mean(np.array(estimates)), counts=problem.counts() - before
        )
        sample.counts.attempts, sample.counts.tokens = (
            tried + n * self.steps,
            sum(len(path.logf) for path in paths),
        )
        return sample

    def _cut_law(self, path: Path) -> Float:
        """Log-probabilities of the cuts 0..T, float64 `[T + 1]`."""
        length = len(path.logf)
        if self.cut == "restart":
            law = np.full(length, -np.inf)
            law[0] = 0.0
            return law
        weights = np.zeros(length) if self.cut == "uniform" else np.log(path.entropy + FLOOR)
        return np.asarray(weights - log_sum(weights))

    def _cut(self, path: Path, seed: int, chain: int, step: int) -> int:
        return pick(self._cut_law(path), stream(seed, Purpose.CUT, chain, step).random())

    def _log_proposal(self, x: Path, y: Path) -> float:
        """log q(y|x)."""
        common = 0
        for a, b in zip(x.tokens, y.tokens, strict=False):
            if a != b:
                break
            common += 1
        law = self._cut_law(x)
        tails = np.cumsum((y.logf - y.log_mass)[::-1])[::-1]
        return log_sum(law[: common + 1] + tails[: common + 1])
