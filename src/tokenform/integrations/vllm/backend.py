"""vLLM's two interfaces over this engine: a backend for each engine, a grammar for each request.

Purpose: `VllmBackend` compiles what requests ask for; `VllmGrammar` follows one request's text.
Invariant: nothing raises into the scheduler's loop (`text.py`): what fails there ends one request.
Threads: grammars compile in vLLM's pool and are filled from several threads, each by one at a time.
Source: vllm/v1/structured_output/backend_types.py, the same in 0.32 and 0.33.
Complexity: a row of a state that was met is a copy; see `docs/engine.md`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from tokenform.decoding.decoder import bytes_encoder
from tokenform.engine import TokenAutomaton
from tokenform.engine.packed import mask_words
from tokenform.integrations.drafts import Drafts, RequestDrafts
from tokenform.integrations.grammar_compiler import AHEAD, GrammarCompiler
from tokenform.integrations.request_matcher import OPEN, RequestMatcher, fill_rows

THREADS = max(1, min((os.cpu_count() or 1) // 2, 8))
"""Threads of a step's masks that are not there yet, as many as vLLM itself takes for them."""

WITH_DOCUMENTS = ("JSON", "JSON_OBJECT", "STRUCTURAL_TAG")
"""Kinds of requests to which options of `json_schema` apply."""


class VllmGrammar(RequestMatcher, StructuredOutputGrammar):  # type: ignore[misc]
    """One request's text: vLLM's names for what `Text` does.

    Args:
        automaton: its constraint.
        backend: whose rows are filled.
        left: says how many tokens the text may have, as of `Text`.
        drafts: of this request; None: the engine's own alone.
    """

    def __init__(
        self,
        automaton: TokenAutomaton,
        backend: VllmBackend,
        left: Callable[[], int] | None = None,
        drafts: RequestDrafts | None = None,
    ) -> None:
        super().__init__(automaton, left)
        self._backend, self._drafts = backend, drafts

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Whether the tokens are the text's next; those after its end don't matter."""
        try:  # as `accept`, whose frame would be a sixth of this
            (self.going or self.begin()).accept_tokens(tokens)
            return True
        except BaseException as error:
            return self.refused(tokens, error)

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The tokens up to the first that is not allowed; the text stays where it is."""
        return tokens[: self.valid(tokens)]

    def drafted(self, tokens: Sequence[int], most: int) -> list[int]:
        """At most `most` tokens that are likely next and allowed one after the other.

        Args:
            tokens: the request's: its prompt, then all that it has written.
        """
        if self._drafts is None or self.going is None or self.going.is_terminated():
            return []
        return self.validate_tokens(self._drafts.propose(self.going, tokens, most))

    def read_ahead(self, prompt: Sequence[int]) -> None:
        """Reads the prompt for the drafts where no step waits for it."""
        if self._drafts is not None and self.going is not None:
            self._drafts.read_ahead(self.going, prompt)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Writes the row of the tokens that may follow: int32 [rows, ceil(V / 32)] on the CPU."""
        self.fill(self._backend.words(bitmask), batch_index)

    def is_terminated(self) -> bool:
        """Whether the text has taken its end-of-text token."""
        return self.ended()


class VllmBackend(StructuredOutputBackend):  # type: ignore[misc]
    """One engine's constraints.

    Args:
        vllm_config: the engine's; its flags for documents are read.
        tokenizer: the model's.
        vocab_size: width of the logits, padding included.
    """

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        super().__init__(vllm_config, tokenizer, vocab_size)
        self.asked = GrammarCompiler(self.tokenizer, size=self.vocab_size, ahead=AHEAD)
        self.options = json_options(self.vllm_config.structured_outputs_config)
        self._filled: tuple[torch.Tensor, Any] | None = None
        self.drafts: Drafts | None = None
        if drafts_itself(vllm_config):
            vocabulary = self.asked.vocabulary
            self.drafts = Drafts(vocabulary, bytes_encoder(self.tokenizer, vocabulary))

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> VllmGrammar:
        """The grammar of a request of no bounded length; see `grammar_within`."""
        return VllmGrammar(self._automaton(request_type, grammar_spec, stop_token_ids), self)

    def grammar_within(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None,
        left: Callable[[], int],
        prompt: Sequence[int] | None = None,
        **options: Any,
    ) -> VllmGrammar:
        """The same for a text that ends within the tokens that are left when it begins.

        prompt: of a request whose thoughts vLLM does not tell apart, see `GrammarCompiler.automaton`.
        """
        automaton = self._automaton(request_type, grammar_spec, stop_token_ids, prompt, **options)
        drafts = None
        if self.drafts is not None:
            kind, chosen = request_type.name, self._chosen(request_type, options)
            grammar = self.asked.grammar(kind.lower(), grammar_spec, **chosen).for_writing
            drafts = self.drafts.request(grammar)
        return VllmGrammar(automaton, self, left, drafts)

    def _automaton(
        self,
        kind: StructuredOutputOptions,
        text: str,
        stops: set[int] | None,
        prompt: Sequence[int] | None = None,
        **options: Any,
    ) -> TokenAutomaton:
        chosen = self._chosen(kind, options)
        return self.asked.automaton(kind.name.lower(), text, stop_token_ids=stops, prompt=prompt, **chosen)

    def _chosen(self, kind: StructuredOutputOptions, options: dict[str, Any]) -> dict[str, Any]:
        return {**self.options, **options} if kind.name in WITH_DOCUMENTS else {}

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Rows of open masks: int32 [max_num_seqs, ceil(V / 32)], pinned where there is a GPU."""
        bitmask = torch.full(
            (max_num_seqs, mask_words(self.vocab_size)),
            OPEN,
            dtype=torch.int32,
            pin_memory=torch.cuda.is_available(),
        )
        self._filled = (bitmask, bitmask.numpy())
        return bitmask

    def fill_blocks(
        self,
        bitmask: torch.Tensor,
        grammars: Sequence[VllmGrammar],
        drafts: Sequence[Sequence[int]] | None = None,
        rows: Sequence[int] | None = None,
    ) -> bool:
        """A step's rows in one call, as of `fill_rows`; whether all of them were written."""
        return fill_rows(grammars, self.words(bitmask), drafts, rows, THREADS)

    def words(self, bitmask: torch.Tensor) -> Any:
        """The tensor as an array; that of the tensor that is filled at each step is kept."""
        filled = self._filled
        if filled is not None and filled[0] is bitmask:
            return filled[1]
        return bitmask.numpy()

    def destroy(self) -> None:
        """Lets go of what was compiled."""
        del self.asked
        self._filled = None


def drafts_itself(vllm_config: Any) -> bool:
    """Whether the engine drafts without a model, so that its test of drafts fits any that are guessed: one
    that knows the probabilities of its own drafts takes no others.
    """
    return getattr(vllm_config.speculative_config, "method", None) in ("ngram", "suffix", "custom_class")


def json_options(config: Any) -> dict[str, Any]:
    """The options of `json_schema` that vLLM's flags stand for: those of an engine's
    `structured_outputs_config`, or of a request's `structured_outputs`.
    """
    chosen: dict[str, Any] = {}
    if getattr(config, "disable_any_whitespace", False):
        chosen["whitespace"] = "compact"
    if getattr(config, "disable_additional_properties", False):
        chosen["additional"] = "forbid"
    return chosen
