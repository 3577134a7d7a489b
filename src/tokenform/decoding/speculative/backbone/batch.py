"""Rows that were run together, in the model's own cache.

Purpose: the operations of `rows.py` on such a cache: gather rows of any batches into a new one, select rows.
Invariant: a cache with a key and a value for every column (`apart`) only grows, so the columns of a place
never change, whatever runs in the batch later; nothing here writes into one.
Complexity: gathering copies its rows once, layer by layer; a single row that is cut back is a view.
Memory: a batch lives as long as a place in it, with the memory of its other rows.
Rejected: the library's own `crop` (it means different things in different versions).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import torch

from .facts import select_rows, tensors


@dataclass(eq=False)
class RowBatch:
    """Rows that were run together.

    Attributes:
        cache: the model's own; None where there is none.
        width: its columns.
        mask: int64 [rows, width] on the device, which columns are the rows' own; None before the first pass.
        stamp: number of the mask; places with the same number agree with it.
        apart: whether the cache has a key and a value for every column, so that rows can be cut and gathered.
    """

    rows: int
    cache: Any = None
    width: int = 0
    mask: torch.Tensor | None = None
    stamp: int = 0
    apart: bool = False

    def mark(self, places: Sequence[RowPlace], device: torch.device) -> None:
        """Makes the mask anew from the columns of the rows' places."""
        mask = np.zeros((self.rows, self.width), np.int64)
        for row, place in enumerate(places):
            mask[row, place.columns] = 1
        self.mask = torch.from_numpy(mask).to(device)
        self.stamp += 1
        for place in places:
            place.stamp = self.stamp

    def select(self, rows: Sequence[int], device: torch.device) -> bool:
        """Keeps only these rows, some perhaps several times; False if the cache can't, which is then lost."""
        index = torch.tensor(rows, dtype=torch.long, device=device)
        if not select_rows(self.cache, index):
            return False
        self.rows = len(rows)
        self.mask = None if self.mask is None else self.mask[index]
        return True


@dataclass(eq=False)
class RowPlace:
    """Where a sequence is.

    Attributes:
        columns: those of its text, in order.
        nodes: those of its draft.
        stamp: of the batch's mask, while that agrees with `columns` and `nodes`.
    """

    batch: RowBatch
    row: int
    columns: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    stamp: int = -1


def gathered(places: Sequence[RowPlace | None], device: torch.device) -> RowBatch:
    """A batch with copies of these places as its rows, padded on the left; None is a row without a past.

    Places of one batch follow each other.
    """
    longest = max(len(place.columns) for place in places if place is not None)
    sources = [
        (batch, list(members)) for batch, members in groupby(places, lambda p: None if p is None else p.batch)
    ]
    first = next(batch for batch, _ in sources if batch is not None)
    batch_of_copies = RowBatch(len(places), like(first.cache), longest, apart=True)
    parts = [(batch, len(members), _index(members, longest)) for batch, members in sources]
    for at, layer in enumerate(batch_of_copies.cache.layers):
        if layer.keys is not None:
            keys, values = [], []
            for batch, rows, index in parts:
                if batch is None or index is None:
                    empty = layer.keys.new_zeros(rows, layer.keys.shape[1], longest, layer.keys.shape[3])
                    keys.append(empty)
                    values.append(layer.values.new_zeros(*empty.shape[:3], layer.values.shape[3]))
                else:
                    source = batch.cache.layers[at]
                    keys.append(_gather(source.keys, *index))
                    values.append(_gather(source.values, *index))
            layer.keys = torch.cat(keys) if len(keys) > 1 else keys[0]
            layer.values = torch.cat(values) if len(values) > 1 else values[0]
    lengths = [0 if place is None else len(place.columns) for place in places]
    seen = np.arange(longest) >= longest - np.array(lengths)[:, None]
    batch_of_copies.mask = torch.from_numpy(seen.astype(np.int64)).to(device)
    return batch_of_copies


def _index(members: Sequence[RowPlace | None], longest: int) -> tuple[list[int], Any] | None:
    """Rows, and the columns of each: [rows, longest], or a number of first columns that all have."""
    places = [place for place in members if place is not None]
    if not places:
        return None
    rows = [place.row for place in places]
    if all(place.columns[-1] == longest - 1 and len(place.columns) == longest for place in places):
        return rows, longest
    columns = np.zeros((len(places), longest), np.int64)
    for row, place in enumerate(places):
        size = len(place.columns)
        columns[row, : longest - size] = place.columns[0]  # padding: anything that is a number
        columns[row, longest - size :] = place.columns
    return rows, torch.from_numpy(columns)


def _gather(held: torch.Tensor, rows: list[int], columns: Any) -> torch.Tensor:
    """[rows, heads, columns, size] of a layer's keys or values."""
    if isinstance(columns, int):
        if rows == list(range(rows[0], rows[0] + len(rows))):
            return held[rows[0] : rows[0] + len(rows), :, :columns]
        return held[torch.tensor(rows, device=held.device), :, :columns]
    at = torch.tensor(rows, device=held.device)[:, None]
    return held[at, :, columns.to(held.device)].transpose(1, 2)


def like(cache: Any) -> Any:
    """A copy of the cache with the same keys and values, which grows by itself."""
    twin = copy.copy(cache)
    twin.layers = [copy.copy(layer) for layer in cache.layers]
    return twin


def is_apart(cache: Any, rows: int, width: int, *, known: bool) -> bool:
    """Whether a cache has a key and a value for every column of every row, and nothing else.

    Args:
        known: it was so before the last pass.
    """
    layers = list(getattr(cache, "layers", None) or ())
    if known and layers:
        return all(layer.keys is None or layer.keys.shape[2] == width for layer in layers)
    return bool(layers) and all(_plain(layer, rows, width) for layer in layers)


def _plain(layer: Any, rows: int, width: int) -> bool:
    if getattr(layer, "is_sliding", False) or not hasattr(layer, "keys"):
        return False
    keys, values = layer.keys, layer.values
    if keys is None:  # a layer that shares another's
        return True
    if any(tensors(held) for name, held in vars(layer).items() if name not in ("keys", "values")):
        return False
    both = isinstance(keys, torch.Tensor) and isinstance(values, torch.Tensor)
    return both and keys.dim() == 4 and keys.shape[0] == rows and keys.shape[2] == values.shape[2] == width


def held_bytes(cache: Any) -> int:
    """Memory of the keys and values."""
    found = (tensor for layer in cache.layers for tensor in (layer.keys, layer.values) if tensor is not None)
    return sum(int(tensor.numel() * tensor.element_size()) for tensor in found)
