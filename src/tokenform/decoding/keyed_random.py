"""Random numbers keyed on what they decide: the seed, the sequence, the position, the token.

Purpose: a draw depends on nothing but its key, so drafts, batches, devices and the order of requests can't
change a text.  A token is drawn by a race: each token t of probability p_t runs for E_t / p_t, with E_t from
the exponential distribution; the fastest wins with chance p_t.  In logarithms that is the Gumbel-max trick,
argmax of log p_t - log E_t.
Invariant: equal keys give equal numbers, on every device and in every batch (the logarithm up to its last
bit).  The E_t of one key are independent and exponential, so a race over a part of the tokens is a draw from
their distribution.
Complexity: O(tokens evaluated).  Tokens come in blocks of `BLOCK`: the block's least number is known
beforehand, which bounds all of its tokens, so most blocks of a large vocabulary are never evaluated.  By
exponential races: the least of n is exponential of rate n, each of the n is it with equal chance, and the
others exceed it by exponential numbers of their own.
Samplers of whole texts read vectors of numbers: a `stream` for each step of each run and purpose.  Two
addresses never share numbers; opening one takes 25 µs, so a step opens one.
Source: SplitMix64 (Steele, Lea, Flood 2014) for keys; Wellons' `lowbias32` for bits of a token; Gumbel-max
and its top-down construction, Maddison, Tarlow, Minka 2014; for streams Philox (Salmon et al. 2011), a keyed
bijection of a 256-bit counter, whose upper three words are the address.
Rejected: the inverse of the cumulative distribution (over the same seeds, 1 - TV = 0.80 between two
distributions of 128,000 tokens, it draws equal tokens 0.15 of the time, the race 0.75: a rounding, or a draft
model's error, moves all tokens behind it); a generator for each sequence (a rejected draft would have to
rewind it); `SeedSequence.spawn` (its children depend on the order in which they were spawned).
"""

from __future__ import annotations

import hashlib
import secrets
from array import array
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import torch

BLOCK = 128
"""Tokens whose least number is known beforehand; a power of two."""

_MASK = (1 << 64) - 1
_GOLDEN, _FIRST, _SECOND = -0x61C88647, 0x7FEB352D, -0x7B935975  # 32-bit constants, as signed integers
_LEAST, _LEADER = 1 << 30, 1 << 29  # apart from token ids: the streams of blocks


def _mix(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def keyed(*parts: int) -> int:
    """64 bits that depend on all parts and their order."""
    h = 0
    for part in parts:
        h = _mix(h ^ (part & _MASK))
    return h


def stream_seed(seed: int, prompt: Sequence[int]) -> int:
    """The seed of one prompt's draws: equal seeds of different prompts are separate streams."""
    digest = hashlib.blake2b(array("q", prompt).tobytes(), digest_size=8).digest()
    return keyed(seed, int.from_bytes(digest, "little")) >> 1


def uniform(seed: int, sequence: int, position: int, stream: int = 0) -> float:
    """A number in [0, 1), with 53 random bits.

    Args:
        seed: the caller's seed.
        sequence: number of the sequence within the call.
        position: absolute position of the token that is drawn.
        stream: 0 for the token itself; other streams for other decisions.
    """
    return (keyed(seed, sequence, position, stream) >> 11) * (1.0 / (1 << 53))


def cumulated(log_weights: np.ndarray) -> np.ndarray:
    """The sum of the weights up to each, over the largest: float64 [n]; [0] where all weights are zero.

    Args:
        log_weights: their logarithms, float64 [n].
    """
    top = log_weights.max(initial=-np.inf)
    steps: np.ndarray = np.cumsum(np.exp(log_weights - top)) if top > -np.inf else np.zeros(1)
    return steps


def invert(steps: np.ndarray, u: Any) -> Any:
    """Inverse of a cumulative distribution: the first place at which it exceeds a share u of the whole.

    Args:
        steps: cumulated weights, not all zero.
        u: a number in [0, 1), or an array of them.
    Returns:
        int64, a place of positive weight, or one for each number.
    """
    last = np.searchsorted(steps, steps[-1])  # where the whole is reached: a product may be rounded up to it
    return np.minimum(np.searchsorted(steps, u * steps[-1], side="right"), last)


def pick(log_weights: np.ndarray, u: float) -> int:
    """The place that u draws, of weights by their logarithms, one of which is above -inf.

    The draw moves little when the weights move little, so that look-ahead can guess it.
    """
    return int(invert(cumulated(log_weights), u))


class Purpose(IntEnum):
    """What a stream of numbers decides; a part of its address."""

    DESCENT = 1
    PROPOSAL = 2
    RESAMPLING = 3
    SELECTION = 4
    ACCEPTANCE = 5
    CUT = 6


def stream(seed: int, purpose: Purpose, run: int = 0, step: int = 0) -> np.random.Generator:
    """The stream at an address.  `seed` is any integer of up to 128 bits, `run` and `step` are
    non-negative.
    """
    key = np.array([seed & _MASK, (seed >> 64) & _MASK], dtype=np.uint64)
    counter = np.array([0, step, run, int(purpose)], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def fresh_seed() -> int:
    """A seed from the operating system, for calls without one."""
    return secrets.randbits(63)


Key = tuple[int, int]
"""Two signed 32-bit numbers: of one draw."""


def race_key(*parts: int) -> Key:
    """The key of a race; (seed, sequence, position) is that of the race which decides the token there."""
    h = keyed(*parts)
    return ((h & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000, ((h >> 32) ^ 0x80000000) - 0x80000000


def block_numbers(first: Any, second: Any, blocks: Any) -> tuple[Any, Any]:
    """The least number of each block and the place in it of the token that has it.

    Args:
        first, second: a `Key`, or int32 [N, 1] of N keys, of numpy or torch.
        blocks: int32, their numbers: token id // `BLOCK`.
    Returns:
        float64 and int32, broadcast.
    """
    least = _exponential(_bits(first, second, blocks + _LEAST)) / BLOCK
    return least, _bits(first, second, blocks + _LEADER) & (BLOCK - 1)


def token_numbers(first: Any, second: Any, tokens: Any, least: Any, leader: Any) -> Any:
    """E_t, float64, of each token, from int32 ids and the `block_numbers` of each."""
    own = _exponential(_bits(first, second, tokens)) + least
    where = torch.where if isinstance(own, torch.Tensor) else np.where
    return where((tokens & (BLOCK - 1)) == leader, least, own)


def _bits(first: Any, second: Any, numbers: Any) -> Any:
    """32 random bits a number, as int32: two keyed rounds of lowbias32."""
    return _scrambled(_scrambled(numbers * _GOLDEN + first) ^ second)


def _scrambled(x: Any) -> Any:
    x = x ^ ((x >> 16) & 0xFFFF)  # shifts of int32 keep the sign, hence the masks
    x = x * _FIRST
    x = x ^ ((x >> 15) & 0x1FFFF)
    x = x * _SECOND
    return x ^ ((x >> 16) & 0xFFFF)


def _exponential(bits: Any) -> Any:
    """-log u, with u = (bits + 1/2) / 2^32."""
    if isinstance(bits, torch.Tensor):
        return bits.double().add_(2147483648.5).mul_(2.0**-32).log_().neg_()
    return -np.log((bits.astype(np.float64) + 2147483648.5) * 2.0**-32)
