"""The cache: slots of keys and values, in rows.

Purpose: keys and values of every sequence, written to any free slots.  A row is a
pool of slots that belongs to one prompt and its forks; the attention mask alone says
which token sees which slot, so forking copies nothing, a rejected draft is freed at once
and holes do no harm.
Invariant: slot 0 of a row belongs to no sequence: padding is written there.  A slot is free
exactly when its count is 0.
Complexity: taking n slots O(row length); writing O(tokens x layers).
Source: paged key-value caches (Kwon et al. 2023) with pages of one slot.
Rejected: one row for all sequences (attention would be quadratic in the batch); a row per
sequence (a fork would copy its prompt's keys and values).

The model calls `update` once a layer, as it would call its own cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from .prompt_cache import Held

_FIRST = 64  # slots of a new cache; doubled when they run out


@dataclass(eq=False)
class SlotRow:
    """One pool: `count[s]` owners of slot s, `position[s]` its position in the text."""

    count: np.ndarray = field(default_factory=lambda: np.zeros(_FIRST, np.int32))
    position: np.ndarray = field(default_factory=lambda: np.zeros(_FIRST, np.int32))
    top: int = 1
    members: int = 0

    def __post_init__(self) -> None:
        self.count[0] = 1

    def take(self, n: int) -> list[int]:
        """The n lowest free slots, now with one owner each."""
        if n == 0:
            return []
        free = np.flatnonzero(self.count == 0)
        if len(free) < n:
            size = len(self.count)
            while size - len(self.count) + len(free) < n:
                size *= 2
            self.count = np.concatenate([self.count, np.zeros(size - len(self.count), np.int32)])
            self.position = np.concatenate([self.position, np.zeros(size - len(self.position), np.int32)])
            free = np.flatnonzero(self.count == 0)
        slots = free[:n]
        self.count[slots] = 1
        self.top = max(self.top, int(slots[-1]) + 1)
        found: list[int] = slots.tolist()
        return found

    def take_one(self) -> int:
        """The lowest free slot, now with one owner."""
        slot = int((self.count == 0).argmax())
        if self.count[slot]:  # none is free
            return self.take(1)[0]
        self.count[slot] = 1
        self.top = max(self.top, slot + 1)
        return slot

    def hold(self, slots: list[int]) -> None:
        """One owner more for each slot; the slots are distinct."""
        self.count[slots] += 1

    def free(self, slots: list[int]) -> None:
        """One owner less for each slot, all distinct; the row's top sinks to its last slot in use."""
        if slots:
            self.count[slots] -= 1
            if int(self.count[self.top - 1]) == 0:
                self.top = int(np.flatnonzero(self.count[: self.top])[-1]) + 1

    @property
    def used(self) -> int:
        """Slots with an owner, slot 0 included."""
        return int(np.count_nonzero(self.count[: self.top]))


