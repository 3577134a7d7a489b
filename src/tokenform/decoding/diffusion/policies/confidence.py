"""The most confident positions first, k a pass.

Law: the k open positions whose token is likeliest, to a thousandth; ties by position, so that rounding does
not decide among confident ones.
Source: MaskGIT (Chang et al., 2022); LLaDA's low-confidence remasking (Nie et al., 2025).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokenform.decoding.calls import check_counts
from tokenform.decoding.diffusion.policies.base import FillStep


class Confidence:
    """Args:
    count: positions a pass.
    """

    def __init__(self, count: int = 1) -> None:
        check_counts(count=count)
        self.count = count

    def choose(self, step: FillStep) -> Sequence[int]:
        order = np.argsort(-np.round(step.confidence, 3), kind="stable")
        return [step.open[place] for place in order[: self.count]]
