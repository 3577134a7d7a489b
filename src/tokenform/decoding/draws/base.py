"""From a node's logits to its distribution and its draw: the settings, and the result of a draw.

Purpose: `MaskedSampler` has all settings of a draw: mixture, penalties, transforms, the mask, `Local`.
Distribution: the model's logits are mixed, penalised, transformed and masked, then `Local` draws, so that
truncation knows the mask.  A token fits if the text can still end within the budget after it.  If the drawn
token does not fit, the distribution is the same given that the token fits; if truncation leaves no token that
fits, it is `Local`'s distribution over those that do.
Invariant: the race of a node has one set of numbers, so the conditional distribution is drawn by the next
best token that fits, and tokens that fit are drawn as if there were no budget.  `Drawn.refused` is the token
that did not fit: there the budget has cut in.
Complexity: O(V) a node; one mask, one `distance`, and a second mask where the draw does not fit.
Rejected: the budget's mask at every node (as many states as the mask has bits).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.node import Node
from tokenform.decoding.speculative.scores import Listed
from tokenform.decoding.speculative.targets import Mixture, Penalties
from tokenform.engine.packed import mask_bits
from tokenform.errors import ModelError, TokenformError

FAILED = "the sampler failed"

Transform = Callable[[Sequence[int], torch.Tensor], torch.Tensor]
"""(tokens so far, prompt included; logits float64 [V], on the model's device) -> logits [V], before the
mask.
"""

Rows = Sequence[torch.Tensor | Listed] | torch.Tensor
"""[V'] of each node, or [N, V'].  `Listed` rows are for `LazyDrawer` alone."""


class Drawn(NamedTuple):
    """The draw at a node.

    Attributes:
        token: its id.
        logprob: natural logarithm of its probability under the model's own distribution; NaN on the host if
            not requested.
        error: why there is none.
        best: the model's likeliest tokens, best first, as many as requested.
        chances: their probabilities under the model's own distribution, if requested.
        refused: the draw without the budget, where it is another; else None.
    """

    token: int
    logprob: float
    error: TokenformError | None = None
    best: Sequence[int] = ()
    chances: Sequence[float] = ()
    refused: int | None = None


class RequestedOutputs(NamedTuple):
    """The requested outputs beside a node's draw: the attributes of `Drawn`.

    Attributes:
        best: how many of the likeliest tokens.
        chances: whether their probabilities too.
        logprob: whether the probability of the draw.
    """

    best: int = 0
    chances: bool = False
    logprob: bool = True


DEFAULT_OUTPUTS = RequestedOutputs()


class MaskedSampler:
    """The settings of a draw; texts with equal settings are drawn together.

    Args:
        local: draws from a masked row.
        size: V of the vocabulary; wider logits are cut to it.
        eos: ids that end a text.
        transforms: applied to the logits before the mask, in order.
        mixture: of the model's logits and a companion's.
        penalties: on tokens that the text already has.
    Attributes:
        untouched: whether nothing changes the model's logits before the mask.
    """

    def __init__(
        self,
        local: Local,
        size: int,
        eos: Sequence[int],
        transforms: Sequence[Transform] = (),
        mixture: Mixture | None = None,
        penalties: Penalties | None = None,
    ) -> None:
        self.local, self.size, self.eos = local, size, frozenset(eos)
        self.transforms, self.mixture, self.penalties = tuple(transforms), mixture, penalties
        self.untouched = mixture is None and penalties is None and not self.transforms
        self._key = local, size, self.eos, *map(id, (*self.transforms, mixture, penalties))
        self._hash = hash(self._key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, MaskedSampler) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def check(self, rows: Sequence[torch.Tensor | Listed]) -> None:
        """Refuses logits that are narrower than the vocabulary; a row of the model and of each companion."""
        for row in rows:
            if row.shape[-1] < self.size:
                raise ModelError(
                    f"the model gives {row.shape[-1]} logits, but the vocabulary has {self.size} ids;"
                    " build it with size= the model's own"
                )

    def free(self, rows: Sequence[torch.Tensor], node: Node) -> torch.Tensor:
        """The scores before the mask, float64 [V] on the rows' device: rows [V'] of the model and
        companions.
        """
        wide = [row[: self.size].double() for row in rows]
        scores = wide[0].clone() if self.mixture is None else self.mixture(wide, node)
        if self.penalties is not None:
            scores = self.penalties(scores, node)
        for transform in self.transforms:
            scores = transform(node.text, scores)
        return scores

    def fits(self, node: Node, token: int) -> bool:
        """Whether the text can still end within the budget after the token."""
        if token in self.eos or node.automaton is None:
            return True
        after = node.automaton.advance(node.state, token)
        distance = node.automaton.distance(after, node.remaining)
        return distance is not None and distance < node.remaining

    @torch.inference_mode()
    def distribution(self, rows: Sequence[torch.Tensor], node: Node) -> tuple[torch.Tensor, float]:
        """The distribution at a node without forced or excluded tokens, and the mass that the budget refuses:
        the definition of what drawers draw.

        Args:
            rows: logits [V'] of the model, then of each companion.
        Returns:
            float64 [V'], and a probability.
        Raises:
            SamplingError: no allowed token has a probability.
        """
        free, auto, state = self.free(rows, node), node.automaton, node.state
        if auto is None:
            found, refused = self._drawn(free, None), 0.0
        else:
            found, refused = self._drawn(free, auto.mask(state)), 0.0
            within = auto.mask_within(state, node.remaining)
            bits = torch.from_numpy(mask_bits(within, self.size)).to(found.device)
            fits = bits.clone()
            fits[[token for token in self.eos if token < self.size]] = True
            refused = float((found * ~fits).sum())
            if refused:
                found = found * fits
                if not float(found.sum()):
                    alone = self.mixture is not None and not free[bits].isfinite().any()
                    found = self._drawn(rows[0][: self.size].double() if alone else free, within)
                found = found / found.sum()
        return torch.nn.functional.pad(found, (0, rows[0].shape[-1] - self.size)), refused

    def _drawn(self, scores: torch.Tensor, words: Any) -> torch.Tensor:
        """The distribution of scores [V] under a mask."""
        if words is not None:
            bits = torch.from_numpy(mask_bits(words, self.size)).to(scores.device)
            scores = scores.masked_fill(~bits, float("-inf"))
        return self.local.log_distribution(scores[None])[0].exp()
