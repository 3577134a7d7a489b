"""Samplers, what they learn and what they say about their draws: `tf.samplers`.

`Local` draws token by token; the others draw whole texts, each from the distribution that it names.
"""

from __future__ import annotations

from tokenform.decoding import Estimates, Local
from tokenform.decoding.aligned import (
    AWRS,
    CARS,
    MCMC,
    SMC,
    ASAp,
    Beam,
    BestSpan,
    Masked,
    Score,
    Trie,
    load_trie,
    save_trie,
)

__all__ = [
    "AWRS",
    "CARS",
    "MCMC",
    "SMC",
    "ASAp",
    "Beam",
    "BestSpan",
    "Estimates",
    "Local",
    "Masked",
    "Score",
    "Trie",
    "load_trie",
    "save_trie",
]
