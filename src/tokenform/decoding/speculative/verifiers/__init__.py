"""Verifiers: rules of acceptance."""

from .base import Choice, Coins, DrawnRule, TargetAtNodes, Verifier, Weights
from .best_path import BestPath
from .block import BlockRule
from .forest import Forest
from .greedy_tree import GreedyTree
from .kseq import KSeq
from .recursive import Recursive
from .sample_and_match import SampleAndMatch
from .token import TokenRule
from .traversal import Traversal

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
    "TargetAtNodes",
    "TokenRule",
    "Traversal",
    "Verifier",
    "Weights",
]
