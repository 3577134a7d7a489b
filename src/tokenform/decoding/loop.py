"""Runs the model for a ragged batch, one token a step: the plainest thing that can stand behind `decode`.

Purpose: `prefill(prompts)` and `step(kept, tokens)` give the logits of the next token of each row.
Invariant: a row's logits depend on its own tokens alone: prompts are padded on the left, the padding is
masked out, and positions are given explicitly.
Complexity: one forward pass a call (one a row where the model can't leave padding out); equal prompts of a
batch are run once.  On a GPU a call returns when the
pass is launched, not when it is done.
Rejected: padding on the right (every step would then write at a different place of each row's cache).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from tokenform.decoding.model_cache import cache_name, keeps_keys, select_rows
from tokenform.errors import ModelError


class Loop(Protocol):
    """What `decode` needs of a model."""

    def prefill(self, prompts: Sequence[Sequence[int]]) -> torch.Tensor:
        """Start a batch of B prompts; logits [B, V] of the token after each."""
        ...

    def step(self, kept: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        """Go on with the rows `kept` (numbers in the last batch, ascending) and the token that each took;
        logits [len(kept), V]."""
        ...


def device_of(model: Any) -> torch.device:
    """Where a model's first parameter is; the CPU for one without any."""
    parameter = next(iter(model.parameters()), None) if hasattr(model, "parameters") else None
    return torch.device("cpu") if parameter is None else parameter.device


class PlainLoop:
    """A Hugging Face causal language model, or anything that is called like one."""

    def __init__(self, model: Any) -> None:
        config = getattr(model, "config", None)
        if getattr(config, "is_encoder_decoder", False):
            raise ModelError("encoder-decoder models can't be used; pass a causal language model.")
        if not callable(model):
            raise ModelError(f"{type(model).__name__} is not a model; pass a causal language model.")
        accepted = inspect.signature(getattr(model, "forward", model)).parameters
        self._model = model
        self._positions = "position_ids" in accepted
        self._cache_name = cache_name(model)
        self._last_only = "logits_to_keep" in accepted
        self._alone = "state" in accepted  # a recurrent network that runs over padding as over text
        self._device = device_of(model)
        self._ids = torch.empty(0, 0, dtype=torch.long)
        self._mask = torch.empty(0, 0, dtype=torch.long)
        self._cache: Any = None

    @torch.inference_mode()
    def prefill(self, prompts: Sequence[Sequence[int]]) -> torch.Tensor:
        distinct = list(dict.fromkeys(tuple(prompt) for prompt in prompts))
        width = max(len(prompt) for prompt in distinct)
        ids = [[0] * (width - len(prompt)) + list(prompt) for prompt in distinct]
        seen = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in distinct]
        self._ids = torch.tensor(ids, dtype=torch.long, device=self._device)
        self._mask = torch.tensor(seen, dtype=torch.long, device=self._device)
        self._cache = None
        logits = self._forward(self._ids)
        if len(distinct) == len(prompts):
            return logits
        number = {prompt: row for row, prompt in enumerate(distinct)}
        return logits[self._select([number[tuple(prompt)] for prompt in prompts])]

    @torch.inference_mode()
    def step(self, kept: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        if len(kept) < len(self._ids):
            self._select(kept)
        column = torch.tensor(tokens, dtype=torch.long, device=self._device).unsqueeze(1)
        self._ids = torch.cat([self._ids, column], 1)
        self._mask = torch.cat([self._mask, torch.ones_like(column)], 1)
        return self._forward(self._ids if self._cache is None else column)

    def _select(self, rows: Sequence[int]) -> torch.Tensor:
        index = torch.tensor(rows, dtype=torch.long, device=self._device)
        self._ids, self._mask = self._ids[index], self._mask[index]
        if self._cache is not None and not select_rows(self._cache, index):
            self._cache = None  # some recurrent states are left out: run the texts again
        return index

    def _forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits [B, V] of the last column; `ids` [B, T] are the columns that the cache does not hold."""
        if self._alone and len(ids) and not bool(self._mask.all()):
            rows = [row[seen.bool()][None] for row, seen in zip(ids, self._mask, strict=True)]
            return torch.cat([self._model(input_ids=row).logits[:, -1] for row in rows])
        arguments: dict[str, Any] = {"input_ids": ids}
        if self._cache is None or keeps_keys(self._cache):  # else the padding is behind the state already
            arguments["attention_mask"] = self._mask
        if self._positions:
            positions = (self._mask.cumsum(1) - 1).clamp(min=0)
            arguments["position_ids"] = positions[:, -ids.shape[1] :]
        if self._cache_name is not None:
            arguments |= {self._cache_name: self._cache, "use_cache": True}
        if self._last_only:
            arguments["logits_to_keep"] = 1
        output = self._model(**arguments)
        cache = getattr(output, self._cache_name or "", None)
        self._cache = cache if hasattr(cache, "layers") else None
        logits: torch.Tensor = output.logits[:, -1]
        return logits
