"""The default: no second model, and nothing that could cost more than it saves.

Purpose: what the grammar forces and suggests, then what stood in the text before.  All is looked up
in microseconds; the controller (`policies/controller.py`) scores it only where it pays.
Rejected: token recycling as a part of it (its top-k of every scored row costs more than 5 % of
a small model's pass on a CPU; add it with `Merge` for large models).
"""

from __future__ import annotations

from .forced import Forced
from .merge import Merge
from .names import Names
from .suffix import Suffix


def auto() -> Merge:
    """The default drafter."""
    return Merge(Forced(), Names(), Suffix())
