"""The backbone of models that take no custom masks: a row of the model's own cache for each sequence.

Purpose: serve what `trees.py` can't: attention kernels without custom masks (mode "chain": a draft is a
chain), and recurrent states, windows that can't be cut back, or anything that is only called like a model
(mode "plain": no drafts).  Sequences that are scored together are rows of one batch.
Layout of a pass over W columns that the cache has and T new ones:
    columns  0 ... W-1 the past, of which each row lists its own | W ... W+T-1 new, padded on the left
Invariant: see `base.py`.  Where the cache has a key and a value for every column, a fork is a second list of
columns, a rejected token is a column that is listed no more, and rows of any batches are gathered into a new
one.  Every other cache is only run forward: rows that began together go on together, a token a pass, and one
that does not is run again from its first token.  A model whose answers change when rows are padded
(`choice.py`) is given rows of equal lengths.
Rejected: a loop of its own for plain decoding, and one for the samplers of whole texts (three accounts of one
cache); scoring a draft on a copy of a recurrent state (a rejected one would cost a second pass, and several
models begin anew on more than one token); padding on the right (each row would be written to at another
place).
Complexity: one pass a step for rows with similar numbers of tokens to run; see `batch.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tokenform.errors import OptionError

from ..scores import Columns
from ..tree import DraftTree
from .base import Backbone, Logits, Track
from .batch import RowBatch, RowPlace, gathered, held_bytes, is_apart, like
from .choice import takes_padding
from .facts import cache_name, is_recurrent, taken_by
from .head import WantedLogits

_PADDING = 192  # token positions of padding that are cheaper than one more pass


class _Item:
    """What is to be run of a sequence.

    Attributes:
        tokens: pending ones, and those of the tree.
        known: columns that its row lists.
        need, wanted: tokens to run, and how many of them have their logits wanted.
    """

    __slots__ = ("known", "need", "pending", "seq", "tokens", "track", "tree", "wanted")

    def __init__(self, seq: int, track: Track, pending: list[int], tree: DraftTree) -> None:
        self.seq, self.track, self.pending, self.tree = seq, track, pending, tree
        self.tokens = pending + tree.tokens if tree.tokens else pending
        self.known = 0 if track.place is None else len(track.place.columns)
        self.need = len(self.tokens)
        self.wanted = self.need - max(len(pending) - 1, 0)


class RowBackbone(Backbone):
    """Runs sequences as rows of the model's own cache."""

    padded: bool | None = None  # whether rows may be padded; None: not tried yet

    def _set(self, model: Any, mode: str, share: int, notes: Sequence[str], size: int | None) -> None:
        super()._set(model, mode, share, notes, size)
        self._accepted = taken_by(model)
        self._heads = WantedLogits(self.vocabulary_size, self.device)
        self._name = cache_name(model, recurrent=True)
        self._apart = cache_name(model) is not None and (mode == "chain" or self.config is None)

    def score(self, trees: Mapping[int, DraftTree]) -> dict[int, torch.Tensor]:
        drafts = [tree for tree in trees.values() if tree.tokens]
        if any(parent != node - 1 for tree in drafts for node, parent in enumerate(tree.parents)):
            raise OptionError("this model scores chains alone; use one path of the tree")
        return super().score(trees)

    @property
    def forks(self) -> bool:
        return self._apart

    @property
    def held_bytes(self) -> int:
        places = (track.place for track in self._tracks.values())
        batches = {place.batch for place in places if place is not None and place.batch.apart}
        return sum(held_bytes(batch.cache) for batch in batches)

    def _start(self, tokens: list[int]) -> Track:
        return Track(tokens)

    def _share(self, track: Track, copy: Track) -> None:
        place: RowPlace | None = track.place
        if place is not None and place.batch.apart:
            copy.place = RowPlace(place.batch, place.row, list(place.columns), list(place.nodes), place.stamp)

    def _keep(self, track: Track, nodes: Sequence[int]) -> None:
        place: RowPlace | None = track.place
        if place is not None:
            place.columns += place.nodes[: len(nodes)]
            del place.nodes[: len(nodes)]

    def _free_tree(self, track: Track) -> None:
        place: RowPlace | None = track.place
        if place is not None and place.nodes:
            place.nodes, place.stamp = [], -1

    def _release(self, track: Track, computed: int) -> None:
        place: RowPlace | None = track.place
        if computed < track.computed and computed and place is not None and place.batch.apart:
            del place.columns[computed:]
            place.stamp, track.computed = -1, computed
        elif computed < track.computed:
            _lose(track)

    def _close(self, track: Track) -> None:
        track.place = None

    def _run(self, trees: Mapping[int, DraftTree], columns: Mapping[int, Columns]) -> dict[int, Logits]:
        out: dict[int, Logits] = {}
        rest: list[_Item] = []
        forward: dict[RowBatch, list[_Item]] = {}
        for seq, tree in trees.items():
            item = self._item(seq, tree)
            place: RowPlace | None = item.track.place
            if place is None or place.batch.apart:
                rest.append(item)
            else:
                forward.setdefault(place.batch, []).append(item)
        try:
            for batch, items in forward.items():
                if self._goes_on(batch, items):
                    out |= self._forward(batch, items)
                    continue
                for item in items:
                    _lose(item.track)
                    rest.append(self._item(item.seq, item.tree))
            for items in self._passes(rest):
                out |= self._together(items)
        except BaseException:
            for seq in out:  # they have moved on, and keep what they know but their drafts
                self._free_tree(self._tracks[seq])
            raise
        return {seq: out[seq] for seq in trees}

    def _item(self, seq: int, tree: DraftTree) -> _Item:
        track = self._tracks[seq]
        if track.place is None:  # nothing is kept of what was run
            track.computed = 0
        return _Item(seq, track, track.tokens[track.computed :], tree)

    def _goes_on(self, batch: RowBatch, items: list[_Item]) -> bool:
        """Whether these rows of a cache that is only run forward go on in it; it then has no others."""
        if any(len(item.tree) for item in items) or len({item.need for item in items}) > 1:
            return False
        items.sort(key=lambda item: item.track.place.row)
        rows = [item.track.place.row for item in items]
        if rows == list(range(batch.rows)):
            return True
        kept, asked = batch.select(rows, self.device), {id(item.track) for item in items}
        for track in self._tracks.values():
            if track.place is not None and track.place.batch is batch and not (kept and id(track) in asked):
                track.place = None
        for row, item in enumerate(items if kept else []):
            item.track.place.row = row
        return kept

    def _forward(self, batch: RowBatch, items: list[_Item]) -> dict[int, Logits]:
        """Runs the rows of such a batch, a token a pass."""
        out: dict[int, Logits] = {}
        try:
            for n in range(items[0].need):
                out = self._pass(batch, [_Item(i.seq, i.track, [i.pending[n]], i.tree) for i in items])
        except BaseException:  # the state may be half advanced
            for item in items:
                _lose(item.track)
            raise
        return out

    def _passes(self, items: list[_Item]) -> list[list[_Item]]:
        """What is run together: rows of similar numbers of tokens where they can be gathered again, else all;
        of equal lengths where the model takes no padding."""
        parts: dict[tuple[int, int], list[_Item]] = {}
        for item in items:
            parts.setdefault((item.known, item.need), []).append(item)
        if len(parts) <= 1 or not self._takes_padding():
            return list(parts.values())
        return _alike(items) if self._apart else [items]

    def _takes_padding(self) -> bool:
        if self.padded is None:
            self.padded = takes_padding(self)
        return self.padded

    def _together(self, items: list[_Item]) -> dict[int, Logits]:
        """One pass over rows that are gathered for it; equal texts of which nothing is known are run once."""
        same: dict[Any, list[_Item]] = {}
        for item in items:
            known = item.track.place is not None
            same.setdefault(item.seq if known else (tuple(item.pending), tuple(item.tree.tokens)), []).append(
                item
            )
        first = sorted((equal[0] for equal in same.values()), key=_order)
        batch = self._batch(first)
        found = self._pass(batch, first)
        followers = [(equal[0], item) for equal in same.values() for item in equal[1:]]
        for leader, item in followers:
            found[item.seq], item.track.computed = found[leader.seq], leader.track.computed
            self._share(leader.track, item.track)
        if followers and not batch.apart and batch.cache is not None:
            self._spread(batch, first, followers)
        return found

    def _spread(self, batch: RowBatch, first: list[_Item], followers: list[tuple[_Item, _Item]]) -> None:
        """Gives each of several equal texts a row of its own in a cache that is only run forward."""
        rows = [*range(batch.rows), *(first.index(leader) for leader, _ in followers)]
        kept, at = batch.select(rows, self.device), len(first)
        if not kept:
            for item in first:
                item.track.place = None
            return
        for row, (leader, item) in enumerate(followers, at):
            place = leader.track.place
            item.track.place = RowPlace(batch, row, list(place.columns), stamp=place.stamp)

    def _batch(self, items: list[_Item]) -> RowBatch:
        """The batch whose rows the items are: the one where they are, or a new one."""
        places: list[RowPlace | None] = [item.track.place for item in items]
        known = [place for place in places if place is not None]
        if not known:
            return RowBatch(len(items))
        batch, longest = known[0].batch, max(len(place.columns) for place in known)
        if any(place is None or place.batch is not batch for place in places):
            return gathered(places, self.device)
        if [place.row for place in known] != list(range(batch.rows)):
            return gathered(places, self.device)
        edited = any(place.stamp != batch.stamp for place in known)
        if edited and (batch.rows == 1 or 2 * longest < batch.width):
            return gathered(places, self.device)
        if any(len(place.columns) < batch.width for place in known) and not self._takes_padding():
            return gathered(places, self.device)
        if edited:
            batch.mark(known, self.device)
        return batch

    def _pass(self, batch: RowBatch, items: list[_Item]) -> dict[int, Logits]:
        """One forward pass; item i is row i.  If it fails, a cache that can be gathered is as it was."""
        new, late = max(item.need for item in items), max(item.wanted for item in items)
        ids, positions, fresh = np.zeros((3, len(items), new), np.int64)
        for row, item in enumerate(items):
            tokens, start = slice(new - item.need, new), item.track.computed
            ids[row, tokens] = item.tokens
            positions[row, tokens] = np.arange(start, start + item.need)
            fresh[row, tokens] = 1
        seen = torch.from_numpy(fresh).to(self.device)
        mask = seen if batch.mask is None else torch.cat([batch.mask, seen], 1)
        options: dict[str, Any] = {"input_ids": torch.from_numpy(ids).to(self.device)}
        if "attention_mask" in self._accepted:
            options["attention_mask"] = seen if is_recurrent(batch.cache, self._name) else mask
        if "position_ids" in self._accepted:
            options["position_ids"] = torch.from_numpy(positions).to(self.device)
        if self._name is not None:
            options |= {self._name: like(batch.cache) if batch.apart else batch.cache, "use_cache": True}
        if "logits_to_keep" in self._accepted:
            options["logits_to_keep"] = late
        follows = any(item.track.follows for item in items)
        model, tapped = (self._heads.tapped(self.model) if follows else None) or (self.model, None)
        with torch.inference_mode():
            output = model(**options)
        self.counters.forwards += 1
        self.counters.positions += ids.size
        logits: torch.Tensor = output.logits[:, -late:]
        self._book(batch, items, mask, None if self._name is None else getattr(output, self._name, None))
        found = dict[int, Logits]()
        for row, item in enumerate(items):
            track, given = item.track, None if tapped is None else tapped.given
            states = given[row, -item.wanted :] if given is not None and track.follows else None
            scored = logits[row, -item.wanted :]
            found[item.seq] = self._booked(track, len(item.pending), item.wanted, scored, states)
        return found

    def _reaches(self) -> bool:
        return self._heads.tapped(self.model) is not None

    def _book(self, batch: RowBatch, items: list[_Item], mask: torch.Tensor, cache: Any) -> None:
        """Where the sequences are after a pass."""
        width, new = mask.shape[1], max(item.need for item in items)
        if cache is not None and self._apart:
            self._apart = is_apart(cache, batch.rows, width, known=batch.apart)
        batch.cache, batch.mask, batch.width, batch.apart = cache, mask, width, self._apart
        batch.stamp += 1
        forgets = cache is None or not (batch.apart or all(not len(item.tree) for item in items))
        for row, item in enumerate(items):
            track, n = item.track, len(item.pending)
            own = list(range(width - item.need, width))
            place: RowPlace | None = track.place
            if forgets:
                track.place = None
            elif place is not None and place.batch is batch:
                place.columns += own[:n]
                place.nodes, place.stamp = own[n:], batch.stamp
            else:
                past = range(width - new - item.known, width - new)
                track.place = RowPlace(batch, row, [*past, *own[:n]], own[n:], batch.stamp)


def _order(item: _Item) -> tuple[int, int]:
    """Rows of one batch beside each other, in its order; those without one first."""
    place: RowPlace | None = item.track.place
    return (-1, 0) if place is None else (id(place.batch), place.row)


def _alike(items: list[_Item]) -> list[list[_Item]]:
    """Groups of similar numbers of tokens: padding is run like text."""
    left, groups = sorted(items, key=lambda item: -item.need), list[list[_Item]]()
    while left:
        most = left[0].need
        if sum(most - item.need for item in left) <= _PADDING:
            return [*groups, left]
        groups.append([item for item in left if 3 * item.need >= 2 * most])
        left = left[len(groups[-1]) :]
    return groups


def _lose(track: Track) -> None:
    """The sequence is run again from its first token."""
    track.place, track.computed, track.root = None, 0, None
