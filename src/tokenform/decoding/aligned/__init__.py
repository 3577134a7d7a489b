"""Sampling that stays faithful to the model under a constraint.

Reading order: `protocols` (what is needed of a model and a constraint), `problem` (the target), `results`
(what comes back), then one sampler a file: `masked`, `asap` and `cars` on the `trie`, `rejection_step` and
`awrs`, `smc`, `mcmc`, `beam`.

    sampler = SMC(particles=16)
    problem = generator.problem(prompt, grammar, max_tokens=100, sampler=sampler)
    sample = sampler.sample(problem, n=4, seed=0)
"""

from __future__ import annotations

from tokenform.decoding.aligned.asap import ASAp
from tokenform.decoding.aligned.awrs import AWRS
from tokenform.decoding.aligned.beam import Beam
from tokenform.decoding.aligned.best_span import BestSpan
from tokenform.decoding.aligned.cars import CARS
from tokenform.decoding.aligned.masked import Masked
from tokenform.decoding.aligned.mcmc import MCMC
from tokenform.decoding.aligned.potential import Score
from tokenform.decoding.aligned.smc import SMC
from tokenform.decoding.aligned.trie import Trie
from tokenform.decoding.aligned.trie_file import load_trie, save_trie

__all__ = [
    "AWRS",
    "CARS",
    "MCMC",
    "SMC",
    "ASAp",
    "Beam",
    "BestSpan",
    "Masked",
    "Score",
    "Trie",
    "load_trie",
    "save_trie",
]
