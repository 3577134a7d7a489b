"""Which engines there are: a name and the module that holds its adapter, imported on demand."""

from __future__ import annotations

import importlib

from tokenform.bench.engines.base import Engine, EngineMissing, EngineOptions
from tokenform.bench.vocabulary import BenchVocabulary

ENGINES = ("tokenform", "llguidance", "xgrammar", "outlines_core", "lmfe", "none")


def load(name: str, vocabulary: BenchVocabulary, options: EngineOptions) -> Engine:
    """The engine's adapter, ready with the vocabulary.

    Raises:
        EngineMissing: no such engine, or its package isn't installed.
    """
    if name not in ENGINES:
        raise EngineMissing(f"no engine {name!r}: there are {', '.join(ENGINES)}")
    try:
        module = importlib.import_module(f"tokenform.bench.engines.{name}")
    except ImportError as error:
        raise EngineMissing(f"engine {name} is not installed: {error}") from error
    engine: Engine = module.adapter(vocabulary, options)
    return engine
