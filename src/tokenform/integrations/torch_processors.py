"""Engines whose hook is a function over torch logits: LMDeploy, TensorRT-LLM, Dynamo.

Each passes all ids of one sequence so far; none passes the token limit, so set `max_tokens` here, too.  Masks
are applied on the logits' device.

Sources: LMDeploy 0.18, `GenerationConfig.logits_processors`: (ids [n], logits [V]) -> logits; TensorRT-LLM
1.2, `LogitsProcessor` of its `SamplingParams`: (req_id, logits [1, beams, V], ids of each beam, stream_ptr,
client_id), in place; Dynamo, `BaseLogitsProcessor`: (ids, logits [V]), in place.

    processor = LMDeployProcessor(grammar, vocabulary, max_tokens=100)
    GenerationConfig(max_new_tokens=100, logits_processors=[processor])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tokenform.engine import Vocabulary
from tokenform.errors import extras
from tokenform.integrations.history_matcher import HistoryMatcher

with extras():
    import torch


class _Processor:
    """Keeps one sequence to a grammar; the arguments are those of `HistoryMatcher`."""

    def __init__(self, grammar: Any, vocabulary: Vocabulary, *, max_tokens: int | None = None) -> None:
        self._arguments = grammar, vocabulary, max_tokens
        self.following = HistoryMatcher(grammar, vocabulary, max_tokens=max_tokens)

    def _mask_(self, following: HistoryMatcher, ids: Any, logits: torch.Tensor) -> None:
        """-inf in logits [V], in place, where the grammar forbids."""
        ids_list = ids.tolist() if isinstance(ids, torch.Tensor) else ids
        allowed = following.allowed(np.asarray(ids_list, dtype=np.int64))
        allowed_here = np.zeros(logits.shape[-1], dtype=bool)
        allowed_here[: len(allowed)] = allowed[: len(allowed_here)]
        logits.masked_fill_(torch.from_numpy(~allowed_here).to(logits.device), float("-inf"))


class LMDeployProcessor(_Processor):
    """For `GenerationConfig.logits_processors`, one for each request."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [V] or [1, V] with -inf where the grammar forbids."""
        self._mask_(self.following, input_ids, scores.view(-1))
        return scores


class DynamoProcessor(_Processor):
    """For Dynamo's `BaseLogitsProcessor`, one for each request."""

    def __call__(self, input_ids: Sequence[int], logits: torch.Tensor) -> None:
        """-inf in logits [V], in place, where the grammar forbids."""
        self._mask_(self.following, input_ids, logits.view(-1))


class TensorRTProcessor(_Processor):
    """For `SamplingParams.logits_processor`, one for each request; every beam has a text of its own."""

    def __init__(self, grammar: Any, vocabulary: Vocabulary, *, max_tokens: int | None = None) -> None:
        super().__init__(grammar, vocabulary, max_tokens=max_tokens)
        self._beams = [self.following]

    def __call__(
        self,
        req_id: int,
        logits: torch.Tensor,
        token_ids: list[list[int]],
        stream_ptr: int | None,
        client_id: int | None = None,
    ) -> None:
        """-inf in logits [1, beams, V], in place, where the grammar forbids."""
        grammar, vocabulary, most = self._arguments
        while len(self._beams) < len(token_ids):
            self._beams.append(HistoryMatcher(grammar, vocabulary, max_tokens=most))
        with _stream(stream_ptr):
            for beam, ids in enumerate(token_ids):
                self._mask_(self._beams[beam], ids, logits[0, beam])


def _stream(pointer: int | None) -> Any:
    """The stream that the engine computes on; on the CPU there is none."""
    if pointer is None or not torch.cuda.is_available():
        import contextlib

        return contextlib.nullcontext()
    return torch.cuda.stream(torch.cuda.ExternalStream(pointer))
