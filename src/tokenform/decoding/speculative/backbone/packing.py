"""One pass over sequences and their draft trees as arrays.

Purpose: turns sequences into lines of token ids, positions, slots and an attention mask: a token sees the
committed text of its sequence, its ancestors in the tree and itself; in a layer with a sliding window only
those less than `window` *text positions* back.  Layout of a line of T columns, `late` of which have their
logits computed (in some line):

    pending tokens but each sequence's last, right-aligned | last pending tokens and trees, right-aligned
Invariant: a column without a token is written to slot 0 and sees slot 0 alone.
Rejected: `late` columns for each line (models take one number for all); boolean masks (eager attention adds
them: silently wrong); windows by slot number (slots are no positions).
Complexity: O(lines x tokens x slots), the size of `allowed`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ..scores import Columns
from ..tree import DraftTree
from .base import Track
from .slots import SlotRow

Windows = dict[str, int | None]
"""Layer type -> sliding window in tokens, None for the whole text."""

_CHAIN = np.tri(64, dtype=bool)
_PADDED = 1.5  # positions of a pass over tokens, from which on rows are run in several lines


@dataclass
class Item:
    """A sequence in a line.

    Attributes:
        pending: its tokens without keys and values.
        wanted: how many of its tokens' logits are wanted.
        taken: the slots of its pending tokens and of its tree.
        late: the column of the first token whose logits are wanted.
    """

    seq: int
    track: Track
    tree: DraftTree
    pending: list[int]
    wanted: int
    taken: list[int] = field(default_factory=list)
    late: int = 0


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
        tokens: int64 [3, lines, tokens], their `ids`, `positions` and `slots`.
        allowed: bool [lines, tokens, slots], who sees whom, without any window.
        seen: int64 [lines, slots], the positions of the slots.
        late: the last columns, in which the wanted logits are.
    """

    def __init__(
        self, lines: Sequence[Line], rows: Sequence[SlotRow], shape: tuple[int, int, int] | None = None
    ) -> None:
        self._lines, self.rows = lines, [row for row, _ in lines]
        early, late, top, sizes = 0, 0, 0, list[int]()
        for row, items in lines:
            before = size = 0
            for item in items:
                before += max(len(item.pending) - 1, 0)
                size += item.wanted
            sizes.append(size)
            early, late, top = max(early, before), max(late, size), max(top, rows[row].top)
        count, wide, width = shape or (len(lines), early + late, top)
        self._at = self.rows if shape else range(len(lines))
        self.late = wide - early
        self.tokens = np.zeros((3, count, wide), np.int64)
        self.ids, self.positions, self.slots = self.tokens
        self.seen = np.zeros((count, width), np.int64)
        self.allowed = np.zeros((count, wide, width), bool)
        self.allowed[:, :, 0] = True
        for b, (row, items), size in zip(self._at, lines, sizes, strict=True):
            end, start = early, wide - size
            for item in items:
                end -= max(len(item.pending) - 1, 0)
                item.late = start
                start += item.wanted
                self._fill(item, b, end)
            positions = rows[row].position[:width]
            self.seen[b, : len(positions)] = positions

    def wanted(self, kept: int) -> np.ndarray:
        """int64 [N], item by item: the wanted ones of each line's last `kept` columns, counted through."""
        found, wide = list[np.ndarray](), self.tokens.shape[2]
        for b, (_, items) in zip(self._at, self._lines, strict=True):
            first = (b + 1) * kept - wide
            for item in items:
                found.append(np.arange(first + item.late, first + item.late + item.wanted))
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _fill(self, item: Item, b: int, early: int) -> None:
        """Writes one sequence into its line.

        Args:
            early: column of its first pending token, where it has more than one.
        """
        track, tree, row = item.track, item.tree, item.track.place.row
        n, p, size = len(item.pending), max(len(item.pending) - 1, 0), len(tree.tokens)
        tokens, own = item.pending + tree.tokens, np.asarray(item.taken, np.int64)
        depths = np.arange(track.computed, track.computed + n + size)
        if size:
            depths[n:] = tree.depths
            depths[n:] += len(track.tokens) - 1
        row.position[own] = depths
        seen = np.zeros((n + size, self.allowed.shape[2]), bool)
        seen[:, track.place.slots] = True
        sees = _CHAIN[: n + size, : n + size] if n + size <= len(_CHAIN) else np.tri(n + size, dtype=bool)
        if tree.parents != list(range(-1, size - 1)):  # each sees its ancestors; of a chain, all before it
            sees = sees.copy()
            nodes = sees[n:, n:]
            for node, parent in enumerate(tree.parents):
                nodes[node] = nodes[parent] if parent >= 0 else False
                nodes[node, node] = True
        seen[:, own] = sees
        for start, part in ((early, slice(0, p)), (item.late, slice(p, n + size))):
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
    for _, items in lines:
        for item in items:
            own = columns.get(item.seq)
            found += [None] * item.wanted if own is None else own[len(own) - item.wanted :]
    return found if any(ids is not None for ids in found) else None


