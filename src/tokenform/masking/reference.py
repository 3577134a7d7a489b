"""Packed masks applied to logits, in plain torch: the definition that the kernel is compared with.

Purpose: a mask holds one bit a token (bit t % 32 of word t // 32); a token whose bit is 0 gets the
logit -inf.
Invariant: logits of allowed tokens are not touched, not by a rounding error.
Complexity: O(B * V) reads and writes, and B * V booleans of extra memory.
Rejected: adding a mask of 0 and -inf (it turns an infinite logit into NaN, and needs eight times the memory).
"""

from __future__ import annotations

import numpy as np
import torch


def unpack_mask(mask_rows: torch.Tensor, size: int) -> torch.Tensor:
    """The bits of packed rows: int32 [B, W] -> bool [B, V], V = `size`; ids beyond 32 W are not allowed."""
    if mask_rows.device.type == "cpu":  # numpy reads the bits of a byte at once
        bytes_ = np.ascontiguousarray(mask_rows.numpy()).view(np.uint8)
        bits_there = min(size, 8 * bytes_.shape[-1])
        unpacked = np.unpackbits(bytes_, axis=-1, count=bits_there, bitorder="little").view(bool)
        if bits_there < size:
            unpacked = np.pad(unpacked, [(0, 0)] * (unpacked.ndim - 1) + [(0, size - bits_there)])
        return torch.from_numpy(unpacked)
    shifts = torch.arange(32, dtype=torch.int32, device=mask_rows.device)
    bits = ((mask_rows.unsqueeze(-1) >> shifts) & 1).bool().flatten(-2)[..., :size]
    return torch.nn.functional.pad(bits, (0, size - bits.shape[-1]))


def apply_rows(
    logits: torch.Tensor, table: torch.Tensor, rows: torch.Tensor | None, out: torch.Tensor
) -> torch.Tensor:
    """Write logits [B, V] to `out`, which may be `logits`, with -inf where a row's mask forbids.

    Arguments are those of `tokenform.masking.apply_rows`, which checks them.
    """
    chosen = table if rows is None else table[rows.clamp(min=0).long()]
    allowed = unpack_mask(chosen, logits.shape[1])
    if rows is not None and (rows.device.type != "cpu" or bool((rows < 0).any())):
        allowed |= (rows < 0).unsqueeze(1)  # takes as long as all the rest: only where there are such rows
    lowest = torch.tensor(float("-inf"), dtype=logits.dtype, device=logits.device)
    return torch.where(allowed, logits, lowest, out=out)
