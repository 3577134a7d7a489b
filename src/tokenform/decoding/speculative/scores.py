"""Logits of a pass, where some rows have those of listed tokens only.

Purpose: over a large vocabulary the head costs more than all layers of a small model, and under a mask of few
tokens nearly all of its logits go unused.
Invariant: reading a token that is not listed raises; no value stands for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import overload

import numpy as np
import torch

from tokenform.errors import InvalidState

Columns = Sequence[np.ndarray | None]
"""At each row the ascending ids of the tokens whose logits are needed; None for all."""


class Listed:
    """One row's logits at listed tokens.

    Args:
        ids: ascending.
        scores: float32 or float64, on the host.
        size: columns of the model's logits.
    """

    __slots__ = ("ids", "scores", "shape")

    def __init__(self, ids: np.ndarray, scores: np.ndarray, size: int) -> None:
        self.ids, self.scores, self.shape = ids, scores, (size,)

    @overload
    def __getitem__(self, tokens: int) -> float: ...
    @overload
    def __getitem__(self, tokens: np.ndarray) -> np.ndarray: ...
    def __getitem__(self, tokens: int | np.ndarray) -> float | np.ndarray:
        if tokens is self.ids:
            return self.scores
        places = np.searchsorted(self.ids, tokens)
        if np.size(tokens) and (not len(self.ids) or np.any(self.ids.take(places, mode="clip") != tokens)):
            raise InvalidState("the logit of this token was not computed")
        found: np.ndarray = self.scores[places]
        return found


class Scores:
    """Rows of one pass.

    Args:
        listed: the rows with logits of listed tokens only.
        wide: the others, ascending, and their logits [n, V].
        compute: computes all logits of rows.
        span: the first row, and the one after the last; None: all.
    """

    def __init__(
        self,
        listed: dict[int, Listed],
        wide: Sequence[int],
        logits: torch.Tensor,
        compute: Callable[[slice], torch.Tensor],
        span: tuple[int, int] | None = None,
    ) -> None:
        self._listed, self._wide, self._logits, self._compute = listed, wide, logits, compute
        self._start, self._end = span or (0, len(listed) + len(wide))

    def part(self, start: int, end: int) -> torch.Tensor | Scores:
        """Some of the rows; as a tensor [n, V] if all of their logits are known."""
        start, end = self._start + start, self._start + end
        at = bisect_left(self._wide, start)
        if all(row not in self._listed for row in range(start, end)):
            return self._logits[at : at + end - start]
        return Scores(self._listed, self._wide, self._logits, self._compute, (start, end))

    def whole(self) -> torch.Tensor:
        """All logits [n, V]."""
        return self._compute(slice(self._start, self._end))

    def __len__(self) -> int:
        return self._end - self._start

    def __getitem__(self, row: int) -> torch.Tensor | Listed:
        row += self._start
        known = self._listed.get(row)
        return self._logits[bisect_left(self._wide, row)] if known is None else known


def root_of(logits: torch.Tensor | Scores, row: int = 0) -> torch.Tensor | None:
    """One row [V]; None where only some of its logits are known."""
    found = logits[row]
    return found if isinstance(found, torch.Tensor) else None


def picked(rows: torch.Tensor, at: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Log-probabilities float64 of tokens, each at a row [V]; one transfer."""
    wide = rows if rows.dtype == torch.float64 else rows.float()
    total = wide.logsumexp(-1).double()
    where, ids = torch.from_numpy(at).to(rows.device), torch.from_numpy(tokens).to(rows.device)
    return np.array((wide[where, ids].double() - total[where]).tolist())
