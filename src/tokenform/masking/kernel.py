"""Packed masks applied to logits by a Triton kernel.

Purpose: `reference.apply_rows`, at the cost of the memory that must be touched.
Invariant: equal to the reference bit for bit (tests/generation/test_kernel.py).
Complexity: in place, groups of `SECTOR` bytes in which all is allowed are neither read nor written, so at
most reading and writing the logits once, plus one bit a token, plus the row numbers.
Design: a program handles `BLOCK` tokens of a sequence, as words by 32 bits, so that a word is loaded once for
its tokens.  Where all of a block is forbidden, as almost everywhere under a short mask, the store has no
predicate and the machine's full width; elsewhere whole sectors are written.
Rejected: a mask of booleans or floats on the device (8 to 32 times the memory of a row); writing the
forbidden logits alone, which reads nothing (2 % of the tokens, scattered: memory writes whole sectors and had
to read them first; 1.6 and 2.9 times reading and writing all, in float32 and bfloat16 on an H200, where this
takes 1.0 and 1.1); blocks of 4,096 tokens (1.04 in float32).

This module imports Triton; import it where logits are on a GPU, or under TRITON_INTERPRET=1.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 2048
"""Tokens of one program; a multiple of 32."""
SECTOR = 32
"""Bytes that memory writes as one."""


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
    group: tl.constexpr,  # tokens of a sector
):
    place = tl.program_id(1).to(tl.int64)
    row = tl.load(rows + place).to(tl.int64) if has_rows else place
    first = tl.program_id(0) * block
    word = first // 32 + tl.arange(0, block // 32)
    in_table = word < tl.where(row < 0, 0, words)
    packed = tl.load(table + row * table_stride + word, mask=in_table, other=0)
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
        bit = tl.arange(0, 32)[None, :]
        allowed = ((packed[:, None] >> bit) & 1) != 0
        if in_place:
            all_bits: tl.constexpr = (1 << group) - 1
            inside &= ((packed[:, None] >> (bit // group * group)) & all_bits) != all_bits
        values = tl.load(logits + place * logits_stride + token, mask=inside & allowed, other=float("-inf"))
        tl.store(to, values, mask=inside)


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
            group=SECTOR // logits.element_size(),
        )
    return out
