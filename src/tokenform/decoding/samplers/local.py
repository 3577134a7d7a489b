"""Local masking: at each step the next token is drawn from the model's distribution given that it is allowed.

Purpose: greedy decoding, temperature, top-k, top-p and min-p under a mask.
Distribution: the mask comes first, then temperature, top-k, top-p, min-p, each on the renormalised
distribution that the one before it left (`decoding/truncation.py`).  So truncation never empties the set of
allowed tokens.  This bends the model's distribution over whole texts (a token is drawn without regard to how
likely a good ending is after it).
Draws: greedy takes the best token, of equals the smallest id; else the race of `decoding/keyed_random.py`
decides.  `decoding/draws` draws from rows, on a device or on the host.
Rejected: truncating before the mask (top-p could leave no allowed token).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch

from tokenform.decoding.truncation import Truncation, check_numbers
from tokenform.errors import OptionError, SamplingError

_NEVER = float("-inf")


@dataclass(frozen=True)
class Local:
    """Draws each token from the masked distribution of the model.

    Attributes:
        temperature: 0 takes the likeliest token; 1 leaves the distribution as it is.
        top_k: keep the k likeliest tokens; None keeps all.
        top_p: keep the likeliest tokens until their mass reaches top_p; 1 keeps all.
        min_p: drop tokens below min_p times the largest probability; 0 keeps all.
        values: how to draw one of few possible values (a choice, an enum, a constant, a boolean): "whole", as
            if it were one token, with the model's probability of the whole value and its end; or "token",
            token by token, where a likely beginning may lead to an unlikely value.  With "whole", greedy
            sampling also writes the likeliest short string of a language too large to list (a date, a code),
            and for a value of a pattern the likeliest of its text and the spans of the prompt that match.
        forced: how text that the constraint forces, and whitespace before it, is cut into tokens:
            "canonical", as the model's tokenizer writes it; or "any", as drawn.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    values: Literal["whole", "token"] = "whole"
    forced: Literal["canonical", "any"] = "canonical"

    def __post_init__(self) -> None:
        check_numbers(temperature=self.temperature)
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise OptionError(f"temperature={self.temperature} is not possible; give a number of at least 0.")
        if self.values not in ("whole", "token"):
            raise OptionError(f'values={self.values!r} is not known; choose "whole" or "token".')
        if self.forced not in ("canonical", "any"):
            raise OptionError(f'forced={self.forced!r} is not known; choose "canonical" or "any".')
        assert self.truncation  # refuses what is not possible

    @cached_property
    def truncation(self) -> Truncation:
        """Top-k, top-p and min-p."""
        return Truncation(self.top_k, self.top_p, self.min_p)

    @property
    def greedy(self) -> bool:
        """Whether it always takes the likeliest token."""
        return self.temperature == 0 or self.top_k == 1

    def log_distribution(self, logits: torch.Tensor) -> torch.Tensor:
        """Log-probabilities of the distribution that a token is drawn from.

        Args:
            logits: [B, V], -inf where the mask forbids.
        Returns:
            float64 [B, V] on the same device; each row's probabilities sum to one.
        Raises:
            SamplingError: a row has no token of positive probability, or is not a number.
        """
        wide = logits.double()
        top, best = wide.max(-1, keepdim=True)
        if not bool(top.isfinite().all()):
            raise no_token_error()
        if self.temperature == 0:
            return torch.full_like(wide, _NEVER).scatter_(-1, best, 0.0)
        scores = wide / self.temperature
        if not self.truncation.off:
            scores = scores.masked_fill(scores < self.truncation.threshold(scores), _NEVER)
        return torch.log_softmax(scores, -1)

    def before_masks(self, logp: np.ndarray) -> np.ndarray:
        """Temperature and truncation of whole distributions, for callers that mask after them.

        Args:
            logp: log-probabilities float64 [n, V]; not changed.  The caller refuses a temperature of 0.
        Returns:
            log-probabilities float64 [n, V] of rows that sum to one.
        """
        warm = logp if self.temperature == 1 else _normalised(logp / self.temperature)
        if self.truncation.off:
            return warm
        least = np.array([self.truncation.row_threshold(row) for row in warm])
        return _normalised(np.where(warm < least[:, None], -np.inf, warm))


def _normalised(rows: np.ndarray) -> np.ndarray:
    """Along the last axis, in place."""
    rows -= rows.max(-1, keepdims=True)
    rows -= np.log(np.exp(rows).sum(-1, keepdims=True))
    return rows


def no_token_error() -> SamplingError:
    """The error of a row from which nothing can be drawn."""
    return SamplingError(
        "the model gives no allowed token a probability (its logits are -inf or not numbers); "
        "check the model, its precision and the transforms."
    )
