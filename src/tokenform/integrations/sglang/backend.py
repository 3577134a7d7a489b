"""SGLang's two interfaces over this engine: a backend for each server, a grammar for each request.

Purpose: `SglangBackend` compiles the constraints of requests; `SglangGrammar` follows one request's text, in
chains of drafts and in trees of them.
Invariant: a constraint that is wrong becomes an `InvalidGrammarObject` (a 400), never an exception.  A token
that is not allowed raises `ValueError`, with which SGLang ends that request alone.
Complexity: a cached row is a copy; a batch of rows is one call.
Memory: the last `KEPT` constraints, here and in SGLang's wrapper for thoughts.
Source: sglang/srt/constrained/base_grammar_backend.py of 0.5.23.
"""

from __future__ import annotations

import functools
import logging
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    GrammarStats,
    InvalidGrammarObject,
    register_vocab_mask_buffer,
)

from tokenform.decoding.recent import Recent
from tokenform.engine import TokenAutomaton
from tokenform.engine.packed import mask_words
from tokenform.errors import BudgetTooSmall, TokenformError
from tokenform.integrations.grammar_compiler import AHEAD, KEPT, GrammarCompiler, error_text
from tokenform.integrations.request_matcher import OPEN, RequestMatcher, fill_rows
from tokenform.masking.apply import apply_mask_

logger = logging.getLogger("sglang.tokenform")


