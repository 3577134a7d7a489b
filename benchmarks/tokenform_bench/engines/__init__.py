"""One adapter protocol over the engines that are compared; each engine is a file and an optional install."""

from __future__ import annotations

from tokenform_bench.engines.base import (
    OWN,
    Compiled,
    Engine,
    EngineMissing,
    EngineOptions,
    EngineRefused,
    Session,
)
from tokenform_bench.engines.registry import ENGINES, load, missing

__all__ = [
    "ENGINES",
    "OWN",
    "Compiled",
    "Engine",
    "EngineMissing",
    "EngineOptions",
    "EngineRefused",
    "Session",
    "load",
    "missing",
]
