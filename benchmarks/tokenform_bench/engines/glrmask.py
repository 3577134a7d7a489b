"""GLRMask (Rust, a GLR parser with masks computed ahead): its own `from_json_schema` and `from_lark`."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
from glrmask import Grammar, Vocab

from tokenform_bench.engines.base import EngineOptions, EngineRefused, Session, spoken
from tokenform_bench.vocabulary import BenchVocabulary


class _Compiled:
    def __init__(self, constraint: Any, words: int, eos: int) -> None:
        self.constraint, self.words, self.eos = constraint, words, eos

    def session(self) -> Session:
        state, row = self.constraint.start(), np.zeros(self.words, np.uint32)
        fill_mask, commit, accepts = state.fill_mask, state.commit_token, state.is_accepting
        signed, eos = row.view(np.int32), self.eos
        word, bit = eos >> 5, np.uint32(1 << (eos & 31))

        def fill() -> None:  # the end is the host's: a text may end where it is accepted
            fill_mask(signed)
            if accepts():
                row[word] |= bit

        def advance(token: int) -> bool:
            return bool(accepts() if token == eos else commit(token))

        return Session(row, fill, advance)


class GLRMask:
    name = "glrmask"

    def __init__(self, vocabulary: BenchVocabulary, options: EngineOptions) -> None:
        del options  # it has none
        self.version = version("glrmask")
        self.words, self.eos = vocabulary.words, vocabulary.eos
        hidden = {*vocabulary.special, vocabulary.eos}
        known = {i: token for i, token in enumerate(vocabulary.tokens) if i not in hidden}
        self.vocabulary = Vocab.from_id_to_bytes(known)

    def json_schema(self, schema: Any) -> _Compiled:
        return self._compiled(Grammar.from_json_schema, schema)

    def grammar(self, dialects: dict[str, str]) -> _Compiled:
        return self._compiled(Grammar.from_lark, spoken(dialects, "lark"))

    def _compiled(self, read: Any, source: Any) -> _Compiled:
        try:
            constraint = read(source).compile(self.vocabulary)
        except Exception as error:  # ValueError, and classes of its own
            raise EngineRefused(f"{type(error).__name__}: {error}"[:500]) from error
        return _Compiled(constraint, self.words, self.eos)


adapter = GLRMask
