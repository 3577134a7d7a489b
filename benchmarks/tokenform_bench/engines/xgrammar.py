"""XGrammar (C++, pushdown automaton): one compile thread, no cache, schemas taken as they are
(`strict_mode=False`) but for its own defaults (which close objects)."""

from __future__ import annotations

import functools
import json
from importlib.metadata import version
from typing import Any

import torch
import xgrammar

from tokenform_bench.engines.base import EngineOptions, EngineRefused, Session, spoken
from tokenform_bench.vocabulary import BenchVocabulary


class _Compiled:
    def __init__(self, compiled: Any, size: int) -> None:
        self.compiled = compiled
        self.size = size

    def session(self) -> Session:
        matcher = xgrammar.GrammarMatcher(self.compiled)
        bitmask = xgrammar.allocate_token_bitmask(1, self.size)
        row = bitmask.numpy().view("uint32")[0]
        return Session(row, functools.partial(matcher.fill_next_token_bitmask, bitmask), matcher.accept_token)


class XGrammar:
    name = "xgrammar"

    def __init__(self, vocabulary: BenchVocabulary, options: EngineOptions) -> None:
        torch.set_num_threads(1)
        self.version = version("xgrammar")
        self.size = len(vocabulary.tokens)
        special = set(vocabulary.special)
        # an empty string marks an id as special, so that its name never matches text
        tokens = [b"" if i in special else token for i, token in enumerate(vocabulary.tokens)]
        info = xgrammar.TokenizerInfo(tokens, vocab_size=self.size, stop_token_ids=[vocabulary.eos])
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.options: Any = {}
        if options.whitespace is not None:
            self.options |= {"any_whitespace": options.whitespace == "any", "strict_mode": False}
        if options.order is not None:
            self.options["any_order"] = options.order == "any"
        if options.whitespace == "compact":
            self.options["separators"] = (",", ":")
        elif options.whitespace == "indent":
            self.options["indent"] = 2

    def json_schema(self, schema: Any) -> _Compiled:
        try:
            compiled = self.compiler.compile_json_schema(json.dumps(schema), **self.options)
        except Exception as error:  # it has no common class of its own
            raise EngineRefused(f"{type(error).__name__}: {error}"[:500]) from error
        return _Compiled(compiled, self.size)

    def grammar(self, dialects: dict[str, str]) -> _Compiled:
        text = spoken(dialects, "ebnf")
        try:
            return _Compiled(self.compiler.compile_grammar(text), self.size)
        except Exception as error:
            raise EngineRefused(f"{type(error).__name__}: {error}"[:500]) from error


adapter = XGrammar
