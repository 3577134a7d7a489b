"""TensorRT-LLM: a factory of grammar matchers, in the place of that of its `GuidedDecoder`.

Purpose: requests stay as they are (`GuidedDecodingParams`); schemas, regexes, grammars and structural tags
are enforced by this engine.  The other way is a request's own processor
(`torch_processors.TensorRTProcessor`).
Invariant: what can't be enforced raises `ValueError` where TensorRT-LLM's own factories do; a token that is
not allowed, a draft's say, is refused and changes nothing.  Texts have no bound here: the interface doesn't
tell `max_tokens`.
Source: tensorrt_llm/_torch/pyexecutor/grammar_matcher.py and guided_decoder.py of 1.2: `create(params) ->
matcher` with accept_token, rollback, fill_next_token_bitmask (int32 [rows, ceil(V / 32)] on the host) and
is_terminated.  TensorRT-LLM names its factories in one function and has no registry, so in each rank, before
the engine starts:

    from tensorrt_llm._torch.pyexecutor import guided_decoder
    from tokenform.integrations.tensorrt_llm import MatcherFactory

    guided_decoder.XGrammarMatcherFactory = MatcherFactory  # for `guided_decoding_backend="xgrammar"`
"""

from __future__ import annotations

from typing import Any

from tokenform.engine import TokenAutomaton
from tokenform.errors import OptionError, TokenformError
from tokenform.integrations.grammar_compiler import GrammarCompiler, error_text
from tokenform.integrations.request_matcher import RequestMatcher

KINDS = {
    "JSON": "json_object",
    "JSON_SCHEMA": "json",
    "REGEX": "regex",
    "EBNF_GRAMMAR": "grammar",
    "STRUCTURAL_TAG": "structural_tag",
}
"""`GuidedDecodingParams.GuideType`, by name."""


class Matcher:
    """One request's text."""

    def __init__(self, automaton: TokenAutomaton) -> None:
        self.text = RequestMatcher(automaton)

    def accept_token(self, token_id: int) -> bool:
        """Whether this was the next token; one that is not allowed changes nothing."""
        if self.text.ended() or self.text.valid([token_id]) == 0:
            return False
        return self.text.accept([token_id])

    def rollback(self, num_tokens: int) -> None:
        """Takes the last tokens back."""
        self.text.rollback(num_tokens)

    def fill_next_token_bitmask(self, next_token_bitmask: Any, index: int) -> None:
        """Writes the row of the tokens that may follow."""
        self.text.fill(next_token_bitmask.numpy(), index)

    def is_terminated(self) -> bool:
        """Whether the text has taken its end-of-text token."""
        return self.text.ended()


class MatcherFactory:
    """The matchers of one executor.

    Args:
        guided_decoding_config: `tokenizer_str` (a `tokenizer.json`) and `stop_token_ids` are read.
        vocab_size_padded: width of the logits.
        max_num_draft_tokens: not needed: any number of tokens can be taken back.
    Raises:
        OptionError: the config holds no tokenizer.
    """

    def __init__(
        self, guided_decoding_config: Any, vocab_size_padded: int, max_num_draft_tokens: int = 0
    ) -> None:
        from tokenizers import Tokenizer

        if guided_decoding_config.tokenizer_str is None:
            raise OptionError("tokenizer_str is needed: the tokenizer.json of the model, as text.")
        tokenizer = Tokenizer.from_str(guided_decoding_config.tokenizer_str)
        self.compiler = GrammarCompiler(
            tokenizer, size=vocab_size_padded, eos=guided_decoding_config.stop_token_ids or None
        )

    def create(self, guided_decoding_params: Any) -> Matcher:
        """The matcher of a request; raises `ValueError` that says what is wrong, and where."""
        kind = guided_decoding_params.guide_type.name
        try:
            if kind not in KINDS:
                raise OptionError(
                    f"there is no constraint of kind {kind!r}; choose one of {', '.join(KINDS)}."
                )
            return Matcher(self.compiler.automaton(KINDS[kind], guided_decoding_params.guide or ""))
        except TokenformError as error:
            raise ValueError(error_text(error)) from error
