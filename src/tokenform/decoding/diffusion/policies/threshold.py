"""All positions above a confidence.

Law: every open position whose token has at least so much probability.
Source: Fast-dLLM (Wu et al., 2025), "confidence-aware parallel decoding".
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.decoding.diffusion.policies.base import FillStep
from tokenform.errors import OptionError


class Threshold:
    """Args:
    least: probability from which a token is committed.
    """

    def __init__(self, least: float = 0.9) -> None:
        if not 0 <= least <= 1:
            raise OptionError(f"least={least} is not possible; give a probability.")
        self.least = least

    def choose(self, step: FillStep) -> Sequence[int]:
        return [at for at, sure in zip(step.open, step.confidence, strict=True) if sure >= self.least]
