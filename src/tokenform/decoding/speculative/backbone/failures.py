"""What running a model may raise, told apart.

Purpose: what a model can't do is said once and for all; memory that runs out says nothing about the model.
"""

from __future__ import annotations

import torch

FAILURES = (
    TypeError,
    ValueError,
    RuntimeError,
    AttributeError,
    KeyError,
    IndexError,
    NotImplementedError,
)
"""What a model may raise that can't do what it was tried for."""

_SAID = ("can't allocate memory", "can't start new thread")
"""By torch on the CPU, and by Python."""


def out_of_memory(error: BaseException | None) -> bool:
    """Whether memory ran out, be it said by an error that another was made of (as compilers make them)."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or any(one in str(error) for one in _SAID):
            return True
        error = getattr(error, "inner_exception", None) or error.__cause__ or error.__context__
    return False
