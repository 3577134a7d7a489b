"""Additive 4-D attention masks over slots.

Purpose: who sees what in one forward pass over draft trees: a token sees the committed
text of its sequence, its ancestors in the tree and itself; in a layer with a sliding
window only those less than `window` *text positions* back.
Invariant: padding sees slot 0 alone, so that no line of a softmax is empty.
Rejected: boolean masks (eager attention adds them: silently wrong); windows by slot
number (slots are no positions).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

Windows = dict[str, int | None]
"""Layer type -> sliding window in tokens, None for the whole text."""


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
