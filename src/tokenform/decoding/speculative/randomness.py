"""Counter-based randomness keyed on (seed, sequence, position).

Purpose: the draw at a position depends on nothing but its key, so speculation, batching
and the order of requests can't change a text.
Invariant: equal keys give equal numbers, on every machine.
Source: SplitMix64 finaliser (Steele, Lea, Flood 2014), used as a hash of the key.
Rejected: a generator per sequence, advanced by each draw: a draft that is rejected would
have to rewind it.
"""

from __future__ import annotations

import numpy as np

_MASK = (1 << 64) - 1


def _mix(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def uniform(seed: int, sequence: int, position: int, stream: int = 0) -> float:
    """A number in [0, 1), with 53 random bits.

    Args:
        seed: the caller's seed.
        sequence: number of the sequence within the call.
        position: absolute position of the token that is drawn.
        stream: 0 for the token itself; other streams for a verifier's own decisions.
    """
    h = 0
    for part in (seed, sequence, position, stream):
        h = _mix(h ^ (part & _MASK))
    return (h >> 11) * (1.0 / (1 << 53))


def draw(law: np.ndarray, u: float) -> int:
    """Inverse of the cumulative law at `u`: the least token whose cumulative mass exceeds it.

    Args:
        law: float64 [V], non-negative; need not be normalised.
        u: number in [0, 1).
    Returns:
        A token of positive mass.
    """
    cumulative = np.cumsum(law)
    total = cumulative[-1]
    token = int(np.searchsorted(cumulative, u * total, side="right"))
    if token >= len(law) or law[token] <= 0.0:  # rounding at the upper end
        token = int(np.flatnonzero(law > 0.0)[-1])
    return token
