"""Logit mixing before the mask: a second model or prompt, penalties.

Purpose: contrastive decoding (an expert against an amateur), context-aware decoding (with and without the
document), a safety mixture, anchored decoding.  The companion scores the same draft tree, so that drafts stay
lossless.
Invariant: a mixture reads only its own node, transfers nothing from the device to the host, and returns
scores of a proper distribution on the tokens of finite score.  Penalties depend on the node's own path, so a
drafted repetition counts.
Source: Li et al. 2023, equation 2 (contrastive); Shi et al. 2024, equation 2 (context-aware); Xu et al. 2024
(SafeDecoding, equation 4); the exponential-family projection (Csiszar 1975) behind anchored decoding; Keskar
et al. 2019 (repetition, section 4.1); frequency and presence as in common serving interfaces: score -
frequency x count - presence x [count > 0].
Rejected, for anchored decoding: a linear mixture (its divergence has no closed direction of descent: it is
not the nearest distribution).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

import torch

from tokenform.decoding.speculative.node import Node
from tokenform.errors import OptionError

__all__ = ["Anchored", "ContextAware", "Contrastive", "Mixture", "Penalties", "Safety"]

_LEAST = -1e30  # stands for log 0, so that no weight makes it a NaN


class Mixture(Protocol):
    """Makes one row of scores from the model's and its companions' logits.

    Attributes:
        companions: how many rows beside the model's own it needs.
    """

    companions: int

    def __call__(self, logits: Sequence[torch.Tensor], node: Node) -> torch.Tensor:
        """(1 + companions) x [V] -> float64 [V], log-probabilities up to a constant; not one of the
        arguments.
        """
        ...


def log_distribution(row: torch.Tensor) -> torch.Tensor:
    """float64 [V], normalised log-probabilities of logits [V]."""
    return torch.log_softmax(torch.as_tensor(row).double(), -1)


class Contrastive:
    """Expert minus amateur: (1 + beta) log p_e - beta log p_a on tokens with p_e >= alpha max p_e.

    Under a constraint the maximum is over the allowed tokens, so that some remain.
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


class Anchored:
    """The distribution nearest to the model's own within a KL radius of a safe model's.

    It minimises KL(p || p_model) subject to KL(p || p_safe) <= radius at every token, so a text of n tokens
    diverges from the safe model by at most n x radius nats.  The solution is the geometric mixture p_w of
    weight w on the model, w in [0, 1] the largest with KL(p_w || p_safe) <= radius (the Lagrangian of the
    problem; the divergence grows with w, so bisection finds it): 60 steps of O(V), none of which asks the
    device for a number.

    Args:
        radius: largest divergence KL(p || p_safe) of a token, in nats.
    """

    companions = 1

    def __init__(self, radius: float) -> None:
        if radius < 0:
            raise OptionError(f"the radius is at least 0 nats, not {radius}")
        self.radius = radius

    def __call__(self, logits: Sequence[torch.Tensor], node: Node) -> torch.Tensor:
        own, safe = (log_distribution(row).clamp(min=_LEAST) for row in logits[:2])
        low, high = own.new_zeros(()), own.new_ones(())
        for _ in range(60):
            middle = (low + high) / 2
            inside = divergence(_mix(own, safe, middle), safe) <= self.radius
            low, high = torch.where(inside, middle, low), torch.where(inside, high, middle)
        return torch.where(divergence(own, safe) <= self.radius, own, _mix(own, safe, low))


def _mix(own: torch.Tensor, safe: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(weight * own + (1 - weight) * safe, -1)


def divergence(log_p: torch.Tensor, log_q: torch.Tensor) -> torch.Tensor:
    """KL(p || q) in nats of normalised log-probabilities [V]."""
    p = log_p.exp()
    return torch.where(p > 0, p * (log_p - log_q), 0.0).sum()


class Penalties:
    """Penalties on tokens that the text already has.

    Args:
        repetition: positive scores are divided, negative ones multiplied by it; 1 is off.
        frequency, presence: subtracted per occurrence and once.
        prompt: whether the prompt's tokens count for `repetition` (the others never count them).
    """

    def __init__(
        self, repetition: float = 1.0, frequency: float = 0.0, presence: float = 0.0, prompt: bool = True
    ) -> None:
        if not repetition > 0:
            raise OptionError(f"the repetition penalty is above 0, not {repetition}")
        self.repetition, self.frequency, self.presence, self.prompt = repetition, frequency, presence, prompt

    def __call__(self, scores: torch.Tensor, node: Node) -> torch.Tensor:
        """float64 [V] -> float64 [V]; the argument may be overwritten."""
        if self.repetition != 1.0:
            seen = torch.tensor(sorted(set(node.text if self.prompt else node.output)), dtype=torch.long)
            seen = seen.to(scores.device)
            old = scores[seen]
            scores[seen] = torch.where(old > 0, old / self.repetition, old * self.repetition)
        if self.frequency or self.presence:
            counts = Counter(node.output)
            tokens = torch.tensor(list(counts), dtype=torch.long).to(scores.device)
            often = torch.tensor(list(counts.values()), dtype=torch.float64).to(scores.device)
            scores[tokens] -= self.frequency * often + self.presence
        return scores
