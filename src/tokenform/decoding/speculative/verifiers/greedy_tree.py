"""Greedy tree: follow the best token of each node while it is drafted.

For greedy targets only, where it is sample-and-match without a draw.
Source: Miao et al. 2024 (SpecInfer), VerifyGreedy.
"""

from __future__ import annotations

import numpy as np

from tokenform.errors import OptionError

from .base import TargetAtNodes
from .sample_and_match import SampleAndMatch


class GreedyTree(SampleAndMatch):
    """Raises OptionError if the target's distribution is no point mass."""

    def _token(self, target: TargetAtNodes, node: int) -> int:
        distribution = target.distribution(node)
        token = int(np.argmax(distribution))
        if distribution[token] < 1 - 1e-9:
            raise OptionError("GreedyTree verifies greedy targets alone; use SampleAndMatch to sample")
        return token
