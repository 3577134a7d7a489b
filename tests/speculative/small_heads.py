"""Heads for the small models, and a model of which heads can be right."""

from __future__ import annotations

import functools
import tempfile
from typing import Any

import torch

from tokenform.decoding.speculative.drafters import Heads
from tokenform.decoding.speculative.drafters.head_stack import Stack

from .models import model

CYCLE = 7


def heads_of(stack: Stack, **options: Any) -> Heads:
    """The drafter with these heads, through a folder."""
    with tempfile.TemporaryDirectory() as folder:
        stack.write(folder)
        return Heads(folder, **options)


def stack_of(
    blocks: list[tuple[torch.Tensor, torch.Tensor]], sequential: bool = False, **more: torch.Tensor
) -> Stack:
    """Heads of one block each: its weight and its bias."""
    weights = {f"{i}.0.linear.weight": weight for i, (weight, _) in enumerate(blocks)}
    return Stack(
        weights | {f"{i}.0.linear.bias": bias for i, (_, bias) in enumerate(blocks)} | more, sequential
    )


def random_heads(sequential: bool, size: int = 32, count: int = 3, seed: int = 4) -> Heads:
    """Heads that know nothing."""
    torch.manual_seed(seed)
    shape = size, 2 * size if sequential else size
    blocks = [(torch.randn(shape) / size, torch.randn(size) / size) for _ in range(count)]
    return heads_of(stack_of(blocks, sequential))


def follower(token: int, times: int = 1) -> int:
    """What the cyclic model writes so many places behind a token: below 32 a step of `CYCLE`, modulo 31."""
    for _ in range(times):
        token = 1 + (token - 1 + CYCLE) % 31
    return token


@functools.cache
def cyclic() -> Any:
    """A model whose next token follows from the last one, `follower`; its states are one-hot."""
    net = model("llama", seed=77, layers=1)
    with torch.no_grad():
        for name, weight in net.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                weight.zero_()
        shown, read = net.get_input_embeddings().weight, net.get_output_embeddings().weight
        shown.zero_()
        read.zero_()
        for token in range(1, 32):
            shown[token, follower(token)] = read[token, token] = 1.0
        shown[0, 1] = shown[32:, 1] = 1.0
    return net


def right_heads(sequential: bool, count: int = 4) -> Stack:
    """Heads of the cyclic model; Hydra's look at the token drafted last alone."""
    blocks = []
    for head in range(count):
        weight = torch.zeros(32, 64 if sequential else 32)
        for token in range(1, 32):  # the state is that of the token which it says, and so is its embedding's
            # of Hydra's, what the heads before have made has to be outweighed
            seen, aim = (32 + token, token) if sequential else (token, follower(token, head + 1))
            weight[aim, seen] = 3.0 * 4**head if sequential else 3.0
        blocks.append((weight, torch.zeros(32)))
    return stack_of(blocks, sequential)
