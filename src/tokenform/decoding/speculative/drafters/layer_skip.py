"""The model drafts for itself, with some of its layers.

Purpose: a fork of the sequence goes on with layers left out; it reads the keys and values that
the whole model has written, and writes its own to slots of its own, which are freed again.
Invariant: nothing that a thinned model has computed is ever part of a committed text.
Complexity: one thinned pass a drafted token, shared by the batch; no second model, no second cache.
Source: Zhang et al. 2024 (Draft & Verify); Chen et al. 2025 (CLaSp), layers chosen by how little they change
the hidden state.
Rejected: layers by match rate, one after the other (a hundred passes); every other one of the middle (none of
143 drafts of SmolLM2-135M was kept); a separate cache for the thinned model (the prompt would be run twice).
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from tokenform.errors import DrafterError

from ..backbone import Backbone
from ..backbone.skipping import decoder_layers, likeness
from ..drafting import Ask, Drafting, Scored
from ..node import Node
from ..tree import DraftTree
from .base import Asking, Budget, Context, PassCost, Session
from .matched import draw_matched

SHARE = 0.2  # of the layers that are left out where nobody says which
SEARCHED = 128  # most tokens of a prompt that tell which


class LayerSkip:
    """Args:
    skip: layers that are left out; None: a fifth, as `search_skip_set` finds them on the first prompt.
    tokens: longest draft.
    """

    name = "layers"

    def __init__(self, skip: Sequence[int] | None = None, tokens: int = 4) -> None:
        self.skip = frozenset(skip) if skip is not None else None
        self.tokens, self.cost = tokens, PassCost()
        self._found: weakref.WeakKeyDictionary[Any, frozenset[int]] = weakref.WeakKeyDictionary()

    def session(self, context: Context) -> Session:
        if context.backbone.mode != "tree":
            raise DrafterError("layer skipping needs a model that takes draft trees")
        layers = len(decoder_layers(context.backbone.model))
        skip = self.skip if self.skip is not None else self._searched(context)
        if not skip or not all(0 <= i < layers for i in skip) or len(skip) == layers:
            raise DrafterError(f"can't leave out layers {sorted(skip)} of a model of {layers}")
        return _LayerSkipSession(skip, self)

    def _searched(self, context: Context) -> frozenset[int]:
        model = context.backbone.model
        if model not in self._found:
            text = list(context.tokens[-SEARCHED:])
            self._found[model] = frozenset(search_skip_set(context.backbone, text, SHARE))
        return self._found[model]


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


def search_skip_set(backbone: Any, text: Sequence[int], share: float = SHARE) -> list[int]:
    """Layers that change what passes through them least, on a text: by the cosine of what comes in and what
    goes out, in one pass.

    Args:
        text: token ids, at least one.
        share: of the layers that are left out, in (0, 1).
    Raises:
        DrafterError: the share or the text is unusable.
    """
    if not 0 < share < 1 or not text:
        raise DrafterError("a search needs a share of layers in (0, 1) and a text")
    alike = likeness(backbone.model, text)
    count = min(max(1, round(share * len(alike))), len(alike) - 1)
    return sorted(sorted(range(len(alike)), key=lambda layer: -alike[layer])[:count])