class SlotCache:
    """Keys and values of all rows: per layer two tensors [rows, heads, slots, size]."""

    is_compileable = False

    def __init__(self) -> None:
        self.keys: dict[int, torch.Tensor] = {}
        self.values: dict[int, torch.Tensor] = {}
        self._read: Any = None
        self._index: torch.Tensor | None = None
        self._slots: torch.Tensor | None = None
        self._span: tuple[slice, slice, slice] | None = None
        self._shape = (0, 0)
        self._width = 0

    def plan(
        self, rows: list[int], slots: np.ndarray, width: int, shape: tuple[int, int], device: torch.device
    ) -> None:
        """Sets where the next pass writes.

        Args:
            rows: the row of each line of the batch, ascending; several lines may be of one row.
            slots: int64 [lines, tokens], the slot of each token.
            width: slots [0, width) are what the pass attends to.
            shape: (rows, slots) that the tensors must have room for.
            device: of the model.
        """
        first, last, line = rows[0], rows[-1] + 1, slots[0]
        self._index = torch.tensor(rows, device=device)[:, None] if len(rows) > 1 else None
        self._slots = torch.from_numpy(slots).to(device)
        self._span = None  # a line alone whose slots follow each other is copied as a block
        if self._index is None and (line == np.arange(line[0], line[0] + len(line))).all():
            self._span = slice(first, last), slice(None), slice(int(line[0]), int(line[-1]) + 1)
        read: Any = slice(first, last)
        if rows != list(range(first, last)):
            read = torch.tensor(rows, device=device)
        self._read = read, slice(None), slice(width)
        self._width, self._shape = width, shape

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Writes [lines, heads, tokens, size] and returns [lines, heads, width, size]."""
        out = []
        rows, size = self._shape
        for store, new in ((self.keys, keys), (self.values, values)):
            held = store.get(layer_idx)
            if held is None or held.shape[0] < rows or held.shape[2] < size:
                held = self._with_room(store, layer_idx, new)
            if self._span is not None:
                held[self._span] = new
            elif self._index is None:  # a line alone: without the index arithmetic of several
                assert self._slots is not None
                held[self._read[0]].index_copy_(2, self._slots[0], new.to(held.dtype))
            else:
                held[self._index, :, self._slots] = new.transpose(1, 2).to(held.dtype)
            out.append(held[self._read])
        return out[0], out[1]

    def _with_room(self, store: dict[int, torch.Tensor], layer: int, like: torch.Tensor) -> torch.Tensor:
        """A layer's tensor with room for `_shape`; `like` has the size of its other dimensions."""
        held = store.get(layer, like[:0, :, :0])
        rows, slots = max(self._shape[0], held.shape[0]), max(self._shape[1], held.shape[2])
        if layer not in store or (rows, slots) != (held.shape[0], held.shape[2]):
            store[layer] = like.new_zeros((rows, like.shape[1], slots, like.shape[3]))
            store[layer][: held.shape[0], :, : held.shape[2]] = held
        return store[layer]

    @torch.inference_mode()
    def fit(self, shape: tuple[int, int]) -> bool:
        """Resizes the tensors to (rows, slots); returns whether any had to be allocated."""
        changed = False
        for store in (self.keys, self.values):
            for layer, held in store.items():
                if (held.shape[0], held.shape[2]) != shape:
                    changed, (rows, slots) = True, shape
                    own = held[:rows, :, :slots]
                    store[layer] = held.new_zeros((rows, held.shape[1], slots, held.shape[3]))
                    store[layer][: own.shape[0], :, : own.shape[2]] = own
        return changed

    @torch.inference_mode()
    def copy(self, source: int, slots: list[int], target: int, to: list[int], shape: tuple[int, int]) -> None:
        """Copies slots of one row to slots of another (or moves them within a row)."""
        self._shape = shape
        source_slots, target_slots = _span(slots), _span(to)
        for store in (self.keys, self.values):
            for layer in list(store):
                held = self._with_room(store, layer, store[layer])
                held[target, :, target_slots] = held[source, :, source_slots].clone()

    @torch.inference_mode()
    def move_row(self, source: int, target: int, width: int) -> None:
        """Overwrites a row by another."""
        for store in (self.keys, self.values):
            for held in store.values():
                if source < held.shape[0]:  # else nothing was ever written to it
                    held[target, :, :width] = held[source, :, :width]

    def read(self, row: int, slots: list[int]) -> Held:
        """Copies of the keys and values in some slots of a row."""
        return {n: (keys[row][:, slots], self.values[n][row][:, slots]) for n, keys in self.keys.items()}

    @torch.inference_mode()
    def write(self, row: int, slots: list[int], held: Held, shape: tuple[int, int]) -> None:
        """Puts keys and values into slots of a row."""
        self._shape = shape
        for layer, pair in held.items():
            for store, new in zip((self.keys, self.values), pair, strict=True):
                self._with_room(store, layer, new[None])[row][:, slots] = new

    def get_seq_length(self, layer_idx: int = 0, *_: Any, **__: Any) -> int:
        """Slots in use, as the model's own cache would count them (positions are explicit)."""
        return self._width

    def get_mask_sizes(self, query_length: int, layer_idx: int = 0, *_: Any, **__: Any) -> tuple[int, int]:
        """(slots attended to, offset), for models that ask for it beside the mask."""
        return self._width, 0

    @property
    def bytes(self) -> int:
        """Memory of the keys and values."""
        return sum(t.numel() * t.element_size() for s in (self.keys, self.values) for t in s.values())


def _span(slots: list[int]) -> list[int] | slice:
    """Slots as a slice where they follow each other, which is copied as a block."""
    first = slots[0] if slots else 0
    return slice(first, first + len(slots)) if slots == list(range(first, first + len(slots))) else slots
