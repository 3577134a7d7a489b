"""The model drafts for itself, with some of its layers.

Purpose: a fork of the sequence goes on with layers left out; it reads the keys and values that
the whole model has written, and writes its own to slots of its own, which are freed again.
Invariant: nothing that a thinned model has computed is ever part of a committed text.
Complexity: one thinned pass a drafted token, shared by the batch; no second model, no second cache.
Source: Zhang et al. 2024 (Draft & Verify); Xia et al. 2025 (SWIFT), choice of layers by match rate.
Rejected: a separate cache for the thinned model (the prompt would be run twice).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tokenform.errors import DrafterError

from ..backbone import Backbone
from ..backbone.skipping import decoder_layers
from ..drafting import Ask, Drafting, Scored
from ..node import Node
from ..tree import DraftTree
from .base import Asking, Budget, Context, PassCost, Session
from .matched import draw_matched


class LayerSkip:
    """Args:
    skip: layers that are left out; None leaves out every other one of the middle.
    tokens: longest draft.
    """

    name, drawn = "layers", False

    def __init__(self, skip: Sequence[int] | None = None, tokens: int = 4) -> None:
        self.skip = frozenset(skip) if skip is not None else None
        self.tokens, self.cost = tokens, PassCost()

    def session(self, context: Context) -> Session:
        layers = len(decoder_layers(context.backbone.model))
        skip = self.skip if self.skip is not None else frozenset(range(1, layers - 1, 2))
        if not skip or not all(0 <= i < layers for i in skip) or len(skip) == layers:
            raise DrafterError(f"can't leave out layers {sorted(skip)} of a model of {layers}")
        if context.backbone.mode != "tree":
            raise DrafterError("layer skipping needs a model that takes draft trees")
        return _LayerSkipSession(skip, self)


class _LayerSkipSession(Asking):
    def __init__(self, skip: frozenset[int], drafter: LayerSkip) -> None:
        self.skip, self.drafter = skip, drafter

    def drafting(self, context: Context, budget: Budget) -> Drafting[DraftTree]:
        backbone: Backbone = context.backbone
        if backbone.pending(context.seq) != 1:  # the prompt: its keys must be the whole model's
            return DraftTree()
        seq, d = backbone.fork(context.seq), self.drafter

        def passing(drawn: list[int], guessed: list[int], places: list[Node]) -> Drafting[Scored]:
            backbone.commit(seq, drawn)
            nodes, copies = list(enumerate(places)), 1 + context.companions
            return (yield Ask(backbone, seq, DraftTree(), self.skip, nodes, context.sampler, copies))

        try:
            backbone.commit(seq, context.path)
            most = min(d.tokens, budget.depth)
            return (yield from draw_matched(passing, context, most, budget, d.cost, source=d.name))
        finally:
            backbone.drop(seq)


def search_skip_set(backbone: Any, text: Sequence[int], share: float = 0.4) -> list[int]:
    """Layers whose absence changes the model's best next tokens on a text least.

    Greedy: one layer after the other is left out, each time the one that keeps the match rate highest.

    Args:
        text: token ids, at least two; the match rate is measured on all of them.
        share: of the layers that are left out, in (0, 1).
    Raises:
        DrafterError: the share or the text is unusable.
    """
    if not 0 < share < 1 or len(text) < 2:
        raise DrafterError("a search needs a share of layers in (0, 1) and a text of two tokens or more")
    layers = len(decoder_layers(backbone.model))
    tree = DraftTree.chain(text[1:])
    if len(tree) < len(text) - 1:
        raise AssertionError("a chain has one node a token")
    want = _best(backbone, text, tree, frozenset())
    skip: set[int] = set()
    while len(skip) < max(1, round(share * layers)):
        rates = {
            i: float((_best(backbone, text, tree, frozenset({*skip, i})) == want).double().mean())
            for i in range(layers)
            if i not in skip
        }
        skip.add(max(rates, key=lambda i: rates[i]))
    return sorted(skip)


def _best(backbone: Any, text: Sequence[int], tree: DraftTree, skip: frozenset[int]) -> torch.Tensor:
    seq = backbone.open(text[:1])
    try:
        best: torch.Tensor = backbone.score({seq: tree}, skip=skip)[seq].argmax(-1)
        return best
    finally:
        backbone.drop(seq)
