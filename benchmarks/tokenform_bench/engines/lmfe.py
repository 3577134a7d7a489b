"""lm-format-enforcer (Python): a character-level parser walked along a trie of token strings; masks as bit
tensors."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from lmformatenforcer import JsonSchemaParser, TokenEnforcer, TokenEnforcerTokenizerData

from tokenform_bench.engines.base import EngineOptions, EngineRefused, Session
from tokenform_bench.vocabulary import BenchVocabulary


class _Compiled:
    def __init__(self, schema: Any, data: Any, words: int) -> None:
        self.schema = schema
        self.data = data
        self.words = words
        self.enforcer = TokenEnforcer(data, JsonSchemaParser(schema))

    def session(self) -> Session:
        enforcer, taken = self.enforcer, list[int]()
        row = np.zeros(self.words, np.uint32)
        target = torch.from_numpy(row.view(np.int32))

        def fill() -> None:
            target.copy_(enforcer.get_allowed_tokens(taken).allowed_tokens)

        return Session(row, fill, taken.append)


class LMFormatEnforcer:
    name = "lmfe"

    def __init__(self, vocabulary: BenchVocabulary, options: EngineOptions) -> None:
        torch.set_num_threads(1)
        self.version = version("lm-format-enforcer")
        self.words = vocabulary.words
        special, tokens = set(vocabulary.special), vocabulary.tokens
        strings = [(i, t.decode("utf-8", "replace"), False) for i, t in enumerate(tokens) if i not in special]

        def decode(ids: list[int]) -> str:
            return b"".join(tokens[i] for i in ids).decode("utf-8", "replace")

        self.data = TokenEnforcerTokenizerData(strings, decode, vocabulary.eos, True, len(tokens))

    def json_schema(self, schema: Any) -> _Compiled:
        try:
            return _Compiled(schema, self.data, self.words)
        except Exception as error:  # pydantic's and its own errors alike
            raise EngineRefused(f"{type(error).__name__}: {error}"[:500]) from error

    def grammar(self, dialects: dict[str, str]) -> _Compiled:
        raise EngineRefused("it has no context-free grammars")


adapter = LMFormatEnforcer
