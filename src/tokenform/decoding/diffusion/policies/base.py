"""The protocol of policies: a pass in, positions out.

Invariant: a policy chooses positions, never tokens: the tokens of one filling are accepted together, so the
canvas can still be filled after any choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class FillStep:
    """A pass of the model over a canvas.

    Attributes:
        open: the open positions, ascending.
        tokens: int [len(open)], the tokens that would be committed.
        confidence: float64 [len(open)], the probability of the token that would be committed, among those
            that its position allows.
        entropy: float64 [len(open)], of the position's distribution over these, in nats.
        margin: float64 [len(open)], between the probabilities of the two likeliest of these.
        length: positions of the canvas.
        masks: uint32 [len(open), ceil(V/32)], the tokens that each position allows.
        logits: float32 [L, V], of the model.
        filling: int [L], all tokens of the filling that `tokens` are of, known ones included.
        prompt: the ids before the canvas.
    """

    open: Sequence[int]
    tokens: NDArray[np.int32]
    confidence: NDArray[np.float64]
    entropy: NDArray[np.float64]
    margin: NDArray[np.float64]
    length: int
    masks: NDArray[np.uint32] | None = None
    logits: NDArray[np.float32] | None = None
    filling: NDArray[np.int32] | None = None
    prompt: Sequence[int] = ()

    def only(self, places: Sequence[int]) -> FillStep:
        """The same with these places of `open` alone."""
        chosen = list(places)
        return replace(
            self,
            open=[self.open[place] for place in chosen],
            tokens=self.tokens[chosen],
            confidence=self.confidence[chosen],
            entropy=self.entropy[chosen],
            margin=self.margin[chosen],
            masks=None if self.masks is None else self.masks[chosen],
        )


class FillPolicy(Protocol):
    """A policy; each text has a copy of its own, which may keep state.

    Optional attributes:
        blind: its choice does not depend on which tokens were drawn (`tokens`, `confidence`, `filling`), so
            that texts can be weighed; False where there is none.
        drafts: passes that are guessed ahead; 0 where there is none.
    """

    def choose(self, step: FillStep) -> Sequence[int]:
        """Positions of `step.open` to commit; where there is none, the surest is."""
