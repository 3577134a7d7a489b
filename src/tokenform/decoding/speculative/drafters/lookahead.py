"""Lookahead decoding: the model's own Jacobi iteration makes n-grams, which are then tried.

Purpose: a window of `columns` guessed tokens ahead is improved by every forward pass: the token
that the model gives after a guess becomes the guess at the next level.  N guesses that
follow each other in a column are an n-gram; n-grams that begin with the last committed token
are drafts.
Invariant: the window is a part of the draft tree (a chain of first-level guesses, and below each
one its column), so guesses are scored, pruned and verified like any draft.  Under a constraint every guess is
the best *allowed* token: others would be pruned, and the window with them.  The window is scored for what it
teaches, so policies leave it in (`INVESTMENT`); it rests with the n-grams where those do not pay.
Complexity: (levels)(columns) + (levels)(drafts) nodes a step; memory: `kept` n-grams a token.
Source: Fu et al. 2024 (Lookahead decoding), sections 3.1 and 3.2.
Rejected: a mask of its own for the window (a tree has the same ancestors).
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch

from tokenform.decoding.draws import Wish
from tokenform.engine.packed import mask_bits
from tokenform.errors import OptionError

from ..grammar import after
from ..tree import ROOT, DraftTree
from .base import Budget, Context, Seen, Session, Silent

INVESTMENT = "lookahead window"
"""Source of nodes that are scored for what they teach."""


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
    wish = Wish(allowed=True)

    def __init__(self, drafter: Lookahead, context: Context) -> None:
        self.drafter, self.root = drafter, context.state
        self.pool: dict[int, deque[tuple[int, ...]]] = {}
        tokens = context.tokens
        self.columns = [[tokens[(7 * i) % len(tokens)]] for i in range(drafter.columns)]

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        d, tree = self.drafter, DraftTree()
        if context.path:
            return tree
        self.root = context.state
        self._allow(context)
        for gram in list(self.pool.get(context.tail(1)[0], ()))[: d.drafts]:
            if len(tree) + len(gram) <= budget.nodes:
                tree.add_path(ROOT, gram[: budget.depth], d.name, 0.5)
        node = ROOT
        for i, column in enumerate(self.columns):
            if i >= budget.depth or len(tree) + len(column) > budget.nodes:
                break
            node = tree.add(node, column[0], INVESTMENT, 0.05)
            tree.add_path(node, column[1 : budget.depth - i], INVESTMENT, 0.3)
        return tree

    def _allow(self, context: Context) -> None:
        """Puts an allowed token for each head of a column that the constraint refuses."""
        automaton, state = context.automaton, context.state
        for column in self.columns if automaton is not None else ():
            if state is None or automaton.is_finished(state):
                return
            if column[0] in context.eos or not automaton.allows(state, column[0]):
                bits = mask_bits(automaton.mask(state), context.vocabulary_size)
                bits[[t for t in context.eos if t < len(bits)]] = False
                if not bits.any():
                    return
                column[:] = [int(next(iter(automaton.forced(state)), np.flatnonzero(bits)[0]))]
            state = automaton.advance(state, column[0])

    def observe(self, context: Context, seen: Seen) -> None:
        chain: list[int] = []
        ends: list[
            tuple[list[int], int]
        ] = []  # columns that were scored whole, and the row of their last token
        states = [self.root]
        for column in self.columns:
            chain.append(column[0])
            nodes = seen.tree.walk([*chain, *column[1:]])
            if len(nodes) < len(chain):
                break
            del column[1 + len(nodes) - len(chain) :]  # what no longer fits behind a new head
            path = [*chain, *column[1:]]
            ends.append((column, nodes[-1] + 1))
            states.append(None if context.automaton is None else after(context.automaton, self.root, path))
        rows = [0, *(row for _, row in ends)]
        if seen.drawn is None:
            best = _best(context, seen.logits, rows, states)
        else:
            drawn = [seen.drawn[row] for row in rows]
            best = [-1 if one is None else one.allowed for one in drawn]
        for (column, _), token in zip(ends, best[1:], strict=True):
            if token >= 0:
                column.append(token)
            if len(column) > self.drafter.size:
                self._learn(column)
        self._shift(len(seen.committed), max(best[0], 0))

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


def _best(context: Context, logits: torch.Tensor, rows: list[int], states: list[Any]) -> list[int]:
    """The best allowed token of each row, in one transfer; -1 where nothing but the end of the text is."""
    chosen = logits[torch.tensor(rows, device=logits.device)]
    if context.automaton is not None:
        allowed = np.zeros(tuple(chosen.shape), bool)
        for place, state in enumerate(states):
            if state is not None and not context.automaton.is_finished(state):
                allowed[place] = mask_bits(context.automaton.mask(state), chosen.shape[-1])
        allowed[:, [t for t in context.eos if t < chosen.shape[-1]]] = False
        chosen = chosen.masked_fill(~torch.from_numpy(allowed).to(chosen.device), float("-inf"))
        none = ~torch.from_numpy(allowed.any(-1)).to(chosen.device)
        return torch.where(none, -1, chosen.argmax(-1)).tolist()
    return chosen.argmax(-1).tolist()
