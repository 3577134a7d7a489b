"""Mixtures of two models or two prompts.

Purpose: contrastive decoding (an expert against an amateur), context-aware decoding (with
and without the document), a safety mixture.  The companion
scores the same draft tree, so that drafts stay lossless.
Invariant: each returns scores of a proper distribution on the tokens of finite score.
Source: Li et al. 2023, equation 2 (contrastive); Shi et al. 2024, equation 2
(context-aware); Xu et al. 2024 (SafeDecoding, equation 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from tokenform.decoding.speculative.node import Node
from tokenform.errors import OptionError

from .base import log_distribution


class Contrastive:
    """Expert minus amateur: (1 + beta) log p_e - beta log p_a on tokens with p_e >= alpha max p_e.

    Under a constraint the maximum is over the allowed tokens, so that some are left.
    """

    companions = 1

    def __init__(self, beta: float = 0.5, alpha: float = 0.1) -> None:
        if beta < 0 or not 0 <= alpha <= 1:
            raise OptionError(f"beta is at least 0 and alpha in [0, 1], not {beta} and {alpha}")
        self.beta, self.alpha = beta, alpha

    def __call__(self, logits: Sequence[torch.Tensor], node: Node) -> torch.Tensor:
        expert, amateur = log_distribution(logits[0]), log_distribution(logits[1])
        scores = (1 + self.beta) * expert - self.beta * amateur
        if self.alpha > 0:
            best = expert.max()
            if node.automaton is not None:
                allowed = torch.from_numpy(node.allowed(len(expert))).to(expert.device)
                best = expert.masked_fill(~allowed, -math.inf).max()
            scores = scores.masked_fill(expert < best + math.log(self.alpha), -math.inf)
        return scores


class ContextAware:
    """With context minus without: (1 + alpha) log p(. | context) - alpha log p(. | none)."""

    companions = 1

    def __init__(self, alpha: float = 0.5) -> None:
        if alpha < 0:
            raise OptionError(f"alpha is at least 0, not {alpha}")
        self.alpha = alpha

    def __call__(self, logits: Sequence[torch.Tensor], node: Node) -> torch.Tensor:
        return (1 + self.alpha) * log_distribution(logits[0]) - self.alpha * log_distribution(logits[1])


class Safety:
    """p + alpha (p_safe - p), for the first `tokens` tokens of the output; negative mass is cut off.

    alpha in [0, 1] is a linear mixture; above 1 it moves past the safe model.
    """

    companions = 1

    def __init__(self, alpha: float = 0.5, tokens: int | None = None) -> None:
        if alpha < 0:
            raise OptionError(f"alpha is at least 0, not {alpha}")
        self.alpha, self.tokens = alpha, tokens

    def __call__(self, logits: Sequence[torch.Tensor], node: Node) -> torch.Tensor:
        own = log_distribution(logits[0])
        if self.tokens is not None and node.position - node.prompt_length >= self.tokens:
            return own
        p, safe = own.exp(), log_distribution(logits[1]).exp()
        return (p + self.alpha * (safe - p)).clamp(min=0.0).log()
