"""transformers' own continuous batching with the built-in model, driven as the other hosts are.

Purpose: what becomes of a batch of requests, each with a schema of its own.  transformers has no structured
outputs of its own: the backend "none" asks the model alone.
Invariant: nothing of transformers' batching is replaced; texts are sampled by the model, at temperature 1.
"""

from __future__ import annotations

import copy
from typing import Any

from .texts import Text

PROMPT = "The order has the number A-2041 and was placed by Maria Rossi of Turin, born in 1988."


class Engine:
    """A running manager.

    Args:
        backend: "tokenform", or "none".
        seed: of the sampled texts.
    """

    def __init__(self, *, backend: str = "tokenform", seed: int = 0) -> None:
        import torch
        from transformers import ContinuousBatchingConfig, GenerationConfig

        from tokenform.builtin.loading import load
        from tokenform.integrations.continuous_batching import Batching

        torch.manual_seed(seed)
        model, self.tokenizer = load()
        config = ContinuousBatchingConfig(
            use_async_batching=False, use_cuda_graph=False, num_blocks=512, block_size=32
        )
        chosen = GenerationConfig(
            eos_token_id=self.tokenizer.eos_token_id, pad_token_id=0, do_sample=True, temperature=1.0
        )
        self.manager = copy.deepcopy(model).init_continuous_batching(  # it changes the model's attention
            chosen, continuous_batching_config=config
        )
        self.batching = Batching(self.manager, self.tokenizer)
        self.backend = backend
        self.texts: dict[str, Text] = {}
        self._most: dict[str, int] = {}
        self._ids = self.tokenizer(PROMPT).input_ids
        self.manager.start()

    def add(self, name: str, schema: Any, max_tokens: int) -> None:
        """A request; raises `TokenformError` where it is refused."""
        grammar = {"grammar": schema} if self.backend == "tokenform" else {}
        self.batching.add_request(self._ids, max_new_tokens=max_tokens, request_id=name, **grammar)
        self.texts[name], self._most[name] = Text(), max_tokens

    def run(self) -> None:
        """Waits until every text has ended."""
        while any(text.reason is None for text in self.texts.values()):
            result = self.manager.get_result(timeout=600)
            if result is None:
                raise TimeoutError("no text ended within ten minutes")
            if not result.is_finished():
                continue
            text = self.texts[result.request_id]
            text.tokens, text.error = list(result.generated_tokens), result.error
            ended = text.tokens and text.tokens[-1] == self.tokenizer.eos_token_id
            text.reason = "error" if text.error else "stop" if ended else "length"

    def close(self) -> None:
        """Ends the manager's thread."""
        self.manager.stop(block=True)
