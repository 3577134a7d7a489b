"""The backbone of models that take custom attention masks: a tree for every sequence.

Purpose: `score` packs, for every row of the cache, the tokens that its sequences have not
run yet and their draft trees into one line of the batch.
Invariant: see `base.py`; a sequence's `slots[i]` holds position i of its text.
Complexity: one forward pass over (rows x longest line) tokens, attending to the highest
slot in use; rows are compacted when less than half of that is in use.  Prompts that would pad the others
are run before, in passes of similar lengths and bounded chunks.
Source: tree attention (Miao et al. 2024; Cai et al. 2024); ragged lines (Ni et al. 2024, EMS-SD).
Rejected: cropping the cache after each pass (its meaning changes between versions, and
a static cache has none).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ..tree import DraftTree
from .base import Backbone, Track
from .masks import additive_masks, layer_windows
from .skipping import without_layers
from .slots import Row, SlotCache

_CHAIN = np.tri(64, dtype=bool)
_SHARED_PREFIX = 16  # tokens; a shorter common prefix is not worth a shared row
_PADDING = 192  # token positions of padding that are cheaper than one more pass
_SHORT = 32  # tokens up to which a prompt is run with the others in any case
_CHUNK = 512  # tokens of a prompt that are run at once


@dataclass
class Place:
    """Where a sequence's keys and values are: the row, a slot a position, a slot a tree node."""

    row: Row
    slots: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)


@dataclass
class _Item:
    """A sequence in a line: its pending tokens, its tree and their columns."""

    seq: int
    track: Track
    tree: DraftTree
    pending: list[int]
    taken: list[int]
    early: int = 0  # column of the first pending token
    late: int = 0  # column of the first token whose logits are wanted


