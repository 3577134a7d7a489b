"""A table of masks on the device: a row for each recent automaton state.

Purpose: a decoding step sends B row numbers instead of B masks (16 KB each at 131,072 tokens); only masks of
states that are new to the table are transferred.
Invariant: a row from `rows` has the mask of its state until the next call of `rows`, which may reuse it,
least recently used first.  Nothing waits for the GPU: masks are computed, copied from pinned memory and
written on the table's own stream while the model's kernels run; `apply` makes the caller's stream wait for
them, and the table's stream waits for the last `apply` before it overwrites a row.  Pinned memory comes from
torch's caching allocator, which reuses none while it is being copied.
Complexity: O(B) for known states; a new one costs its mask on the CPU, 4 W bytes to the device, and one row.
Memory: at most `capacity` * 4 W bytes on the device (4,096 rows of 131,072 tokens: 64 MiB).
Rejected: one table for all generators (independent calls would displace each other's rows, and every call
would need a lock); a row for each sequence (it is sent anew each step, though states repeat).

    rows = table.rows([(automaton, state), ...])     # after the forward pass was launched
    table.apply(logits, rows)
"""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tokenform.engine import State, TokenAutomaton
from tokenform.errors import OptionError
from tokenform.masking.apply import apply_rows

CAPACITY = 4096
"""Rows of a table."""

MaskRequest = tuple[TokenAutomaton, State] | tuple[TokenAutomaton, State, int] | np.ndarray | None
"""A state of an automaton; a state and the tokens that may still be written, for the budget's mask; a mask
that belongs to no automaton, uint32 [W]; None for no mask."""


