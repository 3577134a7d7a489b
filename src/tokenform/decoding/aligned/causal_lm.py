"""Any causal language model as a `LanguageModel`, with copies of the keys and values of known prefixes.

For models that take no custom attention masks or are no Hugging Face models; the others run on the backbone
(`backbone_lm`).

Particles, walks and chains ask for prefixes that share most of their tokens, in any order and number.  Each
prefix that was run leaves its keys and values behind; a new one starts from the longest known beginning and
runs only what is missing. All prefixes of a call run as one batch; a prefix that another one of the call
continues costs nothing of its own.

Layout of a batch (B rows, M = longest past, N = most missing tokens):
    columns   0 … M-1 past, padded on the left   |   M … M+N-1 missing tokens, padded on the left
The mask hides both paddings, positions are given explicitly, and the last column is every row's last token.

Invariant: a row depends on its own tokens alone, up to the rounding of the model's batched kernels.
Memory: at most `cache_bytes`, least recently used first.  Models whose cache does not keep every position
(sliding windows, recurrent states) are run without reuse; the result is the same.
Rejected: one batch cache that all calls share: samplers drop, copy and revisit prefixes all the time.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tokenform.decoding.aligned.protocols import Float, Tokens
from tokenform.decoding.model_cache import cache_name
from tokenform.errors import ModelError

Past = list[tuple[torch.Tensor, torch.Tensor]]  # for each layer keys and values [heads, length, width]


class CausalLM:
    """See the module's header.

    Args:
        model: called as Hugging Face models are, on any device.
        eos: ids that end a text; None takes them from the model's configuration.
        size: V; wider logits are cut to it before the distribution is formed.  None keeps all.
        cache_bytes: bound on the kept keys and values; 0 keeps none.
        fingerprint: names the model's weights for saved tries; None takes its name or class.
    Raises:
        ModelError: no EOS id is known, or the model can't be called.
    """

    def __init__(
        self,
        model: Any,
        *,
        eos: Sequence[int] | None = None,
        size: int | None = None,
        cache_bytes: int = 512 << 20,
        fingerprint: str | None = None,
    ) -> None:
        if not callable(model):
            raise ModelError(f"{type(model).__name__} is not a model; pass a causal language model")
        self._model = model
        self._accepted = set(inspect.signature(getattr(model, "forward", model)).parameters)
        parameter = next(iter(model.parameters()), None) if hasattr(model, "parameters") else None
        self._device = torch.device("cpu") if parameter is None else parameter.device
        self.eos = tuple(eos) if eos is not None else _configured_eos(model)
        if not self.eos:
            raise ModelError("the model names no EOS id, so no text can end; give one by eos=[...]")
        name = getattr(getattr(model, "config", None), "_name_or_path", "") or type(model).__name__
        self.fingerprint = fingerprint if fingerprint is not None else str(name)
        self.forwards = self.rows = 0
        self._limit, self._bytes = cache_bytes, 0
        self._kept: OrderedDict[Tokens, Past] = OrderedDict()
        self._cache_name = cache_name(model) or ""
        self._reuse = bool(self._cache_name) and cache_bytes > 0
        self._cache_type: Any = None
        self._size, self._vocab_size = size, size

    @property
    def vocab_size(self) -> int:
        """V, the width of the logits."""
        if self._vocab_size is None:
            head = (
                self._model.get_output_embeddings() if hasattr(self._model, "get_output_embeddings") else None
            )
            if head is not None and hasattr(head, "weight"):
                self._vocab_size = int(head.weight.shape[0])
            else:
                config = getattr(self._model, "config", None)
                self._vocab_size = (
                    int(config.vocab_size) if config is not None else self.logprobs([(self.eos[0],)]).shape[1]
                )
        return self._vocab_size

    @torch.inference_mode()
    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        """See `LanguageModel`.  An empty prefix is refused: give a prompt of at least one token."""
        wanted = [tuple(prefix) for prefix in prefixes]
        if any(len(prefix) == 0 for prefix in wanted):
            raise ModelError(
                "the model needs a token before the first one it writes; give a prompt (a BOS token will do)"
            )
        rows = _longest(wanted)
        pasts = [self._past(row) for row in rows]
        need = [len(row) - kept for row, (kept, _) in zip(rows, pasts, strict=True)]
        depth = {row: [len(prefix) for prefix in wanted if row[: len(prefix)] == prefix] for row in rows}
        # a prefix inside the kept past has no logits of its own: run the row from before it
        for i, row in enumerate(rows):
            shortest = min(depth[row])
            if len(row) - need[i] >= shortest:
                need[i] = len(row) - (shortest - 1)
        distributions = self._forward(
            rows, [past for _, past in pasts], need, {row: min(depth[row]) for row in rows}
        )
        self.rows += len(set(wanted))
        return np.stack(
            [
                next(distributions[row][len(prefix)] for row in rows if row[: len(prefix)] == prefix)
                for prefix in wanted
            ]
        )

    def _past(self, row: Tokens) -> tuple[int, Past]:
        """How many first tokens have known keys and values, and these; never the whole row."""
        if self._reuse:
            for length in range(len(row) - 1, 0, -1):
                if (kept := self._kept.get(row[:length])) is not None:
                    self._kept.move_to_end(row[:length])
                    return length, kept
            if (kept := self._kept.get(row)) is not None:
                return len(row) - 1, kept
        return 0, []

    def _forward(
        self, rows: list[Tokens], pasts: list[Past], need: list[int], shortest: dict[Tokens, int]
    ) -> dict[Tokens, dict[int, Float]]:
        """For each row the log-distributions after its prefixes from the shortest wanted one on, by
        length."""
        known = [len(row) - n for row, n in zip(rows, need, strict=True)]
        width, fresh = max(known), max(need)
        ids = torch.zeros(len(rows), fresh, dtype=torch.long)
        mask = torch.zeros(len(rows), width + fresh, dtype=torch.long)
        positions = torch.zeros(len(rows), fresh, dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, fresh - need[i] :] = torch.tensor(row[known[i] :])
            mask[i, width - known[i] : width] = 1
            mask[i, width + fresh - need[i] :] = 1
            positions[i, fresh - need[i] :] = torch.arange(known[i], len(row))
        arguments: dict[str, Any] = {
            "input_ids": ids.to(self._device),
            "attention_mask": mask.to(self._device),
        }
        if "position_ids" in self._accepted:
            arguments["position_ids"] = positions.to(self._device)
        if "use_cache" in self._accepted:
            arguments["use_cache"] = self._reuse
        if width:
            arguments[self._cache_name] = self._assemble(pasts, known, width)
        keep = max(len(row) - shortest[row] + 1 for row in rows)
        if "logits_to_keep" in self._accepted:
            arguments["logits_to_keep"] = keep
        output = self._model(**arguments)
        self.forwards += 1
        if self._reuse:
            self._keep(output, rows, known, need, width)
        logits = output.logits[:, -keep:, : self._size].double().cpu()
        distributions = torch.log_softmax(logits, -1).numpy()
        return {
            row: {
                length: distributions[i, length - len(row) - 1]
                for length in range(shortest[row], len(row) + 1)
            }
            for i, row in enumerate(rows)
        }

    def _assemble(self, pasts: list[Past], known: list[int], width: int) -> Any:
        cache = self._cache_type()
        template = next(past for past in pasts if past)
        for layer, (keys, values) in enumerate(template):
            batch_k = keys.new_zeros(len(pasts), keys.shape[0], width, keys.shape[2])
            batch_v = values.new_zeros(len(pasts), values.shape[0], width, values.shape[2])
            for i, (past, length) in enumerate(zip(pasts, known, strict=True)):
                if length:
                    batch_k[i, :, width - length :] = past[layer][0][:, :length]
                    batch_v[i, :, width - length :] = past[layer][1][:, :length]
            cache.update(batch_k, batch_v, layer)
        return cache

    def _keep(self, output: Any, rows: list[Tokens], known: list[int], need: list[int], width: int) -> None:
        cache = getattr(output, self._cache_name, None)
        layers = getattr(cache, "layers", None) or []
        length = width + max(need)
        whole = layers and all(
            getattr(x, "keys", None) is not None and x.keys.dim() == 4 and x.keys.shape[2] == length
            for x in layers
        )
        if not whole:
            self._reuse = False  # this model's cache forgets positions
            self._kept.clear()
            return
        self._cache_type = type(cache)
        for i, row in enumerate(rows):
            columns = [*range(width - known[i], width), *range(length - need[i], length)]
            index = torch.tensor(columns, device=self._device)
            past = [(x.keys[i].index_select(1, index), x.values[i].index_select(1, index)) for x in layers]
            if row not in self._kept:
                self._bytes += _size(past)
            self._kept[row] = past
        while self._bytes > self._limit and len(self._kept) > 1:
            self._bytes -= _size(self._kept.popitem(last=False)[1])


def _longest(prefixes: Sequence[Tokens]) -> list[Tokens]:
    """The prefixes that no other one continues, without repetition."""
    ordered = sorted(set(prefixes))
    return [p for p, after in zip(ordered, [*ordered[1:], ()], strict=True) if after[: len(p)] != p]


def _size(past: Past) -> int:
    return sum(
        keys.numel() * keys.element_size() + values.numel() * values.element_size() for keys, values in past
    )


def _configured_eos(model: Any) -> tuple[int, ...]:
    for source in (getattr(model, "generation_config", None), getattr(model, "config", None)):
        found = getattr(source, "eos_token_id", None)
        if found is not None:
            return (int(found),) if isinstance(found, int) else tuple(int(token) for token in found)
    return ()
