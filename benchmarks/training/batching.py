"""Batches of examples of similar length, padded on the right, with a weight for each token.

Purpose: little padding, no attention mask.  Padding stands on the right and attention is causal, so
real positions never see it.
Invariant: batch `i` of a seed is always the same; a run that was cut off resumes at any batch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .data import Example, examples

_TEXT_SHARE = 0.25


@dataclass(frozen=True)
class Batch:
    """`ids`: int64 [B, L]; `weights`: float32 [B, L-1], the weight of the loss on token t+1 at t."""

    ids: Any
    weights: Any


def encode(tokenizer: Any, batch: list[Example], context: int) -> list[tuple[list[int], int]]:
    """Token ids of each example and the number of those that belong to the prompt."""
    prompts = tokenizer([e.prompt for e in batch], add_special_tokens=False)["input_ids"]
    answers = tokenizer([e.answer for e in batch], add_special_tokens=False)["input_ids"]
    rows = [(p + a, len(p)) for p, a in zip(prompts, answers, strict=True)]
    return [(ids, cut) for ids, cut in rows if len(ids) <= context]


def collate(rows: list[tuple[list[int], int]], pad: int, text_weight: float, seed: int) -> Batch:
    """Rows padded to the longest; answer tokens weigh 1, padding 0, and prompt tokens `text_weight`.

    A quarter of the prompt tokens is drawn to carry that weight; the others carry none and save their logits.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    length = max(len(ids) for ids, _ in rows)
    ids = torch.full((len(rows), length), pad, dtype=torch.long)
    weights = torch.zeros(len(rows), length - 1)
    for index, (tokens, cut) in enumerate(rows):
        ids[index, : len(tokens)] = torch.tensor(tokens)
        weights[index, : cut - 1] = text_weight * (torch.rand(cut - 1, generator=generator) < _TEXT_SHARE)
        weights[index, cut - 1 : len(tokens) - 1] = 1.0
    return Batch(ids, weights)


def batches(
    tokenizer: Any,
    *,
    seed: int,
    tokens: int,
    context: int,
    text_weight: float,
    start: int = 0,
    per_chunk: int = 64,
    options: Callable[[int], dict[str, Any]] = lambda _: {},
) -> Iterator[Batch]:
    """An endless stream of batches of about `tokens` tokens each, from batch number `start` on.

    A chunk is drawn from a seed of its own, sorted by length, cut into `per_chunk` batches and
    shuffled.  `options(batch number)` gives the mix of the data at that time (a curriculum).
    """
    number = start - start % per_chunk
    while True:
        chunk = examples(seed * 1_000_003 + number, per_chunk * max(1, tokens // 100), **options(number))
        rows = sorted(encode(tokenizer, chunk, context), key=lambda row: len(row[0]))
        size = -(-len(rows) // per_chunk)
        parts = [rows[i : i + size] for i in range(0, len(rows), size)]
        while len(parts) < per_chunk:
            parts.append(rows[:size])
        random.Random(number).shuffle(parts)
        for part in parts[:per_chunk]:
            if number >= start:
                yield collate(part, tokenizer.pad_token_id, text_weight, number)
            number += 1
