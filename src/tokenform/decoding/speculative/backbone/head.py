"""The model's head where its logits are wanted, and nowhere else.

Purpose: the lines of a pass are padded to the longest of them.  Over a large vocabulary the head costs more
than all layers of a small model, so it is given the wanted positions as one line, and of positions where few
tokens are wanted (a mask allows no others) only these tokens' rows of its weight.  One thread multiplies a
large weight part by part.
Invariant: the model is never touched (a view has modules of its own), so other threads may run it meanwhile.
What the model does after its head (a scale, a soft cap) is done to each position alone; `choice.py` tries it.
A model that does anything after its head is given all tokens.
What comes into the head are the model's hidden states, which drafters may ask for: the rows that are gathered
for it are kept as they are.
Memory: some dictionaries of modules; no parameters.  On the host large logits are written where those of an
earlier pass were that nobody holds any more: the C library maps so large a block anew at each allocation, and
the kernel's zeroing of its pages costs a quarter of the product itself.  One block is kept, the largest.
Rejected: `logits_to_keep` as a tensor (the same columns of every line); a product for each position's own
tokens (most of a batch's positions have few tokens in all: one product for their union takes less time than
the calls).
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import torch

from tokenform.decoding.prepacked import PrepackedLinear
from tokenform.errors import ModelError

from ..scores import Columns, Listed, Scores

_MAPPED = 1 << 25  # bytes of a block that the C library maps anew at each allocation
_CACHED = 1 << 21  # bytes of a weight that stay in the cache of a core
_SLICED = 1 << 13  # columns from which on a part of the head is worth its gathering
_PART = 8  # a part is at most so much of the columns, ...
_SHARE = 128  # ... and for each of its positions so much of them: gathering a row of the weight costs more


class _Block:
    """Memory on the host that is lent, to one borrower at a time."""

    def __init__(self) -> None:
        self._held = np.empty(0, np.uint8)
        self._lent: weakref.ref[Any] | None = None

    def lend(self, rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor | None:
        """A tensor; None while somebody holds the last one, or a view of it."""
        if self._lent is not None and self._lent() is not None:
            return None
        size = rows * columns * dtype.itemsize
        if len(self._held) < size:
            self._held = np.empty(size, np.uint8)
        part = self._held[:size]  # an array of its own, which torch holds as long as there are tensors of it
        self._lent = weakref.ref(part)
        return torch.from_numpy(part).view(dtype).view(rows, columns)


class _Packed(torch.nn.Module):
    """The head over some of the last `width` positions of each line that it is given, as one line.

    Attributes:
        later: give back what comes in, for `logits`.
        given: what came in, at the wanted positions.
        out, first: what was given back, and its first row as it was then.
    """

    def __init__(
        self, head: torch.nn.Module, wanted: torch.Tensor, width: int, block: _Block, later: bool = False
    ):
        super().__init__()
        self.head, self.wanted, self.width, self.block, self.later = head, wanted, width, block, later
        self.given = self.out = self.first = torch.empty(0)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        # a model may take `logits_to_keep` and keep all of them
        self.given = hidden[:, -self.width :].flatten(0, 1)[self.wanted]
        self.out = (self.given if self.later else self.logits(self.given))[None]
        self.first = self.out[:, :1].clone()
        return self.out

    def gives(self, logits: torch.Tensor) -> bool:
        """Whether a model's logits are what was given back here: that very memory, as it was."""
        same = logits.data_ptr() == self.out.data_ptr() and logits.shape == self.out.shape
        return same and torch.equal(logits[:, :1], self.first)

    def logits(self, rows: torch.Tensor) -> torch.Tensor:
        """[n, V] of rows [n, d]."""
        by_itself = type(self.head) is PrepackedLinear
        weight, into = None if by_itself else _product(self.head, rows), None
        part = 0 if weight is None else _part(rows, weight)
        if weight is not None and len(rows) * len(weight) * rows.dtype.itemsize >= _MAPPED:
            into = self.block.lend(len(rows), len(weight), rows.dtype)
        if weight is None or (into is None and part == len(weight)):
            packed: torch.Tensor = self.head(rows[None])[0]
            return packed
        into = rows.new_empty(len(rows), len(weight)) if into is None else into
        for start in range(0, len(weight), part):
            columns = slice(start, start + part)
            torch.mm(rows, weight[columns].t(), out=into[:, columns])
        return into


class Tapped(torch.nn.Module):
    """The head as it is.

    Attributes:
        given: what came in, [L, T, d]; None before.
    """

    def __init__(self, head: torch.nn.Module) -> None:
        super().__init__()
        self.head, self.given = head, cast("torch.Tensor | None", None)

    def forward(self, hidden: torch.Tensor) -> Any:
        self.given = hidden
        return self.head(hidden)


_Head = TypeVar("_Head", bound=torch.nn.Module)


