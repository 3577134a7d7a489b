"""Races over whole rows, on the device.

Source and reasons: `decoding/keyed_random.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tokenform.decoding.keyed_random import BLOCK, Key, block_numbers, token_numbers

_NEVER = float("-inf")


def race(
    masked: torch.Tensor, least: torch.Tensor | None, temperature: float, keys: Sequence[Key]
) -> torch.Tensor:
    """The winner of each row's race, int64 [n].

    Args:
        masked: scores [n, V], -inf where nothing may be drawn.
        least: [n, 1], the least score over the temperature that may be drawn.
    """
    scores = masked.double() / temperature
    if least is not None:
        scores = scores.masked_fill_(scores < least, _NEVER)
    return _finished(scores, keys).argmax(-1)


def _finished(scores: torch.Tensor, keys: Sequence[Key]) -> torch.Tensor:
    """log p - log E of each token; the scores float64 [n, V] are overwritten."""
    first, second = torch.tensor(keys, dtype=torch.int32, device=scores.device)[:, :, None].unbind(1)
    size = scores.shape[-1]
    tokens = torch.arange(size, dtype=torch.int32, device=scores.device)[None]
    blocks = torch.arange((size + BLOCK - 1) // BLOCK, dtype=torch.int32, device=scores.device)[None]
    numbers, leaders = block_numbers(first, second, blocks)
    numbers = numbers.repeat_interleave(BLOCK, 1)[:, :size]
    leaders = leaders.repeat_interleave(BLOCK, 1)[:, :size]
    return scores.sub_(token_numbers(first, second, tokens, numbers, leaders).log_())
