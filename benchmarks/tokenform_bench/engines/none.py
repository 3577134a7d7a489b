"""No engine: every token always, so that a run without constraints goes through the same code."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenform_bench.engines.base import EngineOptions, Session
from tokenform_bench.vocabulary import BenchVocabulary


class _Compiled:
    def __init__(self, words: int) -> None:
        self.words = words

    def session(self) -> Session:
        return Session(np.full(self.words, 0xFFFFFFFF, np.uint32), lambda: None, lambda token: None)


class Unconstrained:
    name = "none"
    version = "-"

    def __init__(self, vocabulary: BenchVocabulary, options: EngineOptions) -> None:
        self.words = vocabulary.words

    def json_schema(self, schema: Any) -> _Compiled:
        return _Compiled(self.words)

    def grammar(self, dialects: dict[str, str]) -> _Compiled:
        return _Compiled(self.words)


adapter = Unconstrained
