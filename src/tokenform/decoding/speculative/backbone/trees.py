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

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch

from ..scores import Columns, Scores
from ..tree import DraftTree
from .base import Backbone, Logits, Track
from .facts import cache_name, taken_by
from .head import WantedLogits
from .packing import Item, Line, OneEach, Packed, additive_masks, layer_windows, listed, spread
from .prompt_cache import SHORTEST, Held, common
from .slots import SlotCache, SlotRow
from .static_passes import Compiled, StaticPasses

_PADDING = 192  # token positions of padding that are cheaper than one more pass
_SHORT = 32  # tokens up to which a prompt is run with the others in any case
_CHUNK = 512  # tokens of a prompt that are run at once
_COPIED = 128  # tokens of a common beginning up to which each sequence has a row of its own


@dataclass
class SlotPlace:
    """Where a sequence's keys and values are: the row, a slot a position, a slot a tree node."""

    row: SlotRow
    slots: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)


class TreeBackbone(Backbone):
    """Scores a draft tree for every sequence in one forward pass."""

    def _set(self, model: Any, mode: str, share: int, notes: Sequence[str], size: int | None) -> None:
        super()._set(model, mode, share, notes, size)
        self._cache, self._edition = SlotCache(), -1
        self._rows: list[SlotRow] = []
        self._windows = layer_windows(self.config)
        self._logits = WantedLogits(self.vocabulary_size, self.device)
        self._keeps = "logits_to_keep" in taken_by(model)
        self._cache_name = cache_name(model) or "past_key_values"
        self._static: StaticPasses | None = None

    def _compile(self, compiled: Compiled) -> None:
        kept = self._prompts is not None  # which tells what weights were captured
        self._static = StaticPasses(
            compiled, self.model, self._cache_name, self._windows, self.counters, kept, self._logits.tapped
        )
        self._cache = self._static.cache

    def _start(self, tokens: list[int]) -> Track:
        best, length = None, 0
        for other in self._tracks.values():
            place: SlotPlace = other.place
            room = place.row.members < self.share
            if other.computed >= length + (not room):
                shared = common(tokens, other.tokens, min(other.computed, len(tokens) - 1))
                if shared > length or (shared == length and room):
                    best, length = other, shared
        track = Track(tokens, place=SlotPlace(self._new_row()), prompt=len(tokens))
        if best is not None and length >= SHORTEST:
            self._adopt(best, track, length)
        return track

    def _new_row(self) -> SlotRow:
        row = SlotRow(members=1)
        self._rows.append(row)
        return row

    def _shape(self) -> tuple[int, int]:
        most = 0
        for row in self._rows:
            most = max(most, len(row.count))
        shape = len(self._rows), most
        return shape if self._static is None else self._static.room(*shape)

    def _share(self, track: Track, copy: Track) -> None:
        place: SlotPlace = track.place
        if place.row.members < self.share:
            place.row.members += 1
            place.row.hold(place.slots + place.nodes)
            copy.place = SlotPlace(place.row, list(place.slots), list(place.nodes))
            return
        row = self._new_row()
        copy.place = SlotPlace(row, row.take(len(place.slots)), row.take(len(place.nodes)))
        self._copy(place.row, place.slots + place.nodes, row, copy.place.slots + copy.place.nodes)

    def _copy(self, source: SlotRow, slots: list[int], row: SlotRow, to: list[int]) -> None:
        """Copies slots of one row to slots of another."""
        if slots:
            rows = self._rows.index(source), self._rows.index(row)
            self._cache.copy(rows[0], slots, rows[1], to, self._shape())
            row.position[to] = source.position[slots]

    def _keep(self, track: Track, nodes: Sequence[int]) -> None:
        place: SlotPlace = track.place
        kept = [place.nodes[n] for n in nodes]
        place.row.hold(kept)
        place.slots.extend(kept)

    def _release(self, track: Track, computed: int) -> None:
        place: SlotPlace = track.place
        place.row.free(place.slots[computed:])
        del place.slots[computed:]
        track.computed = computed

    def _free_tree(self, track: Track) -> None:
        place: SlotPlace = track.place
        if place.nodes:
            place.row.free(place.nodes)
            place.nodes = []

    def _close(self, track: Track) -> None:
        row: SlotRow = track.place.row
        row.members -= 1
        if row.members == 0:
            at = self._rows.index(row)
            last = self._rows.pop()
            if last is not row:
                self._cache.move_row(len(self._rows), at, last.top)
                self._rows[at] = last

    @property
    def held_slots(self) -> int:
        return sum(row.used for row in self._rows)

    @property
    def held_bytes(self) -> int:
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
                place: SlotPlace = track.place
                if place.row is row:
                    place.slots = moved[place.slots].tolist()
                    place.nodes = moved[place.nodes].tolist()

    @property
    def sliced(self) -> bool:
        return self._logits.sliced and (self._static is None or self._static.off)

    def _run(self, trees: Mapping[int, DraftTree], columns: Mapping[int, Columns]) -> dict[int, Logits]:
        for row in self._rows:
            if row.top > 128 and row.used * 2 < row.top:
                self.compact()
                break
        try:
            if self._static is None and not columns and (steps := self._steps(trees)):
                return self._one_each(steps)
            self._prefill([self._tracks[seq] for seq in trees])
            lines: dict[int, list[Item]] = {}
            for seq, tree in trees.items():
                track = self._tracks[seq]
                pending = track.tokens[track.computed :]
                item = Item(seq, track, tree, pending, len(tree.tokens) + (1 if pending else 0))
                lines.setdefault(self._rows.index(track.place.row), []).append(item)
            scored = self._pass(spread(sorted(lines.items())), columns)
        except (torch.OutOfMemoryError, MemoryError):  # what is kept for later calls is the first to go
            if self._prompts is not None:
                self._prompts.clear()
            raise
        if self._prompts is not None:
            self._keep_prompts([self._tracks[seq] for seq in trees])
        return scored

    def _steps(self, trees: Mapping[int, DraftTree]) -> list[tuple[int, SlotRow, int, Track]]:
        """(number of the row, the row, number of the sequence, the sequence), ascending.

        Nothing where one of them has a draft, more than one token pending, or no row of its own.
        """
        found = []
        for seq, tree in trees.items():
            track = self._tracks[seq]
            row: SlotRow = track.place.row
            fresh = track.prompt and self._prompts is not None
            if tree.tokens or fresh or len(track.tokens) - track.computed != 1 or row.members != 1:
                return []
            found.append((self._rows.index(row), row, seq, track))
        found.sort()
        return found

    def _one_each(self, steps: list[tuple[int, SlotRow, int, Track]]) -> dict[int, Logits]:
        """The pass of plain decoding: one token of each sequence."""
        taken = list[tuple[int, SlotRow, Track, int]]()
        hidden = False
        for at, row, _, track in steps:
            taken.append((at, row, track, row.take_one()))
            hidden = hidden or track.follows
        try:
            logits = cast("torch.Tensor", self._forward(OneEach(taken), None, hidden))
        except BaseException:
            for _, row, _, slot in taken:
                row.free([slot])
            raise
        counters, out = self.counters, dict[int, Logits]()
        counters.forwards += 1
        counters.scored += len(steps)
        for line, ((_, _, seq, track), (_, _, _, slot)) in enumerate(zip(steps, taken, strict=True)):
            track.place.slots.append(slot)
            track.computed += 1
            out[seq] = logits[line : line + 1]
            track.states = self._states(track, line, line + 1)
        return out

    def _prefill(self, tracks: list[Track]) -> None:
        """Runs long prompts apart, all but their last token, where the others would be padded to them.

        What an earlier call has run of a prompt is taken from there; prompts that begin alike are run once,
        as far as they are alike.
        """
        for track in tracks:
            if track.prompt or len(track.tokens) - track.computed > 1:
                break
        else:
            return
        fresh = [track for track in tracks if track.prompt]
        known: dict[int, int] = {}
        if fresh and self._prompts is not None:
            self._edition = self._prompts.begin(self.model)
            if self._static is not None:
                self._static.runs_with(self._edition)
            known = {id(t): self._prompts.length(self._edition, t.tokens[:-1]) for t in fresh}
        followers = _followers([track for track in fresh if not track.computed], known)
        for track in fresh:
            if id(track) not in followers and known.get(id(track), 0) > track.computed:
                self._take_known(track)
        self._prefill_apart(
            [t for t in tracks if id(t) not in followers], {id(f[0]) for f in followers.values()}
        )
        for leader, track, shared in followers.values():
            self._adopt(leader, track, shared)
        if followers:
            self._prefill_apart([track for _, track, _ in followers.values()], set())

    def pending(self, seq: int) -> int:
        track = self._tracks[seq]
        known = track.computed
        if track.prompt and self._prompts is not None:
            known = max(known, self._prompts.length(self._prompts.begin(self.model), track.tokens[:-1]))
        left = len(track.tokens) - known
        return left if 1 <= left <= _CHUNK + 1 else 1

    def _take_known(self, track: Track) -> None:
        """Gives a sequence the keys and values that an earlier call has left of its prompt."""
        assert self._prompts is not None
        row, place = track.place.row, track.place
        for part in self._prompts.get(self._edition, track.tokens[:-1], track.computed):
            count = next(iter(part.values()))[0].shape[1]
            slots = row.take(count)
            try:
                self._cache.write(self._rows.index(row), slots, part, self._shape())
            except BaseException:
                row.free(slots)
                raise
            row.position[slots] = np.arange(track.computed, track.computed + count)
            place.slots.extend(slots)
            track.computed += count

    def _keep_prompts(self, tracks: list[Track]) -> None:
        """Leaves prompts that have been run to later calls."""
        for track in tracks:
            if self._prompts is not None and 0 < track.prompt <= track.computed:
                row, slots = self._rows.index(track.place.row), track.place.slots
                read = functools.partial(self._read, row, slots)
                try:
                    self._prompts.keep(self._edition, track.tokens[: track.prompt], read)
                except (torch.OutOfMemoryError, MemoryError):
                    self._prompts.clear()
                track.prompt = 0

    def _read(self, row: int, slots: list[int], start: int, end: int) -> Held:
        return self._cache.read(row, slots[start:end])

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
                    lines.append(
                        (
                            order[id(track.place.row)],
                            [Item(-1, track, DraftTree(), pending, min(len(pending), 1))],
                        )
                    )
                self._pass(sorted(lines, key=lambda line: line[0]), {})

    def _adopt(self, leader: Track, track: Track, shared: int) -> None:
        """Gives a fresh sequence the first keys and values of another, in its row or as a copy.

        Whoever shares a row attends over the slots of all in it, at every step: for a short beginning a
        copy costs less than the width that the others' texts grow to.
        """
        source: SlotPlace = leader.place
        if source.row.members < self.share and shared > _COPIED:
            self._close(track)
            source.row.members += 1
            source.row.hold(source.slots[:shared])
            track.place = SlotPlace(source.row, source.slots[:shared])
        else:
            place: SlotPlace = track.place
            place.slots = place.row.take(shared)
            self._copy(source.row, source.slots[:shared], place.row, place.slots)
        track.computed = shared

    def _pass(self, lines: list[Line], columns: Mapping[int, Columns]) -> dict[int, Logits]:
        """One forward pass over lines, each with the number of its row, ascending."""
        taken: list[tuple[SlotRow, list[int]]] = []
        for _, line in lines:
            for item in line:
                row: SlotRow = item.track.place.row
                item.taken = row.take(len(item.pending) + len(item.tree.tokens))
                taken.append((row, item.taken))
        try:
            hidden = any(item.track.follows for _, line in lines for item in line)
            as_is = functools.partial(self._packed, lines, columns, hidden)
            fixed = None if columns else self._static
            if hidden and fixed is not None and not fixed.tells:
                fixed = None
            logits = as_is() if fixed is None else fixed.run(lines, self._rows, as_is)
            if fixed is not None and fixed.given is not None:
                self._logits.given = fixed.given
            self.counters.forwards += 1
        except BaseException:
            for row, slots in taken:
                row.free(slots)
            raise
        return self._collect([item for _, line in lines for item in line], logits)

    def _packed(self, lines: list[Line], columns: Mapping[int, Columns], hidden: bool) -> Logits:
        return self._forward(Packed(lines, self._rows), listed(lines, columns), hidden)

    def _reaches(self) -> bool:
        return self._logits.tapped(self.model) is not None

    def _states(self, track: Track, start: int, end: int) -> torch.Tensor | None:
        """Rows of the last pass's hidden states, where they are asked for."""
        given = self._logits.given
        return given[start:end] if track.follows and given is not None else None

    def _forward(self, packed: Packed | OneEach, columns: Columns | None, hidden: bool) -> Logits:
        """Logits [N, V] of the wanted tokens, line by line and item by item."""
        mask = additive_masks(
            packed.allowed, packed.positions, packed.seen, self._windows, self.device, self.dtype
        )
        self._cache.plan(packed.rows, packed.slots, packed.seen.shape[1], self._shape(), self.device)
        kept = packed.late if self._keeps else packed.ids.shape[1]
        with torch.inference_mode():
            logits = self._logits(
                self.model,
                torch.from_numpy(packed.wanted(kept)).to(self.device),
                kept,
                columns,
                hidden,
                input_ids=torch.from_numpy(packed.ids).to(self.device),
                attention_mask=mask,
                position_ids=torch.from_numpy(packed.positions).to(self.device),
                use_cache=True,
                **{self._cache_name: self._cache},
                **({"logits_to_keep": packed.late} if self._keeps else {}),
            )
        self.counters.positions += packed.ids.size
        return logits

    def _collect(self, items: list[Item], logits: Logits) -> dict[int, Logits]:
        """Splits the logits and books the slots."""
        out: dict[int, Logits] = {}
        start = 0
        for item in items:
            n, track = len(item.pending), item.track
            end = start + item.wanted
            got = logits.part(start, end) if isinstance(logits, Scores) else logits[start:end]
            states, start = self._states(track, start, end), end
            track.place.slots.extend(item.taken[:n])
            track.place.nodes, track.tree = item.taken[n:], item.tree
            out[item.seq] = self._booked(track, n, item.wanted, got, states)
        return out


def _followers(tracks: list[Track], known: dict[int, int]) -> dict[int, tuple[Track, Track, int]]:
    """id of a fresh sequence -> another whose first tokens it shares, itself, and how many these are.

    Args:
        known: id of a sequence -> how many of its first tokens need not be run in any case.
    """
    leaders: list[Track] = []
    found: dict[int, tuple[Track, Track, int]] = {}
    for track in tracks:
        best, length = None, known.get(id(track), 0)
        for leader in leaders:
            shared = common(track.tokens, leader.tokens, len(track.tokens) - 1)
            if min(shared, len(leader.tokens) - 1) > length:
                best, length = leader, min(shared, len(leader.tokens) - 1)
        if best is not None and length >= SHORTEST:
            found[id(track)] = best, track, length
        else:
            leaders.append(track)
    return found
