"""The best of K independently drawn paths, then block verification.

At each node tokens are ordered by p / q, ascending; of the K paths the lexicographically
largest is kept.  With c the mass (under q) of all paths below the prefix's range and m the mass
of the prefix, and c_x = c + m x (mass of the tokens before x), the law with which the kept path goes on is
q'(x | prefix) = [(c_x + m q(x))^K - c_x^K] / [(c + m)^K - c^K], the maximum of K uniform draws
falling into x's share of the prefix's interval.  Block verification with q' for q is then exact.
Source: the construction agrees with "Greedy multi-path block verification" (2025); K = 1 is
block verification.
Rejected: ordering by q (accepts less than one path alone on some laws).
"""

from __future__ import annotations

import numpy as np

from tokenform.errors import DrafterError

from ..tree import ROOT, DraftTree
from .base import Choice, TargetAtNodes, draft_law
from .block import verify_block


class BestPath:
    """Needs trees of independently drawn paths of one length (`tree.paths`)."""

    drawn = True

    def verify(self, tree: DraftTree, target: TargetAtNodes, choice: Choice) -> list[int]:
        if len(tree) and not tree.paths:
            raise DrafterError("the best of several paths needs independently drawn paths; draft with paths")
        paths, count = [p for p in tree.paths if p], len(tree.paths)
        path: list[int] = []
        laws: list[np.ndarray] = []
        node, below, mass = ROOT, 0.0, 1.0
        while paths:
            p, q = target.law(node), draft_law(tree, node)
            rank = np.empty(len(q), np.int64)
            rank[order(p, q)] = np.arange(len(q))
            start = np.empty(len(q))
            by_rank = np.argsort(rank)
            start[by_rank] = np.concatenate([[0.0], np.cumsum(q[by_rank])[:-1]])
            laws.append(largest_law(below, mass, start, q, count))
            node = max((way[len(path)] for way in paths), key=lambda n: rank[tree.tokens[n]])
            x = tree.tokens[node]
            below, mass = below + mass * start[x], mass * q[x]
            path.append(node)
            paths = [way for way in paths if way[len(path) - 1] == node and len(way) > len(path)]
        return verify_block(tree, path, laws, target, choice)


def order(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Tokens by p / q ascending, then by id; tokens that are never drawn come first."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(q > 0, p / q, -1.0)
    return np.argsort(ratio, kind="stable")


def largest_law(below: float, mass: float, start: np.ndarray, q: np.ndarray, count: int) -> np.ndarray:
    """q'(. | prefix), float64 [V], sums to one."""
    low = below + mass * start
    law = (low + mass * q) ** count - low**count
    law[q <= 0] = 0.0
    total = law.sum()
    return law / total if total > 0 else q
