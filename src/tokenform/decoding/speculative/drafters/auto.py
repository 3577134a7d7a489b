"""The default: no second model, and nothing that could cost more than it saves.

Purpose: what the grammar forces, then what stood in the text before.  Both are looked up in
microseconds; the controller (`policies/controller.py`) scores them only where they pay.
Rejected: token recycling as a part of it (its top-k of every scored row costs more than 5 % of
a small model's pass on a CPU; add it with `Merge` for large models).
"""

from __future__ import annotations

from collections.abc import Sequence

from .forced import Forced
from .merge import Merge
from .suffix import Suffix


def auto(vocabulary: Sequence[bytes] | None = None, remember: bool = True) -> Merge:
    """The default drafter.

    Args:
        vocabulary: bytes of every token id; without them the ends of forced spans get no siblings.
        remember: learn from finished outputs, for later ones.
    """
    return Merge(Forced(vocabulary), Suffix(remember=remember))
