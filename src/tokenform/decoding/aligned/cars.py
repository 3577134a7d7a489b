"""CARS: exact rejection sampling that learns which prefixes are hopeless.

A walk draws a ∝ f(a|u)·θ(ua) where the trie knows u, and from the model itself where it doesn't; a forbidden
token ends the walk, its θ becomes 0, and the next walk starts.  All accepted texts x have the same ratio
f(x)/q(x) = U, so every draw is exactly the target, from the first one on; the rate of acceptance is Z/U and
rises while U falls to Z.
Source: "Constrained adaptive rejection sampling", 2025.

Invariants: a walk's distribution is that of the trie at its start (see `descent`); capping the number of
walks leaves draws exact, stopping within a walk would not.  A potential with an upper bound B is one more
rejection, with chance Φ(x)/B.

`learn` names the special cases:  "masks" (CARS: all forbidden tokens of a visited prefix at once) ·
"rejected" (adaptive rejection: only the token that was refused) · "first" (the first token is masked, the
rest plain) · "none" (plain rejection).  With a predicate, "masks" can only learn what was refused.
Cost: 1 + expected rejections, each of them few tokens long: a walk ends at its first forbidden token.
"""

from __future__ import annotations

import math

import numpy as np
from typing_extensions import Unpack

from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.protocols import Tokens
from tokenform.decoding.aligned.results import Draw, LogZ, Sample, sharper
from tokenform.decoding.aligned.sampler import Common
from tokenform.decoding.aligned.trie import Trie
from tokenform.decoding.aligned.walks import WalkingSampler, Walks
from tokenform.decoding.keyed_random import Purpose, fresh_seed, stream
from tokenform.errors import OptionError, SamplingError

LEARNING = ("masks", "rejected", "first", "none")


class CARS(WalkingSampler):
    """Draws exactly from the model's distribution under the constraint: rejection that learns.

    A draw that runs into a forbidden token is thrown away, and no later one goes there again.  Quick where
    the model often satisfies the constraint by itself.
    Source: "Constrained adaptive rejection sampling", 2025.

    Example:
        >>> tf.generate("It is paid.", choices=["new", "paid"], seed=0, sampler=tf.CARS()).text
        'paid'

    Args:
        learn: "masks", "rejected", "first" or "none".
        trie: a trie to start from (it goes on learning); None starts afresh in each call.
        limit_bytes: bound on a fresh trie's memory.
        explore: prefixes visited beside each walk, those of most uncertain mass, 8 walks' worth in one model
            call.
        lookahead: walks whose model calls are batched; never changes a draw.
        max_attempts: walks for one draw before SamplingError.
        **common: the options that all samplers take (temperature, top_k, top_p, min_p, power, potential,
            batch_size, fast_forward, canonical); see `AlignedSampler`.
    """

    def __init__(
        self,
        *,
        learn: str = "masks",
        trie: Trie | None = None,
        limit_bytes: int = 512 << 20,
        explore: int = 1,
        lookahead: int = 8,
        max_attempts: int = 100_000,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(trie, limit_bytes, explore, lookahead, max_attempts, **common)
        if learn not in LEARNING:
            raise OptionError(f"learn is {learn!r}; it must be one of {', '.join(LEARNING)}")
        if self.potential is not None and self.potential.log_bound is None:
            raise OptionError(
                "CARS can take a potential only if it has an upper bound; give one by log_bound="
            )
        if trie is not None and trie.restricted != (learn == "masks"):
            raise OptionError("this trie was learned with another `learn`; use a fresh one")
        self.learn, self.restricted = learn, learn == "masks"

    def sample(self, problem: Problem, n: int = 1, *, seed: int | None = None) -> Sample:
        """n independent draws from exactly the target; all weights are equal."""
        run = ExactWalks(self, problem, fresh_seed() if seed is None else seed)
        draws = [self._one(run) for _ in range(n)]
        sample = Sample(
            draws, problem.target, exact=True, log_z=run.log_z(), counts=run.counts, trie=run.trie
        )
        if self.learn == "masks" and problem.potential is None:
            sample.certificate = run.trie.certificate()
            sample.log_z = sharper(run.log_z(), sample.certificate)
        return sample

    def fresh(self, problem: Problem) -> Trie:
        trie = super().fresh(problem)
        if self.learn == "first":
            root = problem.root()
            node = trie.visit(problem.full_distributions([root])[0], None, 0, exact=False)
            allowed = problem.masks([root])[0]
            trie.forbid(node, np.flatnonzero(~np.isin(node.ids, allowed)).tolist())
            trie.propagate(node)
        return trie

    def _one(self, run: ExactWalks) -> Draw:
        for _ in range(self.max_attempts):
            draw = run.walk()
            if draw is not None:
                return draw
            if run.no_mass_left:
                raise SamplingError(
                    "the model gives the constraint no mass within the budget and truncation; "
                    "loosen one of them"
                )
        raise SamplingError(
            f"no walk of {self.max_attempts} was accepted (not ruled out: {math.exp(run.log_upper):.2g}); "
            "raise max_attempts, or use SMC, whose cost does not depend on the rate of acceptance"
        )


class ExactWalks(Walks):
    """`walk` gives the next text, or None for a walk that was rejected."""

    reject = True

    def __init__(self, sampler: CARS, problem: Problem, seed: int) -> None:
        super().__init__(sampler, problem, seed)
        self.sampler = sampler
        self.hits = 0  # walks that were accepted

    def walk(self) -> Draw | None:
        """The next walk; None if it was rejected."""
        if self.sampler.learn in ("none", "first"):
            self.trie = self.sampler.fresh(self.problem)  # forgets the walk before
        walk = self.next()
        if walk.tokens is None or not self._potential_allows(walk.tokens):
            return None
        self.hits += 1
        return self.problem.draw(walk.tokens, walk.logf)

    def _potential_allows(self, tokens: Tokens) -> bool:
        potential = self.problem.potential
        if potential is None:
            return True
        assert potential.log_bound is not None
        log_chance = float(self.problem.log_potential([tokens])[0]) - potential.log_bound
        return math.log1p(-stream(self.seed, Purpose.ACCEPTANCE, self.attempt).random()) <= log_chance

    def log_z(self) -> LogZ:
        """Accepted walks over Σ 1/U of the tries that they started from: walk j is accepted with chance
        Z/U_j.

        Each accepted·U_j is unbiased for Z; weighting them by 1/U_j keeps the weights known beforehand.
        """
        uppers = np.array(self.uppers)
        log_scale = float(np.logaddexp.reduce(-uppers)) if len(uppers) else -math.inf
        bound = 0.0 if self.problem.potential is None else float(self.problem.potential.log_bound or 0.0)
        if self.hits == 0:
            return LogZ(-math.inf, math.inf, len(uppers))
        value = math.log(self.hits) - log_scale
        chances = np.minimum(np.exp(value - uppers), 1.0)
        return LogZ(value + bound, float(np.sqrt((chances * (1 - chances)).sum())) / self.hits, len(uppers))
