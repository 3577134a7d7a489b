"""The model's head where its logits are wanted, and nowhere else.

Purpose: the lines of a pass are padded to the longest of them.  Over a large vocabulary the head costs more
than all layers of a small model, so it is given the wanted positions as one line.
Invariant: the model is never touched (see `skipping.py`), so other threads may run it meanwhile.  What the
model does after its head (a scale, a soft cap) is done to each position alone; `choice.py` tries that on it.
Memory: some dictionaries of modules; no parameters.  On the host large logits are written where those of an
earlier pass were that nobody holds any more: the C library maps so large a block anew at each allocation, and
the kernel's zeroing of its pages costs a quarter of the product itself.  One block is kept, the largest.
Rejected: `logits_to_keep` as a tensor (the same columns of every line).
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch

from .skipping import shallow

_MAPPED = 1 << 25  # bytes of a block that the C library maps anew at each allocation


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
    """The head over some of the positions that it is given, as one line."""

    def __init__(self, head: torch.nn.Module, wanted: torch.Tensor, block: _Block) -> None:
        super().__init__()
        self.head, self.wanted, self.block = head, wanted, block

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        rows = hidden.flatten(0, 1)[self.wanted]
        weight = _large(self.head, rows)
        into = None if weight is None else self.block.lend(len(rows), len(weight), rows.dtype)
        if weight is None or into is None:
            packed: torch.Tensor = self.head(rows[None])
            return packed
        return torch.mm(rows, weight.t(), out=into)[None]


def _large(head: Any, rows: torch.Tensor) -> torch.Tensor | None:
    """The weight of a head that is a product and nothing else, where large logits come of it on the host."""
    plain = type(head) is torch.nn.Linear and head.bias is None and type(head.weight) is torch.nn.Parameter
    if not plain or head._forward_hooks or head._forward_pre_hooks or "forward" in vars(head):
        return None
    weight: torch.Tensor = head.weight
    fits = rows.device.type == weight.device.type == "cpu" and rows.dtype == weight.dtype
    if not fits or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
        return None
    return weight if len(rows) * len(weight) * rows.dtype.itemsize >= _MAPPED else None


class WantedLogits:
    """Runs a model for the logits of wanted positions.

    Args:
        columns: of its logits.
    """

    def __init__(self, columns: int) -> None:
        self._path: list[str] | None = None
        self._columns = columns
        self._block = _Block()

    def __call__(self, model: Any, wanted: torch.Tensor, width: int, **inputs: Any) -> torch.Tensor:
        """Logits [N, V] of one pass.

        Args:
            model: a causal language model, or a view of it; the same at every call.
            wanted: int64 [N], ascending, among the last `width` positions of each of L lines, which are
                counted through.
        """
        padded = len(wanted) < inputs["input_ids"].shape[0] * width
        many = 2 * len(wanted) * self._columns >= _MAPPED  # bytes, of the narrowest floats
        view = self._view(model, wanted) if padded or many else None
        logits: torch.Tensor = (view or model)(**inputs).logits
        if view is not None:
            return logits[0]
        rows = logits[:, -width:].flatten(0, 1)
        return rows[wanted] if padded else rows

    def _view(self, model: Any, wanted: torch.Tensor) -> Any:
        """The model with another head; None where that can't be had.

        It is made for one pass, from what the model is then.  A `forward` put on an instance (by a library
        that moves inputs between devices, say) runs the module that it was made for, and with it the head in
        there.
        """
        if self._path is None:
            self._path = _path(model)
        top = view = shallow(model)
        for name in self._path[:-1]:
            view._modules[name] = below = shallow(view._modules[name])
            if "forward" in vars(view):
                return None
            view = below
        if not self._path or "forward" in vars(view):
            return None
        view._modules[self._path[-1]] = _Packed(view._modules[self._path[-1]], wanted, self._block)
        return top


def _path(model: Any) -> list[str]:
    """The names that lead to the head; none where the model does not tell."""
    try:
        head = model.get_output_embeddings()
    except (AttributeError, NotImplementedError):
        return []
    found = [name for name, module in model.named_modules() if module is head] if head is not None else []
    return found[0].split(".") if found and found[0] else []
