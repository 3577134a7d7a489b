"""Writing with diffusion language models: all positions of a canvas at once, committed in any order."""

from __future__ import annotations

from tokenform.decoding.diffusion.denoisers import Denoiser, Masked
from tokenform.decoding.diffusion.generator import DiffusionGenerator
from tokenform.decoding.diffusion.policies import (
    Blocks,
    Confidence,
    EarlyAnswer,
    EntropyBound,
    LeftToRight,
    Policy,
    Step,
    Threshold,
)

__all__ = [
    "Blocks",
    "Confidence",
    "Denoiser",
    "DiffusionGenerator",
    "EarlyAnswer",
    "EntropyBound",
    "LeftToRight",
    "Masked",
    "Policy",
    "Step",
    "Threshold",
]