class TreeBackbone(Backbone):
    """Scores a draft tree for every sequence in one forward pass."""

    def _set(self, model: Any, mode: str, share: int, notes: Sequence[str]) -> None:
        super()._set(model, mode, share, notes)
        self._cache = SlotCache()
        self._rows: list[Row] = []
        self._windows = layer_windows(self.config)
        self._keeps = "logits_to_keep" in inspect.signature(model.forward).parameters

    def _start(self, tokens: list[int]) -> Track:
        best, length = None, 0
        for other in self._tracks.values():
            place: Place = other.place
            room = place.row.members < self.share
            if other.computed >= length + (not room) and not other.thin:
                common = _common(tokens, other.tokens, min(other.computed, len(tokens) - 1))
                if common > length or (common == length and room):
                    best, length = other, common
        track = Track(tokens, place=Place(self._new_row()))
        if best is not None and length >= _SHARED_PREFIX:
            self._adopt(best, track, length)
        return track

    def _new_row(self) -> Row:
        row = Row(members=1)
        self._rows.append(row)
        return row

    def _shape(self) -> tuple[int, int]:
        return len(self._rows), max((len(r.count) for r in self._rows), default=0)

    def _share(self, track: Track, copy: Track) -> None:
        place: Place = track.place
        if place.row.members < self.share:
            place.row.members += 1
            place.row.hold(place.slots + place.nodes)
            copy.place = Place(place.row, list(place.slots), list(place.nodes))
            return
        row = self._new_row()
        slots, nodes = row.take(len(place.slots)), row.take(len(place.nodes))
        old = place.slots + place.nodes
        if old:
            self._cache.copy(
                self._rows.index(place.row), old, len(self._rows) - 1, slots + nodes, self._shape()
            )
            row.position[slots + nodes] = place.row.position[old]
        copy.place = Place(row, slots, nodes)

    def _keep(self, track: Track, nodes: Sequence[int]) -> None:
        place: Place = track.place
        kept = [place.nodes[n] for n in nodes]
        place.row.hold(kept)
        place.slots.extend(kept)

    def _release(self, track: Track, computed: int) -> None:
        place: Place = track.place
        place.row.free(place.slots[computed:])
        del place.slots[computed:]
        track.computed = computed

    def _free_tree(self, track: Track) -> None:
        place: Place = track.place
        place.row.free(place.nodes)
        place.nodes = []

    def _close(self, track: Track) -> None:
        row: Row = track.place.row
        row.members -= 1
        if row.members == 0:
            at = self._rows.index(row)
            last = self._rows.pop()
            if last is not row:
                self._cache.move_row(len(self._rows), at, last.top)
                self._rows[at] = last

    @property
    def held_slots(self) -> int:
        """Keys and values that some sequence holds; one slot a token."""
        return sum(row.used for row in self._rows)

    @property
    def held_bytes(self) -> int:
        """Memory of the keys and values that some sequence holds."""
        rows, slots = self._shape()
        return self._cache.bytes * self.held_slots // max(rows * slots, 1)

    def compact(self) -> None:
        """Moves the slots in use to the front of every row."""
        for at, row in enumerate(self._rows):
            used = np.flatnonzero(row.count[: row.top])
            if len(used) == row.top:
                continue
            to = np.arange(len(used))
            moved = np.zeros(row.top, np.int64)
            moved[used] = to
            self._cache.copy(at, used.tolist(), at, to.tolist(), self._shape())
            for values in (row.count, row.position):
                values[: len(used)] = values[used]
            row.count[len(used) :] = 0
            row.top = len(used)
            for track in self._tracks.values():
                place: Place = track.place
                if place.row is row:
                    place.slots = moved[place.slots].tolist()
                    place.nodes = moved[place.nodes].tolist()

    def _run(self, trees: Mapping[int, DraftTree], skip: frozenset[int]) -> dict[int, torch.Tensor]:
        if any(r.top > 128 and r.used * 2 < r.top for r in self._rows):
            self.compact()
        if not skip:
            self._prefill([self._track(seq) for seq in trees])
        lines: dict[int, list[_Item]] = {}
        order = {id(row): i for i, row in enumerate(self._rows)}
        for seq, tree in trees.items():
            track = self._track(seq)
            pending = track.tokens[track.computed :]
            lines.setdefault(order[id(track.place.row)], []).append(_Item(seq, track, tree, pending, []))
        return self._pass([(r, lines[r]) for r in sorted(lines)], skip)

    def _prefill(self, tracks: list[Track]) -> None:
        """Runs long prompts apart, all but their last token, where the others would be padded to them.

        Prompts that begin alike are run once, as far as they are alike.
        """
        followers = _followers([track for track in tracks if not track.computed])
        self._prefill_apart(
            [t for t in tracks if id(t) not in followers], {id(f[0]) for f in followers.values()}
        )
        for leader, track, common in followers.values():
            self._adopt(leader, track, common)
        if followers:
            self._prefill_apart([track for _, track, _ in followers.values()], set())

    def _prefill_apart(self, tracks: list[Track], needed: set[int]) -> None:
        """Args:
        needed: sequences that are run in any case, for others go on from them.
        """
        left = {id(track): len(track.tokens) - track.computed - 1 for track in tracks}
        padding = len(left) * max(left.values(), default=0) - sum(left.values())
        if padding <= _PADDING and max(left.values(), default=0) <= _CHUNK:
            tracks = [track for track in tracks if id(track) in needed]
        apart = [t for t in tracks if left[id(t)] > _SHORT or (id(t) in needed and left[id(t)] > 0)]
        order = {id(row): i for i, row in enumerate(self._rows)}
        apart.sort(key=lambda track: -left[id(track)])
        while apart:
            most = left[id(apart[0])]
            group = [track for track in apart if 3 * left[id(track)] >= 2 * most]
            apart = apart[len(group) :]
            for start in range(0, most, _CHUNK):
                going = [t for t in group if left[id(t)] > start]
                lines = []
                for track in going:
                    pending = track.tokens[track.computed : -1][:_CHUNK]
                    lines.append((order[id(track.place.row)], [_Item(-1, track, DraftTree(), pending, [])]))
                self._pass(sorted(lines, key=lambda line: line[0]), frozenset())

    def _adopt(self, leader: Track, track: Track, common: int) -> None:
        """Gives a fresh sequence the first keys and values of another, in its row or as a copy."""
        source: Place = leader.place
        if source.row.members < self.share:
            self._close(track)
            source.row.members += 1
            source.row.hold(source.slots[:common])
            track.place = Place(source.row, source.slots[:common])
        else:
            place: Place = track.place
            place.slots = place.row.take(common)
            rows = self._rows.index(source.row), self._rows.index(place.row)
            self._cache.copy(rows[0], source.slots[:common], rows[1], place.slots, self._shape())
            place.row.position[place.slots] = source.row.position[source.slots[:common]]
        track.computed = common

    def _pass(self, lines: list[tuple[int, list[_Item]]], skip: frozenset[int]) -> dict[int, torch.Tensor]:
        """One forward pass over lines, each with the number of its row, ascending."""
        taken: list[tuple[Row, list[int]]] = []
        for _, line in lines:
            for item in line:
                row: Row = item.track.place.row
                item.taken = row.take(len(item.pending) + len(item.tree))
                taken.append((row, item.taken))
        try:
            logits, wide = self._forward([r for r, _ in lines], [line for _, line in lines], skip)
        except BaseException:
            for row, slots in taken:
                row.free(slots)
            raise
        return self._collect([line for _, line in lines], logits, wide)

    def _forward(
        self, rows: list[int], lines: list[list[_Item]], skip: frozenset[int]
    ) -> tuple[torch.Tensor, int]:
        """Logits [lines, wanted, V] and the width of a line."""
        early = max(sum(max(len(i.pending) - 1, 0) for i in line) for line in lines)
        late = max(sum(min(len(i.pending), 1) + len(i.tree) for i in line) for line in lines)
        wide, width = early + late, max(self._rows[r].top for r in rows)
        ids = np.zeros((len(lines), wide), np.int64)
        positions = np.zeros((len(lines), wide), np.int64)
        slots = np.zeros((len(lines), wide), np.int64)
        allowed = np.zeros((len(lines), wide, width), bool)
        allowed[:, :, 0] = True
        for b, line in enumerate(lines):
            end, start = early, wide
            for item in line:
                n = max(len(item.pending) - 1, 0)
                end -= n
                start -= len(item.pending) - n + len(item.tree)
                item.early, item.late = end, start
                self._fill(item, ids[b], positions[b], slots[b], allowed[b])
        seen = np.zeros((len(lines), width), np.int64)
        for b, r in enumerate(rows):
            seen[b] = (
                self._rows[r].position[:width]
                if len(self._rows[r].position) >= width
                else np.pad(self._rows[r].position, (0, width - len(self._rows[r].position)))
            )
        mask = additive_masks(allowed, positions, seen, self._windows, self.device, self.dtype)
        self._cache.plan(rows, slots, width, self._shape(), self.device)
        keep = {"logits_to_keep": late} if self._keeps else {}
        with torch.inference_mode():
            logits = without_layers(self.model, skip)(
                input_ids=torch.from_numpy(ids).to(self.device),
                attention_mask=mask,
                position_ids=torch.from_numpy(positions).to(self.device),
                past_key_values=self._cache,
                use_cache=True,
                **keep,
            ).logits
        self.counters.forwards += not skip
        return logits[:, -late:], wide

    def _fill(
        self, item: _Item, ids: np.ndarray, positions: np.ndarray, slots: np.ndarray, allowed: np.ndarray
    ) -> None:
        """Writes one sequence into its line."""
        track, tree, place = item.track, item.tree, item.track.place
        n, p = len(item.pending), max(len(item.pending) - 1, 0)
        tokens, own = item.pending + tree.tokens, np.asarray(item.taken, np.int64)
        depths = np.arange(track.computed, track.computed + len(tokens))
        if len(tree):
            depths[n:] = tree.depths
            depths[n:] += len(track.tokens) - 1
        place.row.position[own] = depths
        seen = np.zeros((len(tokens), allowed.shape[1]), bool)
        seen[:, place.slots] = True
        seen[:, own] = _ancestry(n, tree.parents)
        for start, part in ((item.early, slice(0, p)), (item.late, slice(p, len(tokens)))):
            if part.start < part.stop:
                columns = slice(start, start + part.stop - part.start)
                ids[columns], positions[columns] = tokens[part], depths[part]
                slots[columns], allowed[columns] = own[part], seen[part]

    def _collect(self, lines: list[list[_Item]], logits: torch.Tensor, wide: int) -> dict[int, torch.Tensor]:
        """Splits the logits and books the slots."""
        out: dict[int, torch.Tensor] = {}
        offset = wide - logits.shape[1]
        for b, line in enumerate(lines):
            for item in line:
                n, track = len(item.pending), item.track
                got = logits[b, item.late - offset : item.late - offset + min(n, 1) + len(item.tree)]
                if not n:
                    assert track.root is not None
                    got = torch.cat([track.root[None].to(got.dtype), got])
                track.place.slots.extend(item.taken[:n])
                track.place.nodes = item.taken[n:]
                track.computed += n
                self.counters.prefilled += max(n - 1, 0)
                self.counters.scored += len(item.tree) + min(n, 1)
                out[item.seq] = got
        return out


