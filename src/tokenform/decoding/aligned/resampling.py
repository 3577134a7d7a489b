"""Resampling: from weighted particles to equally weighted ones.

Each method returns ancestors, int64 `[N]`, in which particle i appears N·w̄_i times on average (unbiased);
they differ in variance: systematic ≤ stratified ≤ multinomial, residual ≤ multinomial (Douc, Cappé, Moulines
2005). Complexity O(N).  Invariant: a particle of weight zero is never an ancestor.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from tokenform.decoding.aligned.protocols import Float, Ids
from tokenform.errors import OptionError

Method = Literal["multinomial", "stratified", "systematic", "residual"]
METHODS = ("multinomial", "stratified", "systematic", "residual")


def resample(weights: Float, method: Method, generator: np.random.Generator) -> Ids:
    """Ancestors for normalised weights, float64 `[N]`."""
    count = len(weights)
    if method == "multinomial":
        return _invert(weights, np.sort(generator.random(count)))
    if method == "stratified":
        return _invert(weights, (np.arange(count) + generator.random(count)) / count)
    if method == "systematic":
        return _invert(weights, (np.arange(count) + generator.random()) / count)
    if method == "residual":
        copies = np.floor(count * weights * (1 + 1e-12)).astype(np.int64)
        kept = np.repeat(np.arange(count), copies)[:count]
        missing = count - len(kept)
        if missing == 0:
            return kept
        rest = np.maximum(count * weights - copies, 0.0)
        return np.concatenate([kept, _invert(rest / rest.sum(), np.sort(generator.random(missing)))])
    raise OptionError(f"resampling is {method!r}; it must be one of {', '.join(METHODS)}")


def _invert(weights: Float, points: Float) -> Ids:
    steps = np.cumsum(weights)
    ancestors = np.searchsorted(steps, points * steps[-1], side="right")
    last = int(np.flatnonzero(weights)[-1])
    return np.asarray(np.minimum(ancestors, last), dtype=np.int64)