class SglangGrammar(BaseGrammarObject):  # type: ignore[misc]
    """One request's text.

    Args:
        automaton: its constraint.
        kind: of constraint, for SGLang's figures.
        compile_after: the automaton of the same constraint after a prompt.
    """

    def __init__(
        self, automaton: TokenAutomaton, kind: str, compile_after: Callable[..., TokenAutomaton]
    ) -> None:
        super().__init__()
        self._automaton = automaton
        self._kind = kind
        self._compile_after = compile_after
        self.text = RequestMatcher(automaton)
        self.grammar_stats = GrammarStats(dispatch_type=kind)

    def begin(self, prompt: Sequence[int]) -> None:
        """Before the first token, where SGLang does not handle thoughts: the constraint begins after a
        thought that the prompt has left open.
        """
        automaton = self._compile_after(prompt=prompt)
        if automaton is not self._automaton:
            self._automaton, self.text = automaton, RequestMatcher(automaton)

    def limit(self, tokens_left: Callable[[], int]) -> None:
        """Before the first token: limits the text, its end-of-text token included; `tokens_left` is called
        when it begins.
        """
        self.text = RequestMatcher(self._automaton, tokens_left)

    def check(self, max_new_tokens: int) -> None:
        """Raises `BudgetTooSmall` where no complete text is so short."""
        self.text.check(max_new_tokens)

    def accept_token(self, token: int) -> None:
        """Takes the next token; raises `ValueError` where it is not allowed."""
        if not self.text.accept([token]):
            raise ValueError(f"tokenform: the token {token} is not allowed, or the text has failed")
        self.current_token = token

    def rollback(self, k: int) -> None:
        """Takes the last k tokens back."""
        self.text.rollback(k)

    def is_terminated(self) -> bool:
        """Whether the text has taken its end-of-text token."""
        return self.text.ended()

    def copy(self) -> SglangGrammar:
        """The same constraint for another request, before its first token."""
        return SglangGrammar(self._automaton, self._kind, self._compile_after)

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Open rows: int32 [batch_size, ceil(V / 32)] on the CPU."""
        return open_rows(batch_size, self._automaton.mask_words)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Writes the row of the tokens that may follow."""
        self.text.fill(vocab_mask.numpy(), idx)

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """Writes a row for each entry: in one call, or where that fails one by one, each on its own."""
        ours = [one for one in entries if isinstance(one.grammar, SglangGrammar)]
        if len(ours) < len(entries) or not fill_rows(
            [one.grammar.text for one in ours], vocab_mask.numpy(), rows=[one.row for one in ours]
        ):
            for entry in entries:
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Opens every row."""
        vocab_mask.fill_(OPEN)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """The rows on the device."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Writes -inf into the logits [B, V] of what the rows forbid."""
        apply_mask_(logits, vocab_mask)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The forced tokens, if any."""
        forced = self.text.forced()
        return (forced, "") if forced else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """Nothing: tokens are given, not text."""
        return "", -1

    def jump_and_retokenize(self, old: Sequence[int], new: Sequence[int], next_state: int) -> None:
        """Nothing: tokens stay as they are."""


class SglangBackend(BaseGrammarBackend):  # type: ignore[misc]
    """One server's constraints.

    Args:
        tokenizer: the model's.
        vocab_size: width of the logits, padding included.
        eos_token_ids: the ids that end the model's texts.
        whitespace: option of `json_schema` for every document.
    """

    def __init__(
        self,
        tokenizer: Any,
        vocab_size: int,
        eos_token_ids: Iterable[int] | None = None,
        *,
        whitespace: str = "natural",
    ) -> None:
        super().__init__()
        self.compiler = GrammarCompiler(tokenizer, size=vocab_size, eos=eos_token_ids or None, ahead=AHEAD)
        self._options = {"whitespace": whitespace}
        self.cache = LastGrammars()

    def initialize_vocab_mask_buffer(
        self, name: str, vocab_size: int, max_rows: int, device: Any
    ) -> torch.Tensor:
        """The rows that are filled at each step."""
        rows = open_rows(max_rows, mask_words(self.compiler.vocabulary.size))
        buffer: torch.Tensor = register_vocab_mask_buffer(name, rows, max_rows)
        return buffer

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Open rows: int32 [batch_size, ceil(V / 32)] on the CPU."""
        return open_rows(batch_size, mask_words(self.compiler.vocabulary.size))

    move_vocab_mask = staticmethod(SglangGrammar.move_vocab_mask)
    apply_vocab_mask = staticmethod(SglangGrammar.apply_vocab_mask)

    @property
    def is_support_token_filter(self) -> bool:
        """Single tokens of a row may be set: strict thinking works."""
        return True

    def set_token_filter(
        self,
        vocab_mask: torch.Tensor,
        token_ids: Iterable[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allows tokens of a row, or forbids them; with `reset_vocab_mask` the others the other way round."""
        row = vocab_mask[batch_idx].numpy().view(np.uint32)
        if reset_vocab_mask:
            row[:] = 0 if is_allowed else 0xFFFFFFFF
        for token in token_ids:
            bit = np.uint32(1 << token % 32)
            row[token // 32] = row[token // 32] | bit if is_allowed else row[token // 32] & ~bit

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """A JSON Schema."""
        return self._grammar("json", key_string, **self._options)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """A regular expression, for the whole text."""
        return self._grammar("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """A grammar, in GBNF or Lark's language."""
        return self._grammar("grammar", key_string)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """Free text with constrained parts."""
        return self._grammar("structural_tag", key_string)

    def _grammar(self, kind: str, text: str, **options: Any) -> BaseGrammarObject:
        try:
            compile_after = functools.partial(self.compiler.automaton, kind, text, **options)
            return SglangGrammar(compile_after(), kind, compile_after)
        except TokenformError as error:
            logger.info("a %s was refused: %s", kind, error)
            return InvalidGrammarObject(error_text(error))


class LastGrammars(Recent[Any, Any]):
    """The last `KEPT` grammars by their keys; SGLang's own table grows without end."""

    def __init__(self) -> None:
        super().__init__(KEPT)

    def get(self, key: Any, default: Any = None) -> Any:
        """The grammar, which becomes the most recent one."""
        if key not in self:
            return default
        self.move_to_end(key)
        return self[key]


def open_rows(rows: int, words: int) -> torch.Tensor:
    """Rows that allow everything, int32 [rows, words], pinned where there is a GPU."""
    pinned = torch.cuda.is_available()
    return torch.full((rows, words), OPEN, dtype=torch.int32, pin_memory=pinned)


def limit(request: Any) -> None:
    """Makes a request's text end within its `max_new_tokens`, thoughts before it included; a request that has
    too few ends with an error.
    """
    outer, most = request.grammar, request.sampling_params.max_new_tokens
    inner = getattr(outer, "grammar", outer)  # a model that thinks first has a wrapper around it
    if not isinstance(inner, SglangGrammar):
        return
    if inner is outer:
        inner.begin(request.origin_input_ids)
    if most is None:
        return
    if inner is outer:
        try:
            inner.check(most)
        except BudgetTooSmall as error:
            request.set_finish_with_abort(error_text(error))
            return
    reference = weakref.ref(request)
    inner.limit(lambda: 0 if (one := reference()) is None else most - len(one.output_ids))
