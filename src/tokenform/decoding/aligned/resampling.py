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
    """`count` ancestors (None: N) for normalised weights, float64 `[N]`."""
    count = len(weights) if count is None else count
    if method == "multinomial":
        return invert(np.cumsum(weights), np.sort(generator.random(count)))
    if method == "stratified":
        return invert(np.cumsum(weights), (np.arange(count) + generator.random(count)) / count)
    if method == "systematic":
        return invert(np.cumsum(weights), (np.arange(count) + generator.random()) / count)
    if method == "residual":
        copies = np.floor(count * weights * (1 + 1e-12)).astype(np.int64)
        kept = np.repeat(np.arange(len(weights)), copies)[:count]
        missing = count - len(kept)
        if missing == 0:
            return kept
        rest = np.maximum(count * weights - copies, 0.0)
        return np.concatenate([kept, invert(np.cumsum(rest), np.sort(generator.random(missing)))])
    raise OptionError(f"resampling is {method!r}; it must be one of {', '.join(METHODS)}")
