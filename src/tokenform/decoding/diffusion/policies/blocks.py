"""Block by block from left to right, any order within a block.

Law: the first block with an open position is committed by another policy, which sees that block alone.
Source: semi-autoregressive decoding of LLaDA (Nie et al., 2025); block diffusion (Arriola et al., 2025).
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.decoding.calls import check_counts
from tokenform.decoding.diffusion.policies.base import FillPolicy, FillStep
from tokenform.decoding.diffusion.policies.threshold import Threshold


class Blocks:
    """Args:
    size: positions of a block.
    within: the policy inside a block.
    """

    def __init__(self, size: int = 32, within: FillPolicy | None = None) -> None:
        check_counts(size=size)
        self.size, self.within = size, Threshold() if within is None else within

    @property
    def blind(self) -> bool:
        return getattr(self.within, "blind", False)

    def choose(self, step: FillStep) -> Sequence[int]:
        end = (step.open[0] // self.size + 1) * self.size
        block = step.only([place for place, at in enumerate(step.open) if at < end])
        chosen = self.within.choose(block)
        return chosen or [max(zip(block.confidence, block.open, strict=True), key=lambda pair: pair[0])[1]]
