"""Greedy tree: follow the best token of each node while it is drafted.

For greedy targets only, where it is sample-and-match without a draw.
Source: Miao et al. 2024 (SpecInfer), VerifyGreedy.
"""

from __future__ import annotations

from .sample_and_match import SampleAndMatch


class GreedyTree(SampleAndMatch):
    """A text whose sampler is not greedy ends with OptionError."""

    greedy = True
