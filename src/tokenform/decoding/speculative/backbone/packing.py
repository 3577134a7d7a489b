"""One pass over sequences and their draft trees as arrays.

Purpose: what `trees.py` is asked for becomes lines of token ids, positions, slots and who sees whom.
Layout of a line of T columns, `late` of which have their logits wanted (in some line):
    pending tokens but each sequence's last, right-aligned | last pending tokens and trees, right-aligned
Invariant: a column without a token is written to slot 0 and sees slot 0 alone.
Complexity: O(lines x tokens x slots), the size of `allowed`.
Rejected: `late` columns for each line (models take one number for all).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..scores import Columns
from ..tree import DraftTree
from .base import Track
from .slots import SlotRow

_CHAIN = np.tri(64, dtype=bool)
_PADDED = 1.5  # positions of a pass over tokens, from which on rows are run in several lines


@dataclass
class Item:
    """A sequence in a line: its pending tokens, its tree and their slots."""

    seq: int
    track: Track
    tree: DraftTree
    pending: list[int]
    taken: list[int]
    early: int = 0  # column of the first pending token
    late: int = 0  # column of the first token whose logits are wanted

    @property
    def wanted(self) -> int:
        """How many of its tokens' logits are wanted."""
        return min(len(self.pending), 1) + len(self.tree)


Line = tuple[int, list[Item]]
"""The number of a row of the cache, and what is run of it."""


class Packed:
    """The arrays of one pass.

    Args:
        lines: ascending by their rows.
        rows: of the cache.
        shape: (lines, tokens, slots), as many or more as there are, of a pass in which row r is line r and no
            sequence has more than one token pending; None: what the lines need.
    Attributes:
        tokens: int64 [3, lines, tokens], their ids, positions and slots.
        allowed: bool [lines, tokens, slots], who sees whom, without any window.
        seen: int64 [lines, slots], the positions of the slots.
        late: the last columns, in which the wanted logits are.
    """

    def __init__(
        self, lines: Sequence[Line], rows: Sequence[SlotRow], shape: tuple[int, int, int] | None = None
    ) -> None:
        self._items, self.rows = [items for _, items in lines], [row for row, _ in lines]
        self._at = [row for row, _ in lines] if shape else list(range(len(lines)))
        early = max(sum(max(len(i.pending) - 1, 0) for i in items) for items in self._items)
        late = max(sum(item.wanted for item in items) for items in self._items)
        count, wide, width = shape or (len(lines), early + late, max(rows[row].top for row, _ in lines))
        self.late = wide - early
        self.tokens = np.zeros((3, count, wide), np.int64)
        self.seen = np.zeros((count, width), np.int64)
        self.allowed = np.zeros((count, wide, width), bool)
        self.allowed[:, :, 0] = True
        for b, (row, items) in zip(self._at, lines, strict=True):
            end, start = early, wide - sum(item.wanted for item in items)
            for item in items:
                n = max(len(item.pending) - 1, 0)
                end -= n
                item.early, item.late = end, start
                start += item.wanted
                self._fill(item, b)
            positions = rows[row].position[:width]
            self.seen[b, : len(positions)] = positions

    @property
    def ids(self) -> np.ndarray:
        found: np.ndarray = self.tokens[0]
        return found

    @property
    def positions(self) -> np.ndarray:
        found: np.ndarray = self.tokens[1]
        return found

    @property
    def slots(self) -> np.ndarray:
        found: np.ndarray = self.tokens[2]
        return found

    def wanted(self, kept: int) -> np.ndarray:
        """int64 [N], item by item: the wanted ones of each line's last `kept` columns, counted through."""
        wide = self.tokens.shape[2]
        return np.concatenate(
            [
                np.arange(item.late, item.late + item.wanted) + (b * kept + kept - wide)
                for b, items in zip(self._at, self._items, strict=True)
                for item in items
            ]
        )

    def _fill(self, item: Item, b: int) -> None:
        """Writes one sequence into its line."""
        track, tree, place = item.track, item.tree, item.track.place
        n, p = len(item.pending), max(len(item.pending) - 1, 0)
        tokens, own = item.pending + tree.tokens, np.asarray(item.taken, np.int64)
        depths = np.arange(track.computed, track.computed + len(tokens))
        if len(tree):
            depths[n:] = tree.depths
            depths[n:] += len(track.tokens) - 1
        place.row.position[own] = depths
        seen = np.zeros((len(tokens), self.allowed.shape[2]), bool)
        seen[:, place.slots] = True
        seen[:, own] = _ancestry(n, tree.parents)
        for start, part in ((item.early, slice(0, p)), (item.late, slice(p, len(tokens)))):
            if part.start < part.stop:
                columns = slice(start, start + part.stop - part.start)
                self.ids[b, columns], self.positions[b, columns] = tokens[part], depths[part]
                self.slots[b, columns], self.allowed[b, columns] = own[part], seen[part]


class OneEach:
    """The arrays of a pass of plain decoding: one pending token of each sequence, each in a row of its own.

    Args:
        steps: (number of a row, the row, the sequence, the slot of its token), ascending.
    Attributes:
        rows: their numbers.
    """

    late = 1

    def __init__(self, steps: Sequence[tuple[int, SlotRow, Track, int]]) -> None:
        count, width = len(steps), 1
        for _, row, _, _ in steps:
            width = max(width, row.top)
        self.rows = list[int]()
        self.ids, self.positions, self.slots = np.zeros((3, count, 1), np.int64)
        self.seen = np.zeros((count, width), np.int64)
        self.allowed = np.zeros((count, 1, width), bool)
        for b, (at, row, track, slot) in enumerate(steps):
            self.rows.append(at)
            position = len(track.tokens) - 1
            self.ids[b], self.positions[b], self.slots[b] = track.tokens[-1], position, slot
            row.position[slot] = position
            self.allowed[b, 0, track.place.slots] = self.allowed[b, 0, slot] = True
            known = row.position[:width]
            self.seen[b, : len(known)] = known

    def wanted(self, kept: int) -> np.ndarray:
        """int64 [N]: every line's token."""
        return np.arange(len(self.rows))


def listed(lines: Sequence[Line], columns: Mapping[int, Columns]) -> Columns | None:
    """The tokens wanted at each wanted position; None where all are wanted at all of them."""
    if not columns:
        return None
    found: list[Any] = []
    for item in (item for _, items in lines for item in items):
        own = columns.get(item.seq)
        found += [None] * item.wanted if own is None else own[len(own) - item.wanted :]
    return found if any(ids is not None for ids in found) else None


def spread(lines: list[Line]) -> list[Line]:
    """The same sequences in more lines, several of one row, where most of the positions were padding."""
    sizes = [[len(item.pending) + len(item.tree) for item in items] for _, items in lines]
    room = max(size for line in sizes for size in line)
    if len(lines) * max(map(sum, sizes)) <= _PADDED * sum(map(sum, sizes)):
        return lines
    found: list[Line] = []
    for (row, items), line in zip(lines, sizes, strict=True):
        left = 0
        for item, size in zip(items, line, strict=True):
            if size > left:
                found.append((row, []))
                left = room
            found[-1][1].append(item)
            left -= size
    return found


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
