"""llguidance (Rust, Earley over derivatives): `LLMatcher`, its default slices (its JSON slices were no
faster), masks by address."""

from __future__ import annotations

import functools
import json
from importlib.metadata import version
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from tokenform_bench.engines.base import EngineOptions, EngineRefused, Session, spoken
from tokenform_bench.vocabulary import BenchVocabulary


class _Tokenizer:
    """The attributes that TokenizerWrapper reads."""

    def __init__(self, vocabulary: BenchVocabulary) -> None:
        self.eos_token_id = vocabulary.eos
        self.bos_token_id = None
        self.tokens = vocabulary.tokens
        self.special_token_ids = vocabulary.special
        self._encode = vocabulary.encode

    def __call__(self, text: str) -> list[int]:
        return self._encode(text)


class _Compiled:
    def __init__(self, matcher: Any, words: int) -> None:
        self.matcher = matcher
        self.words = words

    def session(self) -> Session:
        matcher, row = self.matcher.deep_copy(), np.zeros(self.words, np.uint32)
        fill = functools.partial(matcher.unsafe_compute_mask_ptr, row.ctypes.data, row.nbytes)
        fill.__dict__["row"] = row  # an address keeps nothing alive
        return Session(row, fill, matcher.consume_token)


class LLGuidance:
    name = "llguidance"

    def __init__(self, vocabulary: BenchVocabulary, options: EngineOptions) -> None:
        self.version = version("llguidance")
        self.words = vocabulary.words
        wrapper = TokenizerWrapper(_Tokenizer(vocabulary))
        self.tokenizer = LLTokenizer(wrapper, n_vocab=len(vocabulary.tokens))
        spaced = {"item_separator": ", ", "key_separator": ": "} if options.whitespace == "spaced" else {}
        flexible = {"whitespace_flexible": options.whitespace in ("any", "indent")}
        self.options: Any = {} if options.whitespace is None else {**flexible, **spaced}

    def json_schema(self, schema: Any) -> _Compiled:
        return self._matcher(LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=self.options))

    def grammar(self, dialects: dict[str, str]) -> _Compiled:
        return self._matcher(LLMatcher.grammar_from_lark(spoken(dialects, "lark")))

    def _matcher(self, grammar: str) -> _Compiled:
        matcher = LLMatcher(self.tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise EngineRefused(matcher.get_error())
        return _Compiled(matcher, self.words)


adapter = LLGuidance
