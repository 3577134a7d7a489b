"""The model's head where its logits are wanted, and nowhere else.

Purpose: the lines of a pass are padded to the longest of them.  Over a large vocabulary the head costs more
than all layers of a small model, so it is given the wanted positions as one line.
Invariant: the model is never touched (see `skipping.py`), so other threads may run it meanwhile.  What the
model does after its head (a scale, a soft cap) is done to each position alone; `choice.py` tries that on it.
Memory: some dictionaries of modules; no parameters.
Rejected: `logits_to_keep` as a tensor (the same columns of every line).
"""

from __future__ import annotations

from typing import Any

import torch

from .skipping import shallow


class _Packed(torch.nn.Module):
    """The head over some of the positions that it is given, as one line."""

    def __init__(self, head: torch.nn.Module, wanted: torch.Tensor) -> None:
        super().__init__()
        self.head, self.wanted = head, wanted

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        packed: torch.Tensor = self.head(hidden.flatten(0, 1)[self.wanted][None])
        return packed


class WantedLogits:
    """Runs a model for the logits of wanted positions."""

    def __init__(self) -> None:
        self._path: list[str] | None = None

    def __call__(self, model: Any, wanted: torch.Tensor, width: int, **inputs: Any) -> torch.Tensor:
        """Logits [N, V] of one pass.

        Args:
            model: a causal language model, or a view of it; the same at every call.
            wanted: int64 [N], ascending, among the last `width` positions of each of L lines, which are
                counted through.
        """
        padded = len(wanted) < inputs["input_ids"].shape[0] * width
        view = self._view(model, wanted) if padded else None
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
        view._modules[self._path[-1]] = _Packed(view._modules[self._path[-1]], wanted)
        return top


def _path(model: Any) -> list[str]:
    """The names that lead to the head; none where the model does not tell."""
    try:
        head = model.get_output_embeddings()
    except (AttributeError, NotImplementedError):
        return []
    found = [name for name, module in model.named_modules() if module is head] if head is not None else []
    return found[0].split(".") if found and found[0] else []
