"""Which engines there are: a name and the module that holds its adapter, imported on demand."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable

from tokenform_bench.engines.base import Engine, EngineMissing, EngineOptions
from tokenform_bench.vocabulary import BenchVocabulary

_PACKAGES = {
    "tokenform": "tokenform",
    "llguidance": "llguidance",
    "xgrammar": "xgrammar",
    "outlines_core": "outlines_core",
    "lmfe": "lmformatenforcer",
    "glrmask": "glrmask",
    "none": "tokenform",
}
ENGINES = tuple(_PACKAGES)


def missing(names: Iterable[str]) -> list[str]:
    """Those of the engines whose package isn't installed; nothing is imported."""
    return [name for name in names if importlib.util.find_spec(_PACKAGES[name]) is None]


def load(name: str, vocabulary: BenchVocabulary, options: EngineOptions) -> Engine:
    """The engine's adapter, ready with the vocabulary.

    Raises:
        EngineMissing: no such engine, or its package isn't installed.
    """
    if name not in ENGINES:
        raise EngineMissing(f"no engine {name!r}: there are {', '.join(ENGINES)}")
    try:
        module = importlib.import_module(f"tokenform_bench.engines.{name}")
    except ImportError as error:
        raise EngineMissing(f"engine {name} is not installed: {error}") from error
    engine: Engine = module.adapter(vocabulary, options)
    return engine
