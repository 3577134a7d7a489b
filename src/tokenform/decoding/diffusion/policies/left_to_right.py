"""The first open positions, so many a pass.

Law: the k leftmost open positions: with k = 1 the order of other language models, by one that sees
both sides.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.decoding.diffusion.policies.base import FillStep
from tokenform.errors import OptionError


class LeftToRight:
    """Args:
    count: positions a pass.
    """

    blind = True

    def __init__(self, count: int = 1) -> None:
        if count < 1:
            raise OptionError(f"count={count} is not possible; give a whole number of at least 1.")
        self.count = count

    def choose(self, step: FillStep) -> Sequence[int]:
        return list(step.open[: self.count])
