"""A model of Llama-3's shape with random weights, one token a step: what `device.py` decodes with.

Purpose: a step with fixed addresses and no word from the CPU, so that it can be captured as one CUDA graph.
Invariant: reads `tokens` [B], writes `logits` [B, V] and moves on by one position; `reset` goes back to
where a round begins.  The whole cache is read, masked behind the position, whatever the position.
Complexity: the weights and the cache are read once a step, as in any decoder.
Source: Grattafiori et al. 2024 (the shape): grouped-query attention, rotary positions, SwiGLU, RMS norms.
Rejected: transformers' own module for this loop (its mask code asks the GPU for values, which no graph can
hold).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class Shape:
    """Sizes of a model."""

    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int
    theta: float = 500_000.0

    @property
    def head(self) -> int:
        return self.hidden // self.heads

    def with_vocabulary(self, size: int) -> Shape:
        return replace(self, vocabulary=size)


LLAMA_3_8B = Shape(4096, 14_336, 32, 32, 8, 128_256)
TINY = Shape(64, 96, 2, 4, 2, 2_048)


class Layer(nn.Module):
    """Attention and a gated feed-forward part, each behind a norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.kv_heads * shape.head
        self.shape = shape
        self.before, self.between = nn.RMSNorm(shape.hidden, 1e-5), nn.RMSNorm(shape.hidden, 1e-5)
        self.qkv = nn.Linear(shape.hidden, shape.hidden + 2 * width, bias=False)
        self.merge = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.up = nn.Linear(shape.hidden, 2 * shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.hidden, bias=False)

    def forward(
        self, x: torch.Tensor, cache: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor], at: torch.Tensor
    ) -> torch.Tensor:
        """x [B, hidden]; cache [2, B, kv_heads, L, head]; at int64 [1], the position that is written."""
        shape, batch = self.shape, len(x)
        width = shape.kv_heads * shape.head
        q, k, v = self.qkv(self.before(x)).split([shape.hidden, width, width], -1)
        q = rotate(q.view(batch, shape.heads, shape.head), turn)
        k = rotate(k.view(batch, shape.kv_heads, shape.head), turn)
        cache[0].index_copy_(2, at, k.unsqueeze(2))
        cache[1].index_copy_(2, at, v.view(batch, shape.kv_heads, 1, shape.head))
        groups = q.view(batch, shape.kv_heads, shape.heads // shape.kv_heads, shape.head)
        scores = groups @ cache[0].transpose(-1, -2) / math.sqrt(shape.head)
        later = torch.arange(cache.shape[3], device=x.device) > at
        weights = scores.float().masked_fill(later, float("-inf")).softmax(-1).to(x.dtype)
        x = x + self.merge((weights @ cache[1]).reshape(batch, shape.hidden))
        gate, up = self.up(self.between(x)).chunk(2, -1)
        return x + self.down(nn.functional.silu(gate) * up)


def rotate(x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Rotary positions: pairs (i, i + head/2) of x [B, heads, head] are turned."""
    cos, sin = turn
    left, right = x.chunk(2, -1)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)


class StepModel:
    """One token of a batch a step.

    Args:
        shape: sizes.
        batch: B.
        context: positions of the cache; a round writes the last `steps` of them.
        device: where it runs; in bfloat16 on a GPU.
    Attributes:
        tokens: int64 [B], read by `launch`.
        logits: [B, V], float32, written by `launch`.
    """

    def __init__(self, shape: Shape, batch: int, context: int, device: torch.device, steps: int) -> None:
        if steps >= context:
            raise ValueError(f"{steps} steps do not fit a context of {context}")
        self.shape, self.batch, self.begin = shape, batch, context - steps
        kind = torch.bfloat16 if device.type == "cuda" else torch.float32
        torch.manual_seed(0)
        with torch.device(device):
            before = torch.get_default_dtype()
            torch.set_default_dtype(kind)
            self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
            self.layers = [Layer(shape) for _ in range(shape.layers)]
            self.norm = nn.RMSNorm(shape.hidden, 1e-5)
            self.head = nn.Linear(shape.hidden, shape.vocabulary, bias=False)
            torch.set_default_dtype(before)
            self.cache = torch.randn(shape.layers, 2, batch, shape.kv_heads, context, shape.head, dtype=kind)
            self.tokens = torch.zeros(batch, dtype=torch.long)
            self.logits = torch.zeros(batch, shape.vocabulary)
            self.at = torch.full((1,), self.begin)
            self.frequencies = shape.theta ** (-torch.arange(0, shape.head, 2) / shape.head)
        self._graph: Any = None

    def reset(self) -> None:
        """Go back to the first position of a round."""
        self.at.fill_(self.begin)
        self.tokens.zero_()

    def launch(self) -> None:
        """Enqueue a step; on a GPU it runs on by itself."""
        if self._graph is None:
            self._step()
        else:
            self._graph.replay()

    def _step(self) -> None:
        x = self.embedding(self.tokens)
        angle = self.at * self.frequencies
        turn = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        for layer, cache in zip(self.layers, self.cache, strict=True):
            x = layer(x, cache, turn, self.at)
        self.logits.copy_(self.head(self.norm(x)))
        self.at += 1

    def capture(self) -> bool:
        """Make a step one CUDA graph; False on a CPU."""
        if self.tokens.device.type != "cuda":
            return False
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._step()
                self.reset()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        self._graph = graph
        self.reset()
        return True


def hugging_face(shape: Shape, context: int, device: torch.device) -> Any:
    """The same shape as transformers' own model, random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=max(context, 64),
        rope_theta=shape.theta,
        bos_token_id=None,
        eos_token_id=shape.vocabulary - 1,
        pad_token_id=0,
    )
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if device.type == "cuda" else torch.float32)
    try:
        with torch.device(device):
            return LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)
