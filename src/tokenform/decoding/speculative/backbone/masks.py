"""Additive 4-D attention masks over slots.

Purpose: who sees what in one forward pass over draft trees: a token sees the committed
text of its sequence, its ancestors in the tree and itself; in a layer with a sliding
window only those less than `window` *text positions* back.
Invariant: padding sees slot 0 alone, so that no line of a softmax is empty.
Complexity: O(lines x tokens x slots).
Rejected: boolean masks (eager attention adds them: silently wrong); windows by slot
number (slots are no positions).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def layer_windows(config: Any) -> dict[str, int | None]:
    """Layer type -> sliding window in tokens, None for the whole text."""
    window = getattr(config, "sliding_window", None)
    types = getattr(config, "layer_types", None)
    if types is None:
        return {"full_attention": window if getattr(config, "use_sliding_window", True) else None}
    return {t: (window if t == "sliding_attention" else None) for t in dict.fromkeys(types)}


def additive_masks(
    allowed: np.ndarray,
    query_positions: np.ndarray,
    slot_positions: np.ndarray,
    windows: dict[str, int | None],
    device: torch.device,
    dtype: torch.dtype,
) -> torch.Tensor | dict[str, torch.Tensor]:
    """The mask that the model takes: one tensor, or one for each type of layer.

    Args:
        allowed: bool [lines, tokens, slots], without any window.
        query_positions: int [lines, tokens], text positions of the tokens of the pass.
        slot_positions: int [lines, slots], text positions of the slots.
        windows: from `layer_windows`.
    Returns:
        float [lines, 1, tokens, slots] of 0 and the dtype's least number, or a dict of them.
    """
    lowest = torch.finfo(dtype).min
    masks: dict[str, torch.Tensor] = {}
    made: dict[int | None, torch.Tensor] = {}
    for kind, window in windows.items():
        if window is not None and int(query_positions.max(initial=0)) < window:
            window = None
        if window not in made:
            seen = allowed
            if window is not None:
                seen = allowed & (query_positions[:, :, None] - slot_positions[:, None, :] < window)
                seen[:, :, 0] = allowed[:, :, 0]
            free = torch.from_numpy(seen).to(device)[:, None]
            made[window] = torch.full(free.shape, lowest, dtype=dtype, device=device).masked_fill_(free, 0)
        masks[kind] = made[window]
    return next(iter(masks.values())) if len(masks) == 1 else masks
