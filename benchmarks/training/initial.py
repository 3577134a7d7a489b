"""Initial weights that can already copy: an induction circuit, laid out by hand.

Purpose: a small network is slow to find the circuit "look for what followed this token before, and write it";
given at the start, training goes straight to *what* to copy.  Measured with `train --threads 1` on two cores:
loss 2.06 after 490 steps of 3,072 tokens without the circuit, 1.20 after 270 steps of 2,048 tokens with it.
The circuit (Olsson et al. 2022, *In-context learning and induction heads*):
  layer 0, heads 0 and 1: look one and two tokens back, write that token's code into reserved coordinates;
  layer 1, heads 0 and 1: query = this token (and the one before), key = the reserved coordinates, value = the
  embedding.
Looking back by a fixed distance needs a constant coordinate in the embedding and keys that are turned by
rotary angles beforehand; matching content uses the slowest rotary pairs alone, which distance hardly turns.
Invariant: shapes and architecture are untouched; every weight is trained afterwards.
"""

from __future__ import annotations

from typing import Any

import torch

CONSTANT = 4.0
"""Value of the constant coordinate, in units of the normalised embedding's root mean square."""

_QUIET = 0.15
"""Factor on what other heads and feed-forward layers write at first: they must not drown the circuit."""

_LOUD = 0.08
"""Size of what the circuit writes, beside embeddings of about 0.05 a coordinate."""

_SLOW = 0.006
"""Rotary frequencies below this (radians a token) turn little within a prompt of some 200 tokens."""


def lay_out_induction(model: Any, seed: int) -> None:
    """Writes the circuit into a fresh `LlamaForCausalLM` with tied embeddings, two layers and two heads."""
    config = model.config
    generator = torch.Generator().manual_seed(seed)
    dim, heads = config.hidden_size, config.num_attention_heads
    size = dim // heads
    frequencies = model.model.rotary_emb.inv_freq.float()
    slow = [i for i in range(size // 2) if frequencies[i] < _SLOW]
    content = [j for i in slow for j in (i, i + size // 2)][: dim // 6]
    width = len(content)
    free = dim - 1 - 2 * width
    # Coordinates: [0, free) embedding; `width` for the last token; `width` for the one before; the constant.
    with torch.no_grad():
        table = model.model.embed_tokens.weight
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight *= _QUIET
            layer.mlp.down_proj.weight *= _QUIET
        table *= 1.5
        table[:, free:] *= 0.1
        table[:, -1] = CONSTANT * table[:, :free].std()
        codes = _frame(width, free, generator)
        for back in (1, 2):
            _look_back(
                model.model.layers[0].self_attn, back, frequencies, size, codes, free + (back - 1) * width
            )
        for head in (0, 1):
            _match(model.model.layers[1].self_attn, head, size, content, codes, free, generator)


def _frame(rows: int, columns: int, generator: torch.Generator) -> torch.Tensor:
    """[rows, columns] with orthonormal rows."""
    return torch.linalg.qr(torch.randn(columns, rows, generator=generator))[0].T.contiguous()


def _look_back(
    attention: Any, back: int, frequencies: torch.Tensor, size: int, codes: torch.Tensor, target: int
) -> None:
    """Head `back - 1` attends `back` places before; writes that token's code from coordinate `target` on."""
    rows = slice((back - 1) * size, back * size)
    half, width = size // 2, codes.shape[0]
    fast = (frequencies > 0.02).float() * 1.7
    query, key = attention.q_proj.weight, attention.k_proj.weight
    query[rows] *= 0.1
    key[rows] *= 0.1
    query[rows][:half, -1] = fast
    key[rows][:half, -1] = fast * torch.cos(back * frequencies)
    key[rows][half:, -1] = fast * torch.sin(back * frequencies)
    attention.v_proj.weight[rows] = 0.0
    attention.v_proj.weight[rows][:width, : codes.shape[1]] = codes
    attention.o_proj.weight[:, rows] = 0.0
    attention.o_proj.weight[target : target + width, rows][:, :width] = _LOUD * torch.eye(width)


def _match(
    attention: Any,
    head: int,
    size: int,
    content: list[int],
    codes: torch.Tensor,
    free: int,
    generator: torch.Generator,
) -> None:
    """Head `head` finds where this token stood before and copies what came after it.

    Head 0 matches this token; head 1 matches, at half the strength each, this token and the one before.
    """
    rows = slice(head * size, (head + 1) * size)
    width = codes.shape[0]
    query, key = (
        torch.zeros(size, codes.shape[1] + 2 * width + 1),
        torch.zeros(size, codes.shape[1] + 2 * width + 1),
    )
    for place, j in enumerate(content):
        pair = head == 1 and place % 2 == 1
        if pair:
            query[j, free + place] = 2.5
            key[j, free + width + place] = 2.5
        else:
            query[j, :free] = 1.8 * codes[place]
            key[j, free + place] = 2.5
    attention.q_proj.weight[rows] = query + 0.1 * attention.q_proj.weight[rows]
    attention.k_proj.weight[rows] = key + 0.1 * attention.k_proj.weight[rows]
    count = min(size, free)
    copied = _frame(count, free, generator)
    attention.v_proj.weight[rows] = 0.0
    attention.v_proj.weight[rows][:count, :free] = copied
    attention.o_proj.weight[:, rows] = 0.0
    attention.o_proj.weight[:free, rows][:, :count] = 2 * _LOUD * copied.T
