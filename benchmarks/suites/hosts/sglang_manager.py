"""SGLang's own `GrammarManager` and `generate_token_bitmask`, driven as its scheduler does.

Purpose: what becomes of requests in SGLang's constrained decoding without its GPU: the manager compiles, a
random model's drafts come as trees (a chain, and a rival of its first token), rows are filled, tokens taken.
Invariant: nothing of SGLang's structured outputs is replaced; a request is as much of a `Req` as the manager
and the hooks read.
Source: sglang/srt/managers/scheduler.py and sglang/srt/speculative/spec_utils.py of 0.5.23.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from .texts import EmptyMask, Text


class Request(SimpleNamespace):
    """As much of SGLang's `Req` as its manager reads; it can be referred to weakly, as a `Req` can."""

    def __init__(self, name: str, schema: str, max_tokens: int) -> None:
        asked = SimpleNamespace(
            json_schema=schema,
            regex=None,
            ebnf=None,
            structural_tag=None,
            custom_params=None,
            max_new_tokens=max_tokens,
        )
        super().__init__(
            rid=name,
            sampling_params=asked,
            origin_input_ids=[1],
            require_reasoning=False,
            output_ids=[],
            grammar=None,
            grammar_key=None,
            grammar_wait_ct=0,
            message=None,
        )

    def finished(self) -> bool:
        return self.message is not None

    def set_finish_with_abort(self, message: str) -> None:
        self.message = message


class Engine:
    """A server's structured outputs.

    Args:
        folder: of the tokenizer, as `transformers` saves it.
        size: width of the model's logits.
        drafts: draft tokens a step.
        backend: SGLang's name of a backend; "tokenform" where its plug-in is registered.
    """

    def __init__(self, folder: str, *, size: int, drafts: int = 0, backend: str = "tokenform") -> None:
        from sglang.srt.constrained import base_grammar_backend, grammar_manager
        from sglang.srt.plugins.hook_registry import HookRegistry
        from transformers import AutoTokenizer

        _options(backend, base_grammar_backend, grammar_manager)
        if backend == "tokenform":
            HookRegistry.apply_hooks()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        model = SimpleNamespace(
            vocab_size=size, hf_eos_token_id={self.tokenizer.eos_token_id}, think_end_ids=None
        )
        alone = SimpleNamespace(world_size=1, first_rank=0, is_first_rank=True)
        self.manager = grammar_manager.GrammarManager(
            SimpleNamespace(
                server_args=None,
                tokenizer=self.tokenizer,
                model_config=model,
                dp_tp_cpu_group=None,
                dp_tp_group=alone,
                pp_group=None,
            )
        )
        self.size, self.drafts = size, drafts
        self.texts: dict[str, Text] = {}
        self.taken = 0  # draft tokens that were accepted
        self.random = np.random.default_rng(0)

    def add(self, name: str, schema: str, max_tokens: int) -> None:
        """A request whose grammar compiles."""
        request = Request(name, schema, max_tokens)
        self.texts[name] = Text(request)
        self.manager.process_req_with_grammar(request)

    def settle(self) -> dict[str, str]:
        """Waits for the grammars; the requests that were aborted, and why."""
        while self.manager.has_waiting_grammars():
            ready = {request.rid for request in self.manager.get_ready_grammar_requests()}
            self.manager.grammar_queue = [one for one in self.manager.grammar_queue if one.rid not in ready]
        refused = {
            name: text.request.message
            for name, text in self.texts.items()
            if text.request.message is not None
        }
        for name in refused:
            del self.texts[name]
        return refused

    def step(self, draw: Callable[[np.ndarray, int], int]) -> int:
        """One step of every text that runs; how many ran."""
        import torch
        from sglang.srt.speculative.spec_utils import generate_token_bitmask

        running = [text for text in self.texts.values() if text.reason is None]
        if not running:
            return 0
        trees = [self._tree(text) for text in running]
        tokens, child, sibling = (torch.tensor([tree[at] for tree in trees]) for at in range(3))
        found = generate_token_bitmask([text.request for text in running], child, sibling, tokens, self.size)
        rows: Any = (found[0] if isinstance(found, tuple) else found).numpy().view(np.uint32)
        nodes = tokens.shape[1]
        for at, text in enumerate(running):
            self._take(text, trees[at], rows[at * nodes : (at + 1) * nodes], draw)
        return len(running)

    def run(self, draw: Callable[[np.ndarray, int], int]) -> None:
        """Steps until every text has ended."""
        while self.step(draw):
            pass

    def _tree(self, text: Text) -> tuple[list[int], list[int], list[int]]:
        """Tokens, first children, next siblings: the last token, a chain of drafts, a rival of its first."""
        if not self.drafts:
            return [0], [-1], [-1]
        place = int(self.random.integers(max(1, len(text.tokens))))
        known = text.tokens[place : place + self.drafts] if self.random.random() < 0.5 else []
        drawn = self.random.integers(self.size, size=self.drafts + 1).tolist()
        chain = (known + drawn)[: self.drafts]
        count = self.drafts
        child = [1, *[at + 1 if at < count else -1 for at in range(1, count + 1)], -1]
        sibling = [-1, count + 1, *[-1] * count]
        return [0, *chain, drawn[-1]], child, sibling

    def _take(
        self,
        text: Text,
        tree: tuple[list[int], list[int], list[int]],
        rows: np.ndarray,
        draw: Callable[[np.ndarray, int], int],
    ) -> None:
        """Samples along the tree, as a verifier does, and accepts what was sampled."""
        tokens, child, sibling = tree
        node = 0
        while node != -1 and text.reason is None:
            try:
                token = draw(rows[node], len(text.tokens))
            except EmptyMask as error:
                text.reason, text.error = "error", f"{error} after {text.tokens} with the drafts {tokens}"
                return
            self._accept(text, token)
            node = child[node]
            while node != -1 and tokens[node] != token:
                node = sibling[node]
            self.taken += node != -1

    def _accept(self, text: Text, token: int) -> None:
        request: Any = text.request
        try:
            request.grammar.accept_token(token)
        except ValueError as error:
            text.reason, text.error = "error", str(error)
            return
        text.tokens.append(token)
        request.output_ids.append(token)
        if token == self.tokenizer.eos_token_id:
            text.reason = "stop"
        elif len(text.tokens) >= request.sampling_params.max_new_tokens:
            text.reason = "length"

    def close(self) -> None:
        """Forgets what was compiled."""
        self.manager.clear()


def _options(backend: str, *modules: Any) -> None:
    """A server's options, where SGLang's modules ask for them."""
    from sglang.srt import runtime_context

    serving = SimpleNamespace(
        skip_tokenizer_init=False,
        constrained_json_whitespace_pattern=None,
        constrained_json_disable_any_whitespace=False,
        constrained_json_max_whitespace_cnt=None,
        reasoning_parser=None,
        enable_strict_thinking=False,
    )
    asked: dict[str, Any] = {
        "get_serving": serving,
        "get_exec": SimpleNamespace(kernel=SimpleNamespace(grammar_backend=backend)),
        "get_parallel": SimpleNamespace(pp_rank=0, pp_size=1),
    }
    for module in (runtime_context, *modules):
        for name, value in asked.items():
            if hasattr(module, name):
                setattr(module, name, lambda value=value: value)
