"""Verifiers: rules of acceptance."""

from .base import Choice, Coins, DrawnRule, Weights
from .best_path import BestPath
from .block import BlockRule
from .forest import Forest
from .greedy_tree import GreedyTree
from .kseq import KSeq
from .recursive import Recursive
from .sample_and_match import SampleAndMatch
from .token import TokenRule
from .traversal import Traversal

Verifier = SampleAndMatch | DrawnRule
"""A rule of acceptance; a new one is a `DrawnRule`."""

__all__ = [
    "BestPath",
    "BlockRule",
    "Choice",
    "Coins",
    "DrawnRule",
    "Forest",
    "GreedyTree",
    "KSeq",
    "Recursive",
    "SampleAndMatch",
    "TokenRule",
    "Traversal",
    "Verifier",
    "Weights",
]
