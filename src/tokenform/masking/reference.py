"""Packed masks applied to logits, in plain torch: the definition that faster kernels are compared with.

Purpose: a mask holds one bit a token (bit t % 32 of word t // 32); a token whose bit is 0 gets the
logit -inf.
Invariant: logits of allowed tokens are not touched, not by a rounding error.
Complexity: O(B * V) reads and writes, and B * V booleans of extra memory.
Rejected: adding a mask of 0 and -inf (it turns an infinite logit into NaN, and needs eight times the memory).
"""

from __future__ import annotations

import torch

from tokenform.errors import OptionError


def unpack_mask(mask_rows: torch.Tensor, size: int) -> torch.Tensor:
    """The bits of packed rows: int32 [B, ceil(V/32)] -> bool [B, V], V = `size`."""
    shifts = torch.arange(32, dtype=torch.int32, device=mask_rows.device)
    bits = (mask_rows.unsqueeze(-1) >> shifts) & 1
    return bits.bool().flatten(-2)[..., :size]


def apply_mask_(logits: torch.Tensor, mask_rows: torch.Tensor) -> torch.Tensor:
    """Set the logits of tokens that are not allowed to -inf, in place.

    Args:
        logits: floating point [B, V].
        mask_rows: int32 (or uint32) [B, ceil(V/32)], on the same device.
    Returns:
        `logits`.
    Raises:
        OptionError: the shapes do not fit.
    """
    batch, size = logits.shape
    if mask_rows.shape != (batch, (size + 31) // 32):
        raise OptionError(
            f"masks of shape {tuple(mask_rows.shape)} do not fit logits of shape {tuple(logits.shape)}: "
            f"{(batch, (size + 31) // 32)} is expected."
        )
    allowed = unpack_mask(mask_rows.view(torch.int32), size)
    return logits.masked_fill_(~allowed, float("-inf"))
