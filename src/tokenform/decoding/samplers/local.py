"""Local masking: at each step the next token is drawn from the model's law given that it is allowed.

Purpose: greedy decoding, temperature, top-k, top-p and min-p under a mask.
Law: the mask comes first, then temperature, top-k, top-p, min-p, each on the renormalised law that the
one before it left.  So truncation never empties the set of allowed tokens.  This bends the model's law
over whole texts (a token is chosen without regard to how likely a good ending is after it).
Invariant: a draw depends on the logits and its uniform number alone; ties are broken by the smaller id.
Complexity: O(V) a row, O(V log V) with truncation, in float64.
Source: Fan et al. 2018 (top-k), Holtzman et al. 2020 (top-p), Nguyen et al. 2024 (min-p).
Rejected: truncating before the mask (top-p could leave no allowed token); Gumbel noise (V random numbers
a step instead of one, and a draft could not be checked against the same draw).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tokenform.errors import OptionError, SamplingError

_NEVER = float("-inf")


@dataclass(frozen=True)
class Local:
    """Draws each token from the masked law of the model.

    Attributes:
        temperature: 0 takes the likeliest token; 1 leaves the law as it is.
        top_k: keep the k likeliest tokens; None keeps all.
        top_p: keep the likeliest tokens until their mass reaches top_p; 1 keeps all.
        min_p: drop tokens below min_p times the largest probability; 0 keeps all.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise OptionError(f"temperature={self.temperature} is not possible; give a number of at least 0.")
        if self.top_k is not None and self.top_k < 1:
            raise OptionError(f"top_k={self.top_k} is not possible; give at least 1, or None for all tokens.")
        if not 0 < self.top_p <= 1:
            raise OptionError(f"top_p={self.top_p} is not possible; give a number above 0 and at most 1.")
        if not 0 <= self.min_p <= 1:
            raise OptionError(f"min_p={self.min_p} is not possible; give a number from 0 to 1.")

    def log_law(self, logits: torch.Tensor) -> torch.Tensor:
        """Log-probabilities of the law that a token is drawn from.

        Args:
            logits: [B, V], -inf where the mask forbids.
        Returns:
            float64 [B, V]; each row's probabilities sum to one.
        Raises:
            SamplingError: a row has no token of positive probability, or is not a number.
        """
        wide, top, best = _checked(logits)
        if self.temperature == 0:
            return torch.full_like(wide, _NEVER).scatter_(-1, best.unsqueeze(-1), 0.0)
        law = torch.log_softmax((wide - top.unsqueeze(-1)) / self.temperature, -1)
        if self.top_k is None and self.top_p == 1 and self.min_p == 0:
            return law
        return self._truncated(law)

    def _truncated(self, law: torch.Tensor) -> torch.Tensor:
        ranked, order = torch.sort(law, dim=-1, descending=True, stable=True)
        if self.top_k is not None:
            ranked[..., self.top_k :] = _NEVER
            ranked = torch.log_softmax(ranked, -1)
        if self.top_p < 1:
            mass = ranked.exp()
            before = mass.cumsum(-1) - mass  # of the tokens that are likelier: 0 for the first, which stays
            ranked = torch.log_softmax(ranked.masked_fill(before >= self.top_p, _NEVER), -1)
        if self.min_p > 0:
            floor = ranked[..., :1] + math.log(self.min_p)
            ranked = torch.log_softmax(ranked.masked_fill(ranked < floor, _NEVER), -1)
        return torch.empty_like(ranked).scatter_(-1, order, ranked)

    def draw(self, logits: torch.Tensor, uniforms: Sequence[float]) -> list[int]:
        """One token a row: the inverse of the cumulative law at the row's uniform number.

        Args:
            logits: [B, V], -inf where the mask forbids.
            uniforms: B numbers in [0, 1).
        """
        if self.temperature == 0:
            return [int(token) for token in _checked(logits)[2].tolist()]
        mass = self.log_law(logits).exp()
        cumulative = mass.cumsum(-1)
        numbers = torch.tensor(uniforms, dtype=torch.float64, device=mass.device).unsqueeze(-1)
        drawn = torch.searchsorted(cumulative, numbers * cumulative[:, -1:], right=True).squeeze(-1)
        # Rounding at the upper end may step past the last token of positive mass.
        places = torch.arange(mass.shape[-1], device=mass.device)
        last = torch.where(mass > 0, places, 0).amax(-1)
        return [int(token) for token in torch.minimum(drawn, last).tolist()]


def _checked(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The logits in float64 [B, V], each row's largest [B] and the smallest id that has it [B]."""
    wide = logits.double()
    top, best = wide.max(-1)  # a NaN and its place, where there is one
    if not all(map(math.isfinite, top.tolist())):
        raise SamplingError(
            "the model gives no allowed token a probability (its logits are -inf or not numbers); "
            "check the model, its precision and the transforms."
        )
    return wide, top, best
