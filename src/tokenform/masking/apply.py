"""Applying packed masks to logits, wherever they are: the Triton kernel on a GPU, plain torch elsewhere.

Purpose: one call for a batch, by masks or by their row numbers in a table.
Invariant: both ways give the same bits; a machine without Triton runs the reference.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec

import torch

from tokenform.errors import OptionError
from tokenform.masking import reference


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return find_spec("triton") is not None


def _kernel_runs(logits: torch.Tensor) -> bool:
    """On a GPU; on the host in Triton's interpreter."""
    return _has_triton() and (logits.is_cuda or os.environ.get("TRITON_INTERPRET") == "1")


def apply_rows(
    logits: torch.Tensor,
    table: torch.Tensor,
    rows: torch.Tensor | None = None,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Logits with -inf where the masks forbid, masks named by their rows of a table.

    Args:
        logits: floating point [B, V].
        table: int32 [N, W] on the same device, W at most ceil(V/32); ids beyond 32 W are forbidden.
        rows: int32 or int64 [B], the row of the table for each row of logits; a negative number leaves that
            row as it is.  None: row b for row b, N = B.
        out: where to write, [B, V]; None is in place.
    Returns:
        `out`, or `logits`.
    Raises:
        OptionError: the shapes or dtypes do not fit.
    """
    out = logits if out is None else out
    _check(logits, table, rows, out)
    if _kernel_runs(logits):
        from tokenform.masking import kernel

        flat = (logits, table, out)
        if all(one.stride(-1) == 1 for one in flat):
            return kernel.apply_rows(logits, table, rows, out)
    return reference.apply_rows(logits, table, rows, out)


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
    return apply_rows(logits, mask_rows.view(torch.int32))


def _check(logits: torch.Tensor, table: torch.Tensor, rows: torch.Tensor | None, out: torch.Tensor) -> None:
    batch, size = logits.shape
    if table.ndim != 2 or table.dtype != torch.int32 or table.shape[1] > (size + 31) // 32:
        raise OptionError(
            f"a table of masks for {size} logits is int32 [N, {(size + 31) // 32}] or narrower, not "
            f"{table.dtype} {tuple(table.shape)}."
        )
    number = table.shape if rows is None else rows.shape
    if number[0] != batch or (rows is not None and rows.ndim != 1):
        raise OptionError(f"{tuple(number)} rows do not fit {batch} rows of logits; give one for each.")
    if out.shape != logits.shape or out.dtype != logits.dtype:
        raise OptionError(f"out must be {logits.dtype} {tuple(logits.shape)}, as the logits are.")
    if any(one is not None and one.device != logits.device for one in (table, rows, out)):
        raise OptionError("logits, masks, rows and out must be on one device.")
