"""Packed masks applied to logits by a Triton kernel.

Purpose: what `reference.apply_rows` does, at the cost of the memory that must be touched.
Invariant: equal to the reference bit for bit (tests/generation/test_kernel.py).
Complexity: in place, a logit is never read: forbidden ones are written, allowed ones are left.  So at most
half the traffic of reading and writing the logits once, plus one bit a token, plus the row numbers.
Design: a program handles `BLOCK` tokens of a sequence, as words by 32 bits, so that a word is loaded once for
its tokens.  Where all of a block is forbidden, as nearly everywhere under a short mask, the store has no
predicate and is as wide as the machine's; elsewhere single lanes store.
Rejected: a mask of booleans or floats on the device (8 to 32 times the memory of a row); reading logits in
order to write them back.

This module imports Triton; import it where logits are on a GPU, or under TRITON_INTERPRET=1.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 4096
"""Tokens of one program; a multiple of 32."""


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _apply(  # type: ignore[no-untyped-def]
    logits,  # [B, V]
    out,  # [B, V], may be the same memory
    table,  # int32 [N, W]
    rows,  # int32 or int64 [B]; not read unless has_rows
    size,  # V
    words,  # W
    logits_stride,
    out_stride,
    table_stride,
    has_rows: tl.constexpr,
    in_place: tl.constexpr,
    block: tl.constexpr,
):
    place = tl.program_id(1).to(tl.int64)
    row = tl.load(rows + place).to(tl.int64) if has_rows else place
    first = tl.program_id(0) * block
    word = first // 32 + tl.arange(0, block // 32)
    known = word < tl.where(row < 0, 0, words)
    packed = tl.load(table + row * table_stride + word, mask=known, other=0)
    token = first + tl.arange(0, block // 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    to = out + place * out_stride + token
    inside = token < size
    never = tl.full([block // 32, 32], float("-inf"), out.dtype.element_ty)
    if row < 0:  # no constraint
        if not in_place:
            free = tl.load(logits + place * logits_stride + token, mask=inside)
            tl.store(to, free, mask=inside)
    elif (tl.max((packed != 0).to(tl.int32), axis=0) == 0) & (first + block <= size):
        tl.store(to, never)
    else:
        allowed = ((packed[:, None] >> tl.arange(0, 32)[None, :]) & 1) != 0
        if in_place:
            tl.store(to, never, mask=inside & (allowed == 0))
        else:
            kept = tl.load(logits + place * logits_stride + token, mask=inside & allowed, other=float("-inf"))
            tl.store(to, kept, mask=inside)


def apply_rows(
    logits: torch.Tensor, table: torch.Tensor, rows: torch.Tensor | None, out: torch.Tensor
) -> torch.Tensor:
    """Write logits [B, V] to `out`, which may be `logits`, with -inf where a row's mask forbids.

    Arguments are those of `tokenform.masking.apply_rows`, which checks them; the last axis of each is
    contiguous.
    """
    batch, size = logits.shape
    if batch:
        _apply[(triton.cdiv(size, BLOCK), batch)](
            logits,
            out,
            table,
            table if rows is None else rows,
            size,
            table.shape[1],
            logits.stride(0),
            out.stride(0),
            table.stride(0),
            has_rows=rows is not None,
            in_place=out is logits,
            block=BLOCK,
        )
    return out
