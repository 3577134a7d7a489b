"""Resampling: from weighted particles to equally weighted ones.

Each method returns ancestors, int64 `[N]`, in which particle i appears N·w̄_i times on average (unbiased);
they differ in variance: systematic ≤ stratified ≤ multinomial, residual ≤ multinomial (Douc, Cappé, Moulines
2005). Complexity O(N).  Invariant: a particle of weight zero is never an ancestor.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from tokenform.decoding.aligned.protocols import Float, Ids
from tokenform.decoding.keyed_random import invert
from tokenform.errors import OptionError

Method = Literal["multinomial", "stratified", "systematic", "residual"]
METHODS = ("multinomial", "stratified", "systematic", "residual")


def resample(weights: Float, method: Method, generator: np.random.Generator, count: int | None = None) -> Ids:
    """`count` ancestors (None: N) for weights, float64 `[N]`; those of "residual" sum to one."""
    count = len(weights) if count is None else count
    if method == "residual":
        copies = np.floor(count * weights * (1 + 1e-12)).astype(np.int64)
        kept = np.repeat(np.arange(len(weights)), copies)[:count]
        if len(kept) == count:
            return kept
        rest = np.maximum(count * weights - copies, 0.0)
        return np.concatenate([kept, resample(rest, "multinomial", generator, count - len(kept))])
    if method == "multinomial":
        points = np.sort(generator.random(count))
    elif method == "stratified":
        points = (np.arange(count) + generator.random(count)) / count
    elif method == "systematic":
        points = (np.arange(count) + generator.random()) / count
    else:
        raise OptionError(f"resampling is {method!r}; it must be one of {', '.join(METHODS)}")
    places: Ids = invert(np.cumsum(weights), points)
    return places
