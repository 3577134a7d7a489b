"""Writing with diffusion language models: all positions of a canvas at once, committed in any order."""

from __future__ import annotations

from typing import Any

from tokenform.decoding.diffusion.denoisers import Denoiser, MaskedDenoiser
from tokenform.decoding.diffusion.generator import DiffusionGenerator
from tokenform.decoding.diffusion.policies import (
    AdaptiveParallel,
    Blocks,
    Confidence,
    Credit,
    EarlyAnswer,
    EntropyBound,
    FillPolicy,
    FillStep,
    LeftToRight,
    LocalDeterminism,
    SelfDraft,
    Threshold,
)
from tokenform.errors import warn_outside

__all__ = [
    "AdaptiveParallel",
    "Blocks",
    "Confidence",
    "Credit",
    "Denoiser",
    "DiffusionGenerator",
    "EarlyAnswer",
    "EntropyBound",
    "FillPolicy",
    "FillStep",
    "LeftToRight",
    "LocalDeterminism",
    "MaskedDenoiser",
    "SelfDraft",
    "Threshold",
]

_OLD = {"Masked": "MaskedDenoiser", "Policy": "FillPolicy", "Step": "FillStep"}


def __getattr__(name: str) -> Any:
    if name not in _OLD:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_outside(f"{__name__}.{name} is {_OLD[name]} now.", DeprecationWarning)
    return globals()[_OLD[name]]
