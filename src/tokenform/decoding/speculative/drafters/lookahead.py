"""Lookahead decoding: the model's own Jacobi iteration makes n-grams, which are then tried.

Purpose: a window of `columns` guessed tokens ahead is improved by every forward pass: the token
that the model gives after a guess becomes the guess at the next level.  N guesses that
follow each other in a column are an n-gram; n-grams that begin with the last committed token
are drafts.
Invariant: the window is a part of the draft tree (a chain of first-level guesses, and below each
one its column), so guesses are scored, pruned and verified like any draft.
Complexity: (levels)(columns) + (levels)(drafts) nodes a step; memory: `kept` n-grams a token.
Source: Fu et al. 2024 (Lookahead decoding), sections 3.1 and 3.2.
Rejected: a mask of its own for the window (a tree has the same ancestors).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import torch

from tokenform.errors import OptionError

from ..tree import ROOT, DraftTree
from .base import Budget, Context, Session, Silent


class Lookahead:
    """Args:
    columns: W, guesses ahead.
    size: N, tokens of an n-gram after its first.
    drafts: G, n-grams that are tried.
    kept: n-grams that are kept for each first token.
    """

    name, drawn = "lookahead", False

    def __init__(self, columns: int = 6, size: int = 3, drafts: int = 4, kept: int = 12) -> None:
        if columns < 1 or size < 2 or drafts < 1:
            raise OptionError("lookahead needs at least 1 column, n-grams of 2 and 1 draft")
        self.columns, self.size, self.drafts, self.kept = columns, size, drafts, kept

    def session(self, context: Context) -> Session:
        return _LookaheadSession(self, context)


class _LookaheadSession(Silent):
    def __init__(self, drafter: Lookahead, context: Context) -> None:
        self.drafter = drafter
        self.pool: dict[int, deque[tuple[int, ...]]] = {}
        tokens = context.tokens
        self.columns = [[tokens[(7 * i) % len(tokens)]] for i in range(drafter.columns)]

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        d, tree = self.drafter, DraftTree()
        if context.path:
            return tree
        for gram in list(self.pool.get(context.tail(1)[0], ()))[: d.drafts]:
            if len(tree) + len(gram) <= budget.nodes:
                tree.add_path(ROOT, gram[: budget.depth], d.name, 0.5)
        node = ROOT
        for i, column in enumerate(self.columns):
            if i >= budget.depth or len(tree) + len(column) > budget.nodes:
                break
            node = tree.add(node, column[0], d.name, 0.05)
            tree.add_path(node, column[1 : budget.depth - i], d.name, 0.3)
        return tree

    def observe(
        self,
        context: Context,
        committed: Sequence[int],
        tree: DraftTree,
        visited: Sequence[int],
        logits: torch.Tensor,
    ) -> None:
        chain: list[int] = []
        best = logits.argmax(-1).tolist()
        for column in self.columns:
            chain.append(column[0])
            nodes = tree.walk([*chain, *column[1:]])
            if len(nodes) < len(chain) + len(column) - 1:
                break
            column.append(best[nodes[-1] + 1])
            if len(column) > self.drafter.size:
                self._learn(column)
        self._shift(len(committed), best[0])

    def _learn(self, column: list[int]) -> None:
        grams = self.pool.setdefault(column[0], deque(maxlen=self.drafter.kept))
        gram = tuple(column[1:])
        if gram in grams:
            grams.remove(gram)
        grams.appendleft(gram)
        del column[0]

    def _shift(self, committed: int, guess: int) -> None:
        """The window moves on with the text; what leaves it comes in again at its far end."""
        gone = min(committed, len(self.columns))
        self.columns = self.columns[gone:] + [[column[-1]] for column in self.columns[:gone]]
        if not self.columns:
            self.columns = [[guess]]