@dataclass
class Figures:
    """Counts of a table: rows found, rows written, and how many of these displaced another mask."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0


class MaskTable:
    """Masks on a device, by row.  For one thread at a time.

    Args:
        size: V, ids of the vocabulary.
        device: where logits are.
        capacity: rows; at least as many as a batch has sequences.
    """

    def __init__(self, size: int, device: torch.device | str, *, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise OptionError(f"capacity={capacity} is not possible; give at least 1 row.")
        self.device = torch.device(device)
        self.words = (size + 31) // 32
        self.capacity = capacity
        self.figures = Figures()
        self._table = torch.empty(0, self.words, dtype=torch.int32, device=self.device)
        self._places: OrderedDict[Hashable, int] = OrderedDict()  # least recently used first
        self._serials: weakref.WeakKeyDictionary[TokenAutomaton, int] = weakref.WeakKeyDictionary()
        self._fresh = itertools.count()
        self._writer = _SideStream(self.device) if self.device.type == "cuda" else None

    def __len__(self) -> int:
        """Rows in use."""
        return len(self._places)

    def rows(self, requests: Sequence[MaskRequest]) -> torch.Tensor:
        """The row of each requested mask; writes the missing ones.

        Args:
            requests: B states or masks.
        Returns:
            int32 [B] on the device, for `apply`; -1 for no mask; good until the next call.
        Raises:
            OptionError: more different masks than rows.
            LimitExceeded: a mask is beyond the engine's limits.
        """
        keys = [self._key(one) for one in requests]
        missing: dict[Hashable, MaskRequest] = {}
        for key, one in zip(keys, requests, strict=True):
            if key in self._places:
                self._places.move_to_end(key)
            elif one is not None:
                missing[key] = one
        different = len({key for key in keys if key is not None})
        if different > self.capacity:
            raise OptionError(
                f"{different} masks are wanted at once, but the table has {self.capacity} rows; "
                "make it with a larger capacity."
            )
        self.figures.hits += different - len(missing)
        staged = self._fill(missing) if missing else None  # before any row changes hands: it may raise
        places = [self._take(key) for key in missing]
        return self._send(staged, places, [-1 if key is None else self._places[key] for key in keys])

    def apply(
        self, logits: torch.Tensor, rows: torch.Tensor, out: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `apply_rows` with this table, in the current stream.

        Args:
            logits: floating point [B, V'], V' at least V; ids beyond V are forbidden.
            rows: from `rows`.
            out: where to write; None is in place.
        """
        if self._writer is not None:
            self._writer.ready(rows, self._table)
        masked = apply_rows(logits, self._table, rows, out=out)
        if self._writer is not None:
            self._writer.used()
        return masked

    def masks(self, rows: torch.Tensor) -> torch.Tensor:
        """The packed masks of rows, int32 [B, W], in the current stream."""
        if self._writer is not None:
            self._writer.ready(rows, self._table)
        masks = self._table[rows.long()]
        if self._writer is not None:
            self._writer.used()
        return masks

    def _key(self, one: MaskRequest) -> Hashable:
        if one is None:
            return None
        if isinstance(one, np.ndarray):
            return ("mask", one.tobytes())
        automaton, *state = one
        serial = self._serials.get(automaton)
        if serial is None:
            serial = self._serials[automaton] = next(self._fresh)
        return serial, *state

    def _fill(self, missing: dict[Hashable, MaskRequest]) -> torch.Tensor:
        """The missing masks, int32 [n, W] in memory that the device can read directly."""
        staging = torch.empty(
            len(missing), self.words, dtype=torch.int32, pin_memory=self._writer is not None
        )
        target = staging.numpy()
        states: dict[TokenAutomaton, tuple[list[State], list[int]]] = {}
        for place, one in enumerate(missing.values()):
            if isinstance(one, np.ndarray):
                target[place] = one.view(np.int32)
            elif one is not None and len(one) == 3:
                target[place] = np.asarray(one[0].mask_within(one[1], one[2])).view(np.int32)
            elif one is not None:
                states_here, places = states.setdefault(one[0], ([], []))
                states_here.append(one[1])
                places.append(place)
        for automaton, (states_here, places) in states.items():
            if places[-1] - places[0] + 1 == len(places):
                automaton.fill_masks(states_here, target[places[0] : places[-1] + 1])
            else:
                rows: Any = np.empty((len(states_here), self.words), dtype=np.int32)
                automaton.fill_masks(states_here, rows)
                target[places] = rows
        return staging

    def _take(self, key: Hashable) -> int:
        """A row for a new mask: a free one, or that of the least recently used mask."""
        self.figures.misses += 1
        if len(self._places) < self.capacity:
            place = len(self._places)
        else:
            _, place = self._places.popitem(last=False)
            self.figures.evictions += 1
        self._places[key] = place
        return place

    def _send(self, masks: torch.Tensor | None, places: list[int], rows: list[int]) -> torch.Tensor:
        """Writes new masks to their places; the row numbers [B] on the device."""
        if self._writer is None:
            self._reserve()
            if masks is not None:
                self._table[places] = masks
            return torch.tensor(rows, dtype=torch.int32)
        with self._writer:
            self._reserve()
            if masks is not None:
                numbers = torch.tensor(places, pin_memory=True).to(self.device, non_blocking=True)
                self._table.index_copy_(0, numbers, masks.to(self.device, non_blocking=True))
            return torch.tensor(rows, dtype=torch.int32, pin_memory=True).to(self.device, non_blocking=True)

    def _reserve(self) -> None:
        """Room for the rows in use: doubled as they come, up to the capacity."""
        have, need = self._table.shape[0], max(len(self._places), 1)
        if need <= have:
            return
        size = min(self.capacity, max(need, 2 * have, 64))
        grown = torch.empty(size, self.words, dtype=torch.int32, device=self.device)
        grown[:have] = self._table
        self._table = grown


class _SideStream:
    """The stream on which a table is written, and its synchronisation with the caller's stream.

    `with side:` enqueues work after the last `used()`; `ready(...)` makes the current stream wait for it.
    """

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)
        self._written, self._applied = torch.cuda.Event(), torch.cuda.Event()
        self._context: Any = None

    def __enter__(self) -> None:
        self._stream.wait_event(self._applied)
        self._context = torch.cuda.stream(self._stream)
        self._context.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._written.record(self._stream)
        self._context.__exit__(*error)

    def ready(self, *read: torch.Tensor) -> None:
        current = torch.cuda.current_stream(self._stream.device)
        current.wait_event(self._written)
        for tensor in read:  # memory of the side stream: not reused while the current one reads it
            tensor.record_stream(current)

    def used(self) -> None:
        self._applied.record()
