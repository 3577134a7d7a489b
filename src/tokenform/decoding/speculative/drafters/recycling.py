"""Token recycling: what the model found likely after a token the last time.

Purpose: a matrix of each token's latest best successors, taken from *every* scored row, also of
rejected nodes; a fixed tree of ranks is filled from it, breadth first.
Invariant: row t holds the best tokens of the latest scored position whose last token was t.
Complexity: O(nodes) a proposal; one top-k of the scored rows a step; memory V x width.
Source: Luo et al. 2024 (Token recycling), section 3; matrix of 8 columns, trees of about 80 nodes.
Rejected: counts of successors (the latest context predicts better, and counts need decay).
"""

from __future__ import annotations

import heapq

import numpy as np

from tokenform.decoding.draws import RequestedOutputs

from ..tree import ROOT, DraftTree
from .base import Budget, Context, Seen, Session, Silent


class Recycling:
    """Args:
    width: successors that are kept.
    nodes: size of the tree.
    shared: sequences share one matrix; else each has its own.
    """

    name = "recycling"

    def __init__(self, width: int = 8, nodes: int = 80, shared: bool = True) -> None:
        self.width, self.nodes, self.shared = width, nodes, shared
        self.matrix: np.ndarray | None = None
        self.template = rank_tree(width, nodes)

    def session(self, context: Context) -> Session:
        if self.matrix is None or len(self.matrix) != context.vocabulary_size or not self.shared:
            matrix = np.full((context.vocabulary_size, self.width), -1, np.int32)
            if not self.shared:
                return _RecyclingSession(self, matrix)
            self.matrix = matrix
        return _RecyclingSession(self, self.matrix)


class _RecyclingSession(Silent):
    def __init__(self, drafter: Recycling, matrix: np.ndarray) -> None:
        self.drafter, self.matrix, self.wish = drafter, matrix, RequestedOutputs(best=drafter.width)

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        tree = DraftTree()
        nodes = {ROOT: (ROOT, context.tail(1)[0])}
        for i, (parent, rank, confidence) in enumerate(self.drafter.template):
            if parent not in nodes or len(tree) >= budget.nodes:
                continue
            above, last = nodes[parent]
            token = int(self.matrix[last, rank])
            if token >= 0 and (above < 0 or tree.depths[above] < budget.depth):
                nodes[i] = tree.add(above, token, self.drafter.name, confidence), token
        return tree

    def observe(self, context: Context, seen: Seen) -> None:
        best, written = seen.ranked(self.drafter.width), len(context.tokens) - len(seen.committed)
        known = best[:, 0] >= 0
        last = np.array([context.tokens[max(written - 1, 0)], *seen.tree.tokens])[known]
        self.matrix[last, : best.shape[1]] = best[known]


def rank_tree(width: int, nodes: int) -> list[tuple[int, int, float]]:
    """(parent, rank, confidence) of the `nodes` likeliest nodes if rank r succeeds with 0.5 x 0.45^r."""
    out: list[tuple[int, int, float]] = []
    heap = [(-(0.5 * 0.45**r), ROOT, r) for r in range(width)]
    heapq.heapify(heap)
    while heap and len(out) < nodes:
        chance, parent, rank = heapq.heappop(heap)
        out.append((parent, rank, 0.5 * 0.45**rank))
        for r in range(width):
            heapq.heappush(heap, (chance * 0.5 * 0.45**r, len(out) - 1, r))
    return out
