"""tokenform itself, through its public face."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import tokenform as tf
from tokenform.errors import TokenformError
from tokenform_bench.engines.base import EngineOptions, EngineRefused, Session
from tokenform_bench.vocabulary import BenchVocabulary


class _Compiled:
    def __init__(self, automaton: Any, words: int) -> None:
        self.automaton = automaton
        self.words = words

    def session(self) -> Session:
        automaton, row = self.automaton, np.zeros((1, self.words), np.uint32)
        fill_masks, step = automaton.fill_masks, automaton.advance
        state = [automaton.start]

        def advance(token: int) -> None:
            state[0] = step(state[0], token)

        def fits(token: int, left: int) -> bool:
            return bool(automaton.distance(step(state[0], token)) < left)

        def fill_within(left: int) -> None:
            row[0] = automaton.mask_within(state[0], left)

        return Session(row[0], lambda: fill_masks(state, row), advance, fits, fill_within)


class Tokenform:
    name = "tokenform"

    def __init__(self, vocabulary: BenchVocabulary, options: EngineOptions) -> None:
        try:
            self.version = version("tokenform")
        except PackageNotFoundError:
            self.version = "source"
        tf.engine.set_limits(compiled=0)  # a schema that is compiled is compiled anew, as with every engine
        self.vocabulary = tf.Vocabulary(vocabulary.tokens, eos=[vocabulary.eos], special=vocabulary.special)
        self.words = vocabulary.words
        self.options = {name: value for name, value in vars(options).items() if value is not None}

    def json_schema(self, schema: Any) -> _Compiled:
        try:
            return _Compiled(tf.json_schema(schema, **self.options).compile(self.vocabulary), self.words)
        except TokenformError as error:
            raise EngineRefused(f"{type(error).__name__}: {error}") from error

    def grammar(self, dialects: dict[str, str]) -> _Compiled:
        try:
            grammar = tf.lark(dialects["lark"]) if "lark" in dialects else tf.gbnf(dialects["ebnf"])
            return _Compiled(grammar.compile(self.vocabulary), self.words)
        except TokenformError as error:
            raise EngineRefused(f"{type(error).__name__}: {error}") from error


adapter = Tokenform