def spread(lines: list[Line]) -> list[Line]:
    """The same sequences in more lines, several of one row, where most of the positions were padding."""
    if len(lines) == 1:
        return lines
    sizes = [[len(item.pending) + len(item.tree.tokens) for item in items] for _, items in lines]
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


def layer_windows(config: Any) -> Windows:
    """The windows of a model's layers."""
    window = getattr(config, "sliding_window", None)
    types = getattr(config, "layer_types", None)
    if types is None:
        return {"full_attention": window if getattr(config, "use_sliding_window", True) else None}
    return {t: (window if t == "sliding_attention" else None) for t in dict.fromkeys(types)}


def within(
    allowed: np.ndarray, query_positions: np.ndarray, slot_positions: np.ndarray, windows: Windows
) -> dict[str, np.ndarray]:
    """Who sees whom in the layers of each type.

    Args:
        allowed: bool [lines, tokens, slots], without any window.
        query_positions: int [lines, tokens], text positions of the tokens of the pass.
        slot_positions: int [lines, slots], text positions of the slots.
    Returns:
        Layer type -> bool [lines, tokens, slots]; types that see the same have one array.
    """
    found: dict[int | None, np.ndarray] = {None: allowed}
    longest, kinds = int(query_positions.max(initial=0)), dict[str, np.ndarray]()
    for kind, window in windows.items():
        if window is not None and longest < window:
            window = None
        if window is not None and window not in found:
            seen = allowed & (query_positions[:, :, None] - slot_positions[:, None, :] < window)
            seen[:, :, 0] = allowed[:, :, 0]
            found[window] = seen
        kinds[kind] = found[window]
    return kinds


def additive(seen: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Bool [lines, tokens, slots] as a mask [lines, 1, tokens, slots] of 0 and the dtype's least number."""
    lowest = torch.finfo(dtype).min
    return torch.full(seen.shape, lowest, dtype=dtype, device=seen.device).masked_fill_(seen, 0)[:, None]


def additive_masks(
    allowed: np.ndarray,
    query_positions: np.ndarray,
    slot_positions: np.ndarray,
    windows: Windows,
    device: torch.device,
    dtype: torch.dtype,
) -> torch.Tensor | dict[str, torch.Tensor]:
    """The mask that the model takes: one tensor, or one for each type of layer."""
    if len(windows) == 1 and None in windows.values():
        return additive(torch.from_numpy(allowed).to(device), dtype)
    kinds = within(allowed, query_positions, slot_positions, windows)
    made = {
        id(seen): additive(torch.from_numpy(seen).to(device), dtype)
        for seen in {id(seen): seen for seen in kinds.values()}.values()
    }
    masks = {kind: made[id(seen)] for kind, seen in kinds.items()}
    return next(iter(masks.values())) if len(masks) == 1 else masks
