"""Near confident positions less confidence is enough.

Law: open positions whose token has at least the probability `least` are anchors; they are committed, and so
are those at most `radius` positions from one whose token has at least the probability `near`.
Source: LocalLeap (Kong et al., 2025), "local determinism propagation".
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.decoding.diffusion.policies.base import FillStep
from tokenform.errors import OptionError


class LocalDeterminism:
    """Args:
    least: probability of an anchor.
    near: probability that is enough beside one.
    radius: in positions.
    """

    def __init__(self, least: float = 0.9, near: float = 0.75, radius: int = 4) -> None:
        if not 0 <= near <= least <= 1 or radius < 0:
            raise OptionError("least and near are probabilities, near the smaller, and radius is at least 0.")
        self.least, self.near, self.radius = least, near, radius

    def choose(self, step: FillStep) -> Sequence[int]:
        sure = list(zip(step.open, step.confidence, strict=True))
        anchors = [at for at, chance in sure if chance >= self.least]
        return [
            at
            for at, chance in sure
            if chance >= self.near and any(abs(at - anchor) <= self.radius for anchor in anchors)
        ]