def _part(rows: torch.Tensor, weight: torch.Tensor) -> int:
    """How many of the vocabulary's columns are multiplied at once.

    The library copies a weight into another order before it multiplies.  Of a large one that takes as long as
    multiplying twenty rows; of a part that stays in the cache next to nothing, and the sums are the same.
    Several threads would wait for each other at each part.
    """
    if rows.dtype != torch.float32 or len(rows) == 1 or torch.get_num_threads() > 1:
        return len(weight)
    return min(max(_CACHED // (weight.shape[1] * weight.element_size()), 64), len(weight))


def _product(head: Any, rows: torch.Tensor) -> torch.Tensor | None:
    """The weight of a head that is a product and nothing else, on the host."""
    plain = type(head) in (torch.nn.Linear, PrepackedLinear) and head.bias is None
    plain = plain and type(head.weight) is torch.nn.Parameter
    if not plain or head._forward_hooks or head._forward_pre_hooks or "forward" in vars(head):
        return None
    weight: torch.Tensor = head.weight
    fits = rows.device.type == weight.device.type == "cpu" and rows.dtype == weight.dtype
    return weight if fits and not torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu") else None


class WantedLogits:
    """Runs a model for the logits of wanted positions.

    Args:
        columns: of its logits.
        device: where it is.
    """

    def __init__(self, columns: int, device: torch.device) -> None:
        self._path: list[str] | None = None
        self._columns = columns
        self._block = _Block()
        self.sliced = self._wide = device.type == "cpu" and columns >= _SLICED
        self._tried = False
        self.given: torch.Tensor | None = None
        """What came into the head in the last pass, [N, d] as its logits, where it was asked for."""

    def tapped(self, model: Any) -> tuple[Any, Tapped] | None:
        """The model with a head that keeps what comes in, and this; None where that can't be had."""
        return self._view(model, Tapped)

    def __call__(
        self,
        model: Any,
        wanted: torch.Tensor,
        width: int,
        columns: Columns | None = None,
        hidden: bool = False,
        **inputs: Any,
    ) -> torch.Tensor | Scores:
        """Logits [N, V] of one pass.

        Args:
            model: a causal language model, or a view of it; the same at every call.
            wanted: int64 [N], ascending, among the last `width` positions of each of L lines, which are
                counted through.
            columns: the tokens wanted at each; a hint, which is taken where `sliced`.
            hidden: keep what comes into the head, as `given`.
        """
        padded = len(wanted) < inputs["input_ids"].shape[0] * width
        many = 2 * len(wanted) * self._columns >= _MAPPED  # bytes, of the narrowest floats
        listed = columns is not None and self.sliced
        parts = self._wide and len(wanted) > 1 and torch.get_num_threads() == 1
        own = padded or many or listed or parts or hidden
        view, packed = model, None
        if own:
            later = listed and self._tried
            made = self._view(model, lambda head: _Packed(head, wanted, width, self._block, later))
            view, packed = made or (model, None)
        logits: torch.Tensor = view(**inputs).logits
        self.given = packed.given if hidden and packed is not None else None
        if packed is None:
            self.sliced = self.sliced and not listed
            rows = logits[:, -width:].flatten(0, 1)
            return rows[wanted] if padded else rows
        if packed.later:
            if not packed.gives(logits):
                raise ModelError("the model has begun to change its logits after its head, within one batch")
            assert columns is not None
            return _made(packed, columns)
        if listed:
            self._tried = True
            self.sliced = packed.gives(logits) and _product(packed.head, packed.given) is not None
        return logits[0]

    def _view(self, model: Any, make: Callable[[torch.nn.Module], _Head]) -> tuple[Any, _Head] | None:
        """The model with another head, made of its own, and this; None where that can't be had.

        It is made for one pass, from what the model is then.  A `forward` put on an instance (by a library
        that moves inputs between devices, say) runs the module that it was made for, and with it the head in
        there.
        """
        if self._path is None:
            self._path = _path(model)
        top = view = _shallow(model)
        for name in self._path[:-1]:
            view._modules[name] = below = _shallow(view._modules[name])
            if "forward" in vars(view):
                return None
            view = below
        if not self._path or "forward" in vars(view):
            return None
        view._modules[self._path[-1]] = made = make(view._modules[self._path[-1]])
        return top, made


def _made(packed: _Packed, columns: Columns) -> Scores:
    """The logits of a pass whose head was left to later."""
    given, weight = packed.given, _product(packed.head, packed.given)
    rows: dict[int, Listed] = {}
    if weight is not None:
        few, union = _few(columns, len(weight))
        part = torch.mm(given[few], weight[torch.from_numpy(union)].t())
        scores = (part if part.dtype in (torch.float32, torch.float64) else part.float()).numpy()
        for place, row in enumerate(few):
            ids = columns[row]
            assert ids is not None
            rows[row] = Listed(ids, scores[place, np.searchsorted(union, ids)], len(weight))
    wide = [row for row in range(len(given)) if row not in rows]
    logits = packed.logits(given[wide]) if wide else given[:0]
    return Scores(rows, wide, logits, torch.inference_mode()(lambda chosen: packed.logits(given[chosen])))


def _few(columns: Columns, size: int) -> tuple[list[int], np.ndarray]:
    """Rows whose listed tokens are computed alone, and the union of their lists."""
    listed = [(len(ids), row, ids) for row, ids in enumerate(columns) if ids is not None]
    most = min(size // _PART, len(listed) * size // _SHARE)
    wanted, count, few = np.zeros(size, bool), 0, []
    for length, row, ids in sorted(listed, key=lambda one: one[:2]):
        if length and ids[-1] >= size:  # more ids than logits, which the draw refuses
            continue
        new = ids[~wanted[ids]]
        if count + len(new) <= most:
            wanted[new], count = True, count + len(new)
            few.append(row)
    return few, np.flatnonzero(wanted)


def _path(model: Any) -> list[str]:
    """The names that lead to the head; none where the model does not tell."""
    try:
        head = model.get_output_embeddings()
    except (AttributeError, NotImplementedError):
        return []
    found = [name for name, module in model.named_modules() if module is head] if head is not None else []
    return found[0].split(".") if found and found[0] else []


def _shallow(module: Any) -> Any:
    """A module of the same class with the same parts, whose table of modules is its own."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    return twin
