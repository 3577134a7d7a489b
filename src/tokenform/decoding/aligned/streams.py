"""Random numbers that depend on what they are for, not on when they are drawn.

Purpose: the same seed gives the same draws for every batch size and with or without look-ahead.  So a number
is addressed by (seed, purpose, run, step) and never taken from a shared stream whose position depends on
scheduling.

Invariant: two different addresses never share numbers.  Philox (Salmon et al., "Parallel random numbers: as
easy as 1, 2, 3", SC 2011) is a keyed bijection of a 256-bit counter: the address fills the upper three words,
the lowest word counts within the stream.

Cost: about 25 µs to open a stream, so samplers open one a step and read a vector from it.
Rejected: `SeedSequence.spawn`, whose children depend on the order in which they were asked for.
"""

from __future__ import annotations

import secrets
from enum import IntEnum

import numpy as np

from tokenform.decoding.aligned.protocols import Float


class Purpose(IntEnum):
    """What a stream of numbers decides; a part of its address."""

    DESCENT = 1
    PROPOSAL = 2
    RESAMPLING = 3
    SELECTION = 4
    ACCEPTANCE = 5
    CUT = 6


def fresh_seed() -> int:
    """A seed from the operating system, for callers that gave none."""
    return secrets.randbits(63)


def stream(seed: int, purpose: Purpose, run: int = 0, step: int = 0) -> np.random.Generator:
    """The stream at an address.  `seed` is any integer of up to 128 bits, `run` and `step` are
    non-negative.
    """
    low = 0xFFFFFFFFFFFFFFFF
    key = np.array([seed & low, (seed >> 64) & low], dtype=np.uint64)
    counter = np.array([0, step, run, int(purpose)], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def pick(log_weights: Float, uniform: float) -> int:
    """The index drawn ∝ exp(log_weights) by one uniform number; at least one weight must be above -inf.

    Inverse transform: the draw moves little when the weights move little, which is what lets look-ahead
    guess it.
    """
    weights = np.exp(log_weights - log_weights.max())
    steps = np.cumsum(weights)
    index = int(np.searchsorted(steps, uniform * steps[-1], side="right"))
    if index >= len(weights) or weights[index] == 0.0:
        index = int(np.flatnonzero(weights)[-1])
    return index


def log_sum(values: Float) -> float:
    """log Σ exp(values), -inf for none."""
    if len(values) == 0:
        return -np.inf
    top = float(values.max())
    if top == -np.inf:
        return -np.inf
    return top + float(np.log(np.exp(values - top).sum()))
