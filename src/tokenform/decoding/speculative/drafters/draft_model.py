"""A smaller model drafts.

Purpose: the second model writes with the *same sampler* as the first: same mask, same
temperature, same counter-based numbers.  So where the two models agree on the law their draws agree
too, and sample-and-match accepts often although nothing about q is kept.  With `shape` given,
drafts are drawn independently instead, with their laws, for the rules of drawn drafts.
Invariant: the second model's sequence is cut to what it shares with the text before it drafts.
Complexity: one pass of the small model a drafted token (a chain), or a level's node (a tree).
Source: Leviathan et al. 2023; coupling by shared randomness: Daliri et al. 2024 (Drafter-invariant
speculative decoding).
Rejected: independent draws for sample-and-match (they accept sum p q, not nearly 1 - TV).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tokenform.errors import DrafterError, SamplingError

from ..backbone import Backbone
from ..judging import KeyedChoice
from ..tree import ROOT, DraftTree
from .base import Budget, Context, PassCost, Session, Silent
from .drawing import draw_paths, draw_tree
from .other_vocabulary import VocabularyMap

_SURE = 0.95  # probability of a drafted token from which on it gets no siblings
_STREAM = 1 << 20  # keeps a draft's own numbers apart from the sampler's


class DraftModel:
    """Args:
    model: a Hugging Face causal language model, or a `Backbone` that holds one.
    tokens: longest draft.
    siblings: runners-up that are added beside each drafted token (matched drafts only).
    shape: None for drafts that are matched; a number of independent paths, or the
        widths of a tree's levels, for drafts that are drawn.
    vocabulary: how the model's tokens relate to the target's, if they are not the same
        (see `other_vocabulary.py`).
    Raises:
        DrafterError: the options don't fit.
    """

    name, costly = "model", True

    def __init__(
        self,
        model: Any,
        tokens: int = 6,
        siblings: int = 1,
        shape: int | Sequence[int] | None = None,
        vocabulary: VocabularyMap | None = None,
    ) -> None:
        self.backbone = model if isinstance(model, Backbone) else Backbone(model)
        self.tokens, self.siblings, self.shape, self.vocabulary = tokens, siblings, shape, vocabulary
        self.drawn = shape is not None
        self.forwards, self.cost = 0, PassCost()
        if vocabulary is not None and vocabulary.retokenise and self.drawn:
            raise DrafterError("re-tokenised drafts can't be drawn with their laws; leave shape=None")

    def session(self, context: Context) -> Session:
        size = self.vocabulary.draft_size if self.vocabulary is not None else self.backbone.vocabulary_size
        if self.vocabulary is None and abs(size - context.vocabulary_size) > 1024:
            raise DrafterError(
                f"the draft model has {size} tokens and the model {context.vocabulary_size};"
                " give vocabulary= a VocabularyMap"
            )
        return _DraftModelSession(self, context)


class _DraftModelSession(Silent):
    def __init__(self, drafter: DraftModel, context: Context) -> None:
        self.drafter = drafter
        self.seq: int | None = None

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        d = self.drafter
        most = min(d.tokens, budget.depth, budget.nodes)
        if most <= 0 or not self._follow(context):
            return DraftTree()
        if d.vocabulary is not None and d.vocabulary.retokenise:
            return self._retokenised(context, most, budget)
        if d.shape is None:
            return self._matched(context, most, budget)
        choice = KeyedChoice(
            context.seed ^ _STREAM, context.sequence, len(context.tokens) + len(context.path)
        )
        rows: dict[int, np.ndarray] = {}
        if isinstance(d.shape, int):
            depth = min(most, budget.nodes // d.shape)
            return draw_paths(
                lambda tree, node: self._law(context, tree, node, rows), d.shape, depth, choice, d.name
            )
        widths, nodes, level = [], 0, 1
        for width in d.shape[: budget.depth]:
            level *= width
            nodes += level
            if nodes <= budget.nodes:
                widths.append(width)
        return draw_tree(lambda tree, node: self._law(context, tree, node, rows), widths, choice, d.name)

    def _follow(self, context: Context) -> bool:
        """Brings the second model's sequence to the text; False if there is no text for it."""
        d, backbone = self.drafter, self.drafter.backbone
        text = [*context.tokens, *context.path]
        if d.vocabulary is not None:
            text = d.vocabulary.to_draft(text)
        if not text or (backbone.max_length is not None and len(text) + d.tokens > backbone.max_length):
            return False
        if self.seq is None:
            self.seq = backbone.open(text)
            return True
        have = backbone.tokens(self.seq)
        same = next(
            (i for i, (a, b) in enumerate(zip(have, text, strict=False)) if a != b), min(len(have), len(text))
        )
        if same == 0:
            backbone.drop(self.seq)
            self.seq = backbone.open(text)
            return True
        backbone.truncate(self.seq, same)
        backbone.commit(self.seq, text[same:])
        return True

    def _row(self, context: Context, logits: torch.Tensor) -> np.ndarray:
        """float64 [V] in the target's ids; -inf for tokens that the second model does not have."""
        row: np.ndarray = logits.to("cpu", torch.float64).numpy()
        if self.drafter.vocabulary is not None:
            return self.drafter.vocabulary.to_target(row, context.vocabulary_size)
        if len(row) < context.vocabulary_size:
            return np.pad(row, (0, context.vocabulary_size - len(row)), constant_values=-np.inf)
        return row[: context.vocabulary_size]

    def _next(self) -> torch.Tensor:
        assert self.seq is not None
        self.drafter.forwards += 1
        return self.drafter.backbone.score({self.seq: DraftTree()})[self.seq][0]

    def _matched(self, context: Context, most: int, budget: Budget) -> DraftTree:
        """A chain of the sampler's draws from the second model, with runners-up."""
        d, tree, node, state = self.drafter, DraftTree(), ROOT, context.state
        path: list[int] = []
        confidence = cumulative = 1.0
        while len(path) < most and len(tree) < budget.nodes:
            if budget.stop(confidence, cumulative, d.cost.seconds):
                break
            began = time.perf_counter()
            row = self._row(context, self._next())
            try:
                token = int(context.sampler.draw(context.node(row, path, state)))
            except SamplingError:  # no allowed token is in the second model's vocabulary
                break
            confidence = _probability(row, token)
            cumulative *= confidence
            above, node = node, tree.add(node, token, d.name, confidence)
            if token in context.eos:
                break
            for other in _best(row, d.siblings + 1) if confidence < _SURE and d.siblings else ():
                if len(tree) < budget.nodes and other != token and len(tree.children(above)) <= d.siblings:
                    tree.add(above, other, d.name, min(_probability(row, other), 1 - confidence) + 1e-9)
            path.append(token)
            state = context.automaton.advance(state, token) if context.automaton is not None else None
            self._commit(token)
            d.cost.took(time.perf_counter() - began)
        return tree

    def _commit(self, token: int) -> None:
        assert self.seq is not None
        vocabulary = self.drafter.vocabulary
        tokens = [token] if vocabulary is None else vocabulary.to_draft([token])
        self.drafter.backbone.commit(self.seq, tokens)

    def _law(self, context: Context, tree: DraftTree, node: int, rows: dict[int, np.ndarray]) -> np.ndarray:
        """The sampler's law on the second model's logits at a node of the tree that is being drawn.

        Where it has none (the text has ended, the grammar refuses the path, or no allowed token is
        shared) it is uniform: the rules are exact for any law.
        """
        path, state, auto = tree.path(node) if node >= 0 else [], context.state, context.automaton
        anything = np.full(context.vocabulary_size, 1.0 / context.vocabulary_size)
        for token in path:
            if token in context.eos or (auto is not None and not auto.allows(state, token)):
                return anything
            state = auto.advance(state, token) if auto is not None else None
        if node not in rows:
            self._score_tree(context, tree, rows)
        try:
            return np.asarray(context.sampler.law(context.node(rows[node], path, state)))
        except SamplingError:
            return anything

    def _score_tree(self, context: Context, tree: DraftTree, rows: dict[int, np.ndarray]) -> None:
        """The second model's logits at every node of the tree, in one pass if it takes trees."""
        backbone, vocabulary = self.drafter.backbone, self.drafter.vocabulary
        assert self.seq is not None
        own, place = DraftTree(), {ROOT: ROOT}
        for i, token in enumerate(tree.tokens):
            pieces = [token] if vocabulary is None else vocabulary.to_draft([token])
            place[i] = own.add_path(place[tree.parents[i]], pieces)
        new = [n for n in place if n not in rows]
        parts = (
            [own] if backbone.mode == "tree" else [DraftTree.chain(own.path(place[n])) for n in new if n >= 0]
        )
        for part in parts or [own]:
            logits = backbone.score({self.seq: part})[self.seq]
            self.drafter.forwards += 1
            for n in new:
                nodes = part.walk(own.path(place[n])) if place[n] >= 0 else []
                if len(nodes) == (own.depths[place[n]] if place[n] >= 0 else 0):
                    rows[n] = self._row(context, logits[nodes[-1] + 1 if nodes else 0])

    def _retokenised(self, context: Context, most: int, budget: Budget) -> DraftTree:
        """The second model's best text, in the target's tokens."""
        d, vocabulary = self.drafter, self.drafter.vocabulary
        assert vocabulary is not None and self.seq is not None
        text, confidence = b"", 1.0
        for _ in range(most):
            if budget.stop(confidence, confidence, d.cost.seconds):
                break
            began = time.perf_counter()
            row = self._next().to("cpu", torch.float64).numpy()
            token = int(np.argmax(row))
            confidence *= _probability(row, token)
            piece = vocabulary.draft[token]
            if not piece:
                break
            text += piece
            d.backbone.commit(self.seq, [token])
            d.cost.took(time.perf_counter() - began)
        tokens = vocabulary.encode_target(text)
        share = confidence ** (1 / max(len(tokens), 1))
        return DraftTree.chain(tokens[: min(budget.depth, budget.nodes)], self.drafter.name, min(share, 0.95))

    def close(self) -> None:
        if self.seq is not None:
            self.drafter.backbone.drop(self.seq)
            self.seq = None


def _best(row: np.ndarray, count: int) -> list[int]:
    """The tokens of the `count` highest logits, best first."""
    count = min(count, len(row))
    found = np.argpartition(row, len(row) - count)[len(row) - count :]
    best: list[int] = found[np.argsort(-row[found], kind="stable")].tolist()
    return best


def _probability(row: np.ndarray, token: int) -> float:
    top = row.max()
    return float(np.exp(row[token] - top) / np.exp(row - top).sum())