def _ancestry(pending: int, parents: Sequence[int]) -> np.ndarray:
    """bool [m, m]: which of the pending tokens and the tree's nodes each of them sees, itself included."""
    size = pending + len(parents)
    sees = _CHAIN[:size, :size] if size <= len(_CHAIN) else np.tri(size, dtype=bool)
    if any(parent != node - 1 for node, parent in enumerate(parents)):  # a chain sees all before it
        sees = sees.copy()
        nodes = sees[pending:, pending:]
        for node, parent in enumerate(parents):
            nodes[node] = nodes[parent] if parent >= 0 else False
            nodes[node, node] = True
    return sees


def _followers(tracks: list[Track]) -> dict[int, tuple[Track, Track, int]]:
    """id of a fresh sequence -> another whose first tokens it shares, itself, and how many these are."""
    leaders: list[Track] = []
    found: dict[int, tuple[Track, Track, int]] = {}
    for track in tracks:
        best, length = None, 0
        for leader in leaders:
            most = min(len(leader.tokens), len(track.tokens)) - 1
            common = _common(track.tokens, leader.tokens, most)
            if common > length:
                best, length = leader, common
        if best is not None and length >= _SHARED_PREFIX:
            found[id(track)] = best, track, length
        else:
            leaders.append(track)
    return found


def _common(a: Sequence[int], b: Sequence[int], most: int) -> int:
    n = 0
    while n < most and a[n] == b[n]:
        n += 1
    return n
