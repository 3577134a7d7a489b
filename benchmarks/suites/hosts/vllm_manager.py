"""vLLM's own `StructuredOutputManager`, driven as its scheduler does, with a random model.

Purpose: the steps of an engine without its GPU: validate in the front end, compile, propose drafts, fill the
rows, sample, verify, accept, finish.  Tests read the texts, benchmarks the times.
Invariant: nothing of vLLM's structured outputs is replaced; the config is as much of a `VllmConfig` as the
manager reads.
Source: vllm/v1/core/sched/scheduler.py (`update_draft_token_ids`, `get_grammar_bitmask`,
`update_from_output`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from .texts import EmptyMask, Text


class Engine:
    """An engine's structured outputs.

    Args:
        folder: of the tokenizer, as `transformers` saves it.
        size: width of the model's logits.
        drafts: draft tokens a step.
        method: how the engine drafts. "ngram", after which the plug-in drafts too, or one with a model.
        backend: vLLM's name of a backend; "auto" is tokenform's where its plug-in is registered.
        seats: most requests at once.
        reasoning: name of a reasoning parser, "" for none.
    """

    def __init__(
        self,
        folder: str,
        *,
        size: int,
        drafts: int = 0,
        method: str = "draft_model",
        backend: str = "auto",
        seats: int = 256,
        context: int = 100_000,
        reasoning: str = "",
        seed: int = 0,
        flags: dict[str, Any] | None = None,
    ) -> None:
        from vllm.v1.structured_output import StructuredOutputManager

        outputs = {
            "backend": backend,
            "reasoning_parser": reasoning,
            "reasoning_parser_plugin": "",
            "enable_in_reasoning": False,
            "disable_any_whitespace": False,
            "disable_additional_properties": False,
        } | (flags or {})
        model = SimpleNamespace(
            skip_tokenizer_init=False,
            tokenizer=folder,
            model=folder,
            hf_config=SimpleNamespace(model_type="llama", auto_map=None),
            runner_type="generate",
            tokenizer_mode="auto",
            tokenizer_revision=None,
            trust_remote_code=False,
            is_diffusion=False,
            max_model_len=context,
            get_vocab_size=lambda: size,
        )
        self.config = SimpleNamespace(
            model_config=model,
            structured_outputs_config=SimpleNamespace(**outputs),
            scheduler_config=SimpleNamespace(max_num_seqs=seats, async_scheduling=False),
            parallel_config=SimpleNamespace(distributed_executor_backend="mp"),
            speculative_config=SimpleNamespace(num_speculative_tokens=drafts, method=method)
            if drafts
            else None,
            num_speculative_tokens=drafts,
        )
        self.manager = StructuredOutputManager(self.config)
        self.tokenizer: Any = self.manager.tokenizer
        self.size, self.drafts, self.method = size, drafts, method
        self.texts: dict[str, Text] = {}
        self.random = np.random.default_rng(seed)
        self.seconds: list[float] = []  # of the manager's part of each step
        # what `Scheduler.update_draft_token_ids` reads of a scheduler
        self.scheduler = SimpleNamespace(
            requests={}, structured_output_manager=self.manager, num_spec_tokens=drafts
        )

    def add(self, name: str, params: Any, prompt: Sequence[int] = (1,)) -> Text:
        """A request that passed the front end; raises what the front end raises (a 400)."""
        from vllm.v1.request import Request

        model, outputs = self.config.model_config, self.config.structured_outputs_config
        params.update_from_generation_config({}, self.tokenizer.eos_token_id)
        params._validate_structured_outputs(model, outputs, self.tokenizer)
        request = Request(name, list(prompt), params, None)
        self.manager.grammar_init(request)
        text = self.texts[name] = Text(request)
        return text

    def settle(self) -> None:
        """Waits for the grammars; a request whose grammar failed has ended."""
        for text in self.texts.values():
            asked = text.request.structured_output_request
            while text.reason is None and asked.grammar is None:
                time.sleep(0.001)
            if isinstance(asked.grammar, Exception):
                text.reason, text.error = "error", str(asked.grammar)

    def step(self, draw: Callable[[np.ndarray, int], int]) -> int:
        """One step of every request that runs; `draw(row, place)` samples of a mask.  How many ran."""
        running = {name: text for name, text in self.texts.items() if text.reason is None}
        if not running:
            return 0
        requests = {name: text.request for name, text in running.items()}
        proposed = {name: self._proposal(text) for name, text in running.items() if text.tokens}
        begin = time.perf_counter()
        scheduled = self._validated(requests, proposed) if self.drafts else {}
        rows: Any = self.manager.grammar_bitmask(requests, list(requests), scheduled)
        spent = time.perf_counter() - begin
        stride = 1 + self.drafts
        for at, (name, text) in enumerate(running.items()):
            block = rows[at * stride : (at + 1) * stride].view(np.uint32)
            try:
                written = self._sampled(block, scheduled.get(name, []), len(text.tokens), draw)
            except EmptyMask as error:
                drafts = scheduled.get(name, [])
                text.reason, text.error = "error", f"{error} after {text.tokens} with the drafts {drafts}"
                continue
            begin = time.perf_counter()
            self._take(text, written)
            spent += time.perf_counter() - begin
        self.seconds.append(spent)
        return len(running)

    def _validated(self, requests: dict[str, Any], proposed: dict[str, list[int]]) -> dict[str, list[int]]:
        """The drafts of a step, as vLLM's scheduler takes them over."""
        from vllm.v1.core.sched.scheduler import Scheduler
        from vllm.v1.outputs import DraftTokenIds

        self.scheduler.requests = requests
        Scheduler.update_draft_token_ids(
            self.scheduler, DraftTokenIds(list(proposed), list(proposed.values()))
        )
        return {name: one.spec_token_ids for name, one in requests.items() if one.spec_token_ids}

    def run(self, draw: Callable[[np.ndarray, int], int]) -> None:
        """Steps until every text has ended."""
        self.settle()
        while self.step(draw):
            pass

    def _proposal(self, text: Text) -> list[int]:
        """Draft tokens of a drafter that knows nothing of the grammar."""
        if self.method == "ngram":
            return []
        if self.random.random() < 0.5:
            place = int(self.random.integers(len(text.tokens)))
            return (text.tokens[place : place + self.drafts] + [-1] * self.drafts)[: self.drafts]
        drawn: list[int] = self.random.integers(self.size, size=self.drafts).tolist()
        return drawn

    @staticmethod
    def _sampled(
        block: np.ndarray, drafts: Sequence[int], place: int, draw: Callable[[np.ndarray, int], int]
    ) -> list[int]:
        written = []
        for at in range(len(drafts) + 1):
            written.append(draw(block[at], place + at))
            if at == len(drafts) or written[-1] != drafts[at]:
                break
        return written

    def _take(self, text: Text, written: list[int]) -> None:
        """As the scheduler does: the stop check token by token, then the grammar."""
        request = text.request
        kept: list[int] = []
        for token in written:
            kept.append(token)
            request.append_output_token_ids(token)
            if token == self.tokenizer.eos_token_id or token in request.sampling_params.stop_token_ids:
                text.reason = "stop"
            elif request.num_output_tokens >= request.max_tokens:
                text.reason = "length"
            if text.reason is not None:
                break
        text.tokens += kept
        if not self.manager.accept_tokens(request, kept):
            text.reason, text.error = "error", "the grammar refused a sampled token"

    def close(self) -> None:
        """Ends the manager's threads."""
        self.manager.clear_backend()
