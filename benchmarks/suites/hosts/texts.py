"""What the hosts' drivers share: texts as they grow, and a model that draws them.

Invariant: a text is judged by its tokens alone, whichever host wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class EmptyMask(AssertionError):
    """A mask that allows nothing: no backend should write one."""


@dataclass
class Text:
    """One request and what became of it; `reason` is "stop", "length" or "error", None while it runs."""

    request: Any = None
    tokens: list[int] = field(default_factory=list)
    reason: str | None = None
    error: str | None = None

    def written(self, tokenizer: Any) -> str:
        """The text without its end-of-text token."""
        tokens = self.tokens[:-1] if self.reason == "stop" else self.tokens
        decoded: str = tokenizer.decode(tokens, skip_special_tokens=False)
        return decoded


def random_model(size: int, seed: int = 0, *, boring: Sequence[int] = ()) -> Callable[[np.ndarray, int], int]:
    """A model whose logits are random: draws among what a mask allows; `boring` tokens come last of all.

    Raises, when called:
        EmptyMask: the mask allows nothing.
    """
    random = np.random.default_rng(seed)
    dull = np.asarray(sorted(boring), dtype=np.int64)

    def draw(row: np.ndarray, place: int) -> int:
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        allowed = allowed[allowed < size]
        if not len(allowed):
            raise EmptyMask("the mask allows nothing")
        if len(dull):
            lively = np.setdiff1d(allowed, dull, assume_unique=True)
            allowed = lively if len(lively) else allowed
        return int(random.choice(allowed))

    return draw
