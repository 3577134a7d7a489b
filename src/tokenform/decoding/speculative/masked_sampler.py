"""Local masking at a node: what makes `Local` a sampler of the backbone.

Purpose: one token from the masked law of a node, kept within the budget: where no accepted end
is left within the remaining tokens after the draw, it is drawn again from the law over the
tokens after which one is.
Invariant: the draw depends on the node alone; its numbers are streams 0 and `_REDRAW` of the
node's key, so that it equals the draw of plain decoding.
Mixtures and penalties come before the transforms.  Where a mixture leaves no token that still fits into the
budget, the model's own law decides there: the text would have no end otherwise.
Complexity: O(V) a node; one mask, one `distance`, and a second mask near the budget's end.
Rejected: checking every allowed token against the budget (as many states as the mask has bits).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from tokenform.errors import ModelError

from .node import Node, mask_bits
from .targets import Mixture, Penalties

_REDRAW = 1 << 16

Transform = Callable[[Sequence[int], torch.Tensor], torch.Tensor]
"""(tokens so far, prompt included; logits float64 [V]) -> logits [V], before the mask."""


class RowSampler(Protocol):
    """What is asked of `Local`: laws and draws of masked rows."""

    def log_law(self, logits: torch.Tensor) -> torch.Tensor: ...
    def draw(self, logits: torch.Tensor, uniforms: Sequence[float]) -> list[int]: ...


class MaskedSampler:
    """Args:
    local: draws from a masked row.
    size: V of the vocabulary; wider logits are cut to it.
    eos: ids that end a text.
    transforms: applied to the logits before the mask, in order.
    mixture: of the model's logits and a companion's.
    penalties: on tokens that the text has already.
    """

    def __init__(
        self,
        local: RowSampler,
        size: int,
        eos: Sequence[int],
        transforms: Sequence[Transform] = (),
        mixture: Mixture | None = None,
        penalties: Penalties | None = None,
    ) -> None:
        self.local, self.size, self.eos = local, size, frozenset(eos)
        self.transforms, self.mixture, self.penalties = tuple(transforms), mixture, penalties

    def _free(self, node: Node) -> torch.Tensor:
        least = min(len(row) for row in node.logits)
        if least < self.size:
            raise ModelError(
                f"the model gives {least} logits, but the vocabulary has {self.size} ids;"
                " build it with size= the model's own"
            )
        rows = tuple(row[: self.size] for row in node.logits)
        scores = rows[0] if self.mixture is None else self.mixture(rows, node)
        if self.mixture is None and (self.transforms or self.penalties is not None):
            scores = scores.copy()  # penalties and transforms may write into it
        if self.penalties is not None:
            scores = self.penalties(scores, node)
        free = torch.from_numpy(scores)
        for transform in self.transforms:
            free = transform(node.text, free)
        return free

    def _masked(self, free: torch.Tensor, words: Any) -> torch.Tensor:
        bits = mask_bits(np.asarray(words).view(np.uint32), self.size)
        return torch.from_numpy(np.where(bits, free.detach().numpy(), -np.inf)[None])

    def _within(self, node: Node, free: torch.Tensor, words: Any) -> torch.Tensor:
        masked = self._masked(free, words)
        if self.mixture is not None and not torch.isfinite(masked.amax()):
            return self._masked(torch.from_numpy(node.logits[0][: self.size]), words)
        return masked

    def draw(self, node: Node) -> int:
        free, auto = self._free(node), node.automaton
        if auto is None:
            return self.local.draw(free[None], [node.uniform()])[0]
        token = self.local.draw(self._masked(free, auto.mask(node.state)), [node.uniform()])[0]
        if token in self.eos or self._fits(node, token):
            return token
        words = auto.mask_within(node.state, node.remaining)
        return self.local.draw(self._within(node, free, words), [node.uniform(_REDRAW)])[0]

    def law(self, node: Node) -> np.ndarray:
        """float64 [V of the model]: the law of `draw`, the second draw included."""
        free, auto = self._free(node), node.automaton
        law = np.zeros(len(node.logits[0]))
        if auto is None:
            law[: self.size] = self.local.log_law(free[None])[0].exp().numpy()
            return law
        first = self.local.log_law(self._masked(free, auto.mask(node.state)))[0].exp().numpy()
        words = auto.mask_within(node.state, node.remaining)
        fits = mask_bits(np.asarray(words).view(np.uint32), self.size)
        fits[list(self.eos)] = True
        again = float(first[~fits].sum())
        law[: self.size] = np.where(fits, first, 0.0)
        if again > 0:
            law[: self.size] += again * self.local.log_law(self._within(node, free, words))[0].exp().numpy()
        return law

    @staticmethod
    def _fits(node: Node, token: int) -> bool:
        """Whether an accepted end is left within the budget after the token."""
        after = node.automaton.advance(node.state, token)
        distance = node.automaton.distance(after, node.remaining)
        return distance is not None and distance < node.remaining
