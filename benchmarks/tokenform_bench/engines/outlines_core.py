"""outlines-core (Rust): the schema becomes one regular expression, and that an index of token transitions."""

from __future__ import annotations

import functools
import json
from importlib.metadata import version
from typing import Any

import numpy as np
from outlines_core import Guide, Index, Vocabulary
from outlines_core.json_schema import build_regex_from_schema

from tokenform_bench.engines.base import EngineOptions, EngineRefused, Session
from tokenform_bench.vocabulary import BenchVocabulary

_WHITESPACE = {"any": r"[ \n\r\t]*", "compact": "", "spaced": "[ ]?", "indent": r"[ \n]*"}


class _Compiled:
    def __init__(self, index: Any, words: int) -> None:
        self.index = index
        self.words = words

    def session(self) -> Session:
        guide, row = Guide(self.index), np.zeros(self.words, np.uint32)
        fill = functools.partial(guide.write_mask_into, row.ctypes.data, row.size, row.itemsize)
        fill.__dict__["row"] = row  # an address keeps nothing alive
        return Session(row, fill, functools.partial(guide.advance, return_tokens=False))


class OutlinesCore:
    name = "outlines_core"

    def __init__(self, vocabulary: BenchVocabulary, options: EngineOptions) -> None:
        self.version = version("outlines_core")
        self.words = vocabulary.words
        self.whitespace = None if options.whitespace is None else _WHITESPACE[options.whitespace]
        special = set(vocabulary.special)
        by_bytes: dict[bytes, list[int]] = {}
        for i, token in enumerate(vocabulary.tokens):
            if i not in special:
                by_bytes.setdefault(token, []).append(i)
        self.vocabulary = Vocabulary(vocabulary.eos, by_bytes)

    def json_schema(self, schema: Any) -> _Compiled:
        try:
            regex = build_regex_from_schema(json.dumps(schema), self.whitespace)
            return _Compiled(Index(regex, self.vocabulary), self.words)
        except Exception as error:  # ValueError, TypeError and classes of its own
            raise EngineRefused(f"{type(error).__name__}: {error}"[:500]) from error

    def grammar(self, dialects: dict[str, str]) -> _Compiled:
        raise EngineRefused("it has no context-free grammars")


adapter = OutlinesCore
