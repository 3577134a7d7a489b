"""Draft trees of several sequences as rows of one table, for rules that weigh them all at once.

Invariant: a tree's rows follow each other, its root first; `levels` gives parents before their children.
Complexity: O(nodes) on the host; index numbers go to the device, nothing comes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from ..tree import ROOT, DraftTree


class Siblings(NamedTuple):
    """The j-th child of each row of a level that has so many; int64 [n] on the device.

    Attributes:
        parents, children: rows.
        tokens: of the children.
        distributions: rows of q, one for each parent.
    """

    parents: torch.Tensor
    children: torch.Tensor
    tokens: torch.Tensor
    distributions: torch.Tensor


class Forest:
    """Attributes:
    first: row of each tree's root.
    rows: how many there are.
    distributions: what children were drawn from, [V] each; row of q.
    device: where index numbers go.
    """

    def __init__(self, trees: Sequence[DraftTree], device: torch.device) -> None:
        self.trees, self.device = trees, device
        self.first: list[int] = []
        self.distributions: list[Any] = []
        self.parents: list[int] = []
        self.tokens: list[int] = []
        self._distributions: dict[int, int] = {}
        self._levels: list[list[tuple[int, list[int]]]] = []
        for tree in trees:
            root = len(self.parents)
            self.first.append(root)
            for node in range(ROOT, len(tree)):
                row = root + node + 1
                self.parents.append(row if node == ROOT else root + tree.parents[node] + 1)
                self.tokens.append(0 if node == ROOT else tree.tokens[node])
                kids = [root + kid + 1 for kid in tree.children(node)]
                if kids:
                    depth = 0 if node == ROOT else tree.depths[node]
                    while len(self._levels) <= depth:
                        self._levels.append([])
                    self._levels[depth].append((row, kids))
                    self._distributions[row] = len(self.distributions)
                    self.distributions.append(tree.distributions[node])
        self.rows = len(self.parents)

    def numbers(self, values: Sequence[int]) -> torch.Tensor:
        """int64 on the device."""
        return torch.tensor(values, dtype=torch.long, device=self.device)

    @property
    def roots(self) -> torch.Tensor:
        """bool [R]."""
        return torch.zeros(self.rows, dtype=torch.bool, device=self.device).index_fill_(
            0, self.numbers(self.first), True
        )

    def paths_through(self) -> list[int]:
        """How many drawn paths go on below each row; of a root, how many were drawn."""
        count = [0] * self.rows
        for root, tree in zip(self.first, self.trees, strict=True):
            for path in tree.paths:
                for node in path[:-1]:
                    count[root + node + 1] += 1
            count[root] = sum(1 for path in tree.paths if path)
        return count

    def levels(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, list[Siblings]]]:
        """From the roots down: the rows of a level that have children, their rows of q, their children."""
        for level in self._levels:
            rows, distributions = [row for row, _ in level], [self._distributions[row] for row, _ in level]
            yield self.numbers(rows), self.numbers(distributions), [*self._ranks(level)]

    def _ranks(self, level: list[tuple[int, list[int]]]) -> Iterator[Siblings]:
        for rank in range(max(len(kids) for _, kids in level)):
            some = [(row, kids[rank]) for row, kids in level if len(kids) > rank]
            yield Siblings(
                self.numbers([row for row, _ in some]),
                self.numbers([kid for _, kid in some]),
                self.numbers([self.tokens[kid] for _, kid in some]),
                self.numbers([self._distributions[row] for row, _ in some]),
            )
