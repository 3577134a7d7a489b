"""As many of the most confident positions as hardly depend on each other.

Law: open positions by ascending entropy, as long as the sum of their entropies without the largest, which
bounds their mutual information, is at most the bound.
Source: Ben-Hamu et al., 2025 ("Accelerated sampling from masked diffusion models via entropy bounded
unmasking"); the sampler of DiffusionGemma.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokenform.decoding.diffusion.policies.base import FillStep
from tokenform.errors import OptionError


class EntropyBound:
    """Args:
    bound: in nats.
    """

    blind = True

    def __init__(self, bound: float = 0.1) -> None:
        if not bound >= 0:
            raise OptionError(f"bound={bound} is not possible; give a number of at least 0.")
        self.bound = bound

    def choose(self, step: FillStep) -> Sequence[int]:
        order = np.argsort(step.entropy, kind="stable")
        before = np.cumsum(step.entropy[order]) - step.entropy[order]
        return [step.open[place] for place in order[before <= self.bound]]
