"""The backbone of models that take no custom masks: one sequence at a time, chains or single tokens.

Purpose: exactness for what `trees.py` can't serve: recurrent states (mode "plain": no
drafts) and attention kernels without custom masks (mode "chain": the first path of a
tree is scored, the cache cropped after it).
Invariant: see `base.py`.  A cache is never run past what its sequence keeps, except by
a chain that is cropped again.
Complexity: one forward pass a sequence and step; a fork copies the cache.
Rejected: scoring a chain on a copy of a recurrent state (a rejected draft would cost a
second pass, and several models restart their state on more than one token).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tokenform.decoding.model_cache import cache_name
from tokenform.errors import ModelError, OptionError

from ..scores import Columns
from ..tree import ROOT, DraftTree
from .base import Backbone, Track
from .skipping import without_layers


class SerialBackbone(Backbone):
    """Runs each sequence with a cache of the model's own making."""

    def _set(self, model: Any, mode: str, share: int, notes: Sequence[str]) -> None:
        super()._set(model, mode, share, notes)
        self._name = cache_name(model, recurrent=True)
        if self._name is None:
            raise ModelError(f"{type(model).__name__}.forward takes no cache; it can't be run token by token")

    def score(
        self, trees: Mapping[int, DraftTree], *, skip: frozenset[int] = frozenset()
    ) -> dict[int, torch.Tensor]:
        for tree in trees.values():
            if self.mode == "plain" and len(tree):
                raise OptionError("this model can't score drafts; ask `backbone.deepest` first")
            if any(parent != node - 1 for node, parent in enumerate(tree.parents)):
                raise OptionError("this model scores chains alone; use `first_path` of the tree")
        return super().score(trees, skip=skip)

    def _start(self, tokens: list[int]) -> Track:
        return Track(tokens)

    def _share(self, track: Track, copy_: Track) -> None:
        copy_.tree = copy_.logits = None
        self._forget_tree(track)
        copy_.place = copy.deepcopy(track.place)

    def _run(
        self, trees: Mapping[int, DraftTree], skip: frozenset[int], columns: Mapping[int, Columns]
    ) -> dict[int, torch.Tensor]:
        out: dict[int, torch.Tensor] = {}
        for seq, tree in trees.items():
            track = self._track(seq)
            if track.place is None:  # nothing is kept of what was run: a new text, or a model without a cache
                track.computed = 0
            pending = track.tokens[track.computed :]
            try:
                logits = self._step(track, pending, tree, skip)
            except BaseException:
                if track.computed and self.mode == "chain":
                    _crop(track.place, track.computed)
                else:  # a recurrent state may be half advanced: run the text again
                    track.place, track.computed, track.root = None, 0, None
                for done in out:  # those before it have moved on, and keep what they know but their trees
                    self._forget_tree(self._track(done))
                raise
            if not pending:
                assert track.root is not None
                logits = torch.cat([track.root[None].to(logits.dtype), logits])
            track.computed = len(track.tokens)
            self.counters.prefilled += max(len(pending) - 1, 0)
            self.counters.scored += len(tree) + min(len(pending), 1)
            track.root, track.tree, out[seq] = logits[0], tree, logits
        return out

    def _step(self, track: Track, pending: list[int], tree: DraftTree, skip: frozenset[int]) -> torch.Tensor:
        """Logits [1 + n, V] (or [n, V] with nothing pending) of a chain of n nodes."""
        wanted = min(len(pending), 1) + len(tree)
        chunks = [pending + tree.tokens]
        if self.mode == "plain" and track.computed:
            chunks = [[t] for t in chunks[0]]
        at, rows = track.computed, []
        for chunk in chunks:
            positions = torch.arange(at, at + len(chunk), device=self.device)[None]
            options: dict[str, Any] = {str(self._name): track.place, "use_cache": True}
            if self.mode == "chain":
                options["position_ids"] = positions
            with torch.inference_mode():
                result = without_layers(self.model, skip)(
                    torch.tensor([chunk], device=self.device), **options
                )
            self.counters.forwards += not skip
            self.counters.positions += len(chunk)
            track.place = getattr(result, str(self._name), None)
            rows.append(result.logits[0])
            at += len(chunk)
        return torch.cat(rows)[-wanted:]

    def _keep(self, track: Track, nodes: Sequence[int]) -> None:
        kept = track.computed + len(nodes)
        if track.tree is not None and len(track.tree) > len(nodes):
            _crop(track.place, kept)
        track.tree = None

    def _release(self, track: Track, computed: int) -> None:
        if computed == track.computed:
            return
        if self.mode == "chain" and computed:
            _crop(track.place, computed)
            track.computed = computed
        else:
            track.place, track.computed = None, 0

    def _free_tree(self, track: Track) -> None:
        if track.tree is not None and len(track.tree):
            _crop(track.place, track.computed)

    def _close(self, track: Track) -> None:
        track.place = None


def first_path(tree: DraftTree) -> DraftTree:
    """The chain from the root to the first leaf."""
    chain, node = DraftTree(), ROOT
    while kids := tree.children(node):
        below = kids[0]
        if node in tree.distributions:
            chain.distributions[len(chain) - 1] = tree.distributions[node]
        chain.add(len(chain) - 1, tree.tokens[below], tree.sources[below], tree.confidences[below])
        node = below
    return chain


def _crop(cache: Any, length: int) -> None:
    """Cuts every layer's keys and values to `length` positions.

    The library's own `crop` means different things in different versions.
    """
    for layer in cache.layers:
        if getattr(layer, "keys", None) is not None:
            layer.keys = layer.keys[..., :length, :]
            layer.values = layer.values[..., :length, :]
