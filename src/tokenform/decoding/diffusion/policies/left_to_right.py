"""The first open positions, so many a pass.

Law: the k leftmost open positions: with k = 1 the order of other language models, by one that sees
both sides.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.decoding.calls import check_counts
from tokenform.decoding.diffusion.policies.base import FillStep


class LeftToRight:
    """Args:
    count: positions a pass.
    """

    blind = True

    def __init__(self, count: int = 1) -> None:
        check_counts(count=count)
        self.count = count

    def choose(self, step: FillStep) -> Sequence[int]:
        return list(step.open[: self.count])
