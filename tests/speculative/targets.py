"""Distributions spelled out in numpy, judges of the library's own; and the samplers of these tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import tokenform as tf
from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.speculative.node import Node, mask_bits
from tokenform.errors import OptionError, SamplingError

from .models import VOCABULARY


def sampler(temperature: float = 1.0, banned: Sequence[int] = (), **more: Any) -> MaskedSampler:
    """Draws over the models' vocabulary, token by token as the judges draw; token 0 ends a text.

    Args:
        banned: tokens that are never drawn.
        more: a mixture, penalties.
    """

    def ban(text: Sequence[int], logits: torch.Tensor) -> torch.Tensor:
        logits[list(banned)] = float("-inf")
        return logits

    return MaskedSampler(
        tf.Local(temperature, values="token"), VOCABULARY, [0], [ban] if banned else [], **more
    )


def softmax(scores: np.ndarray) -> np.ndarray:
    top = scores.max()
    if not np.isfinite(top):
        raise SamplingError("no token is left to draw")
    distribution = np.exp(scores - top)
    return distribution / distribution.sum()


Scores = Callable[[np.ndarray, Node], np.ndarray]


class Target:
    """A mixture of the library, then scores changed in the order given; greedy for a point mass on the
    best.
    """

    def __init__(self, changes: Sequence[Scores] = (), mixture: Any = None, greedy: bool = False) -> None:
        self.changes, self.mixture, self.greedy = list(changes), mixture, greedy

    def distribution(self, rows: Sequence[np.ndarray], node: Node) -> np.ndarray:
        scores = np.array(rows[0], np.float64)
        if self.mixture is not None:
            if len(rows) <= self.mixture.companions:
                raise OptionError(f"the target mixes {self.mixture.companions + 1} models or prompts")
            scores = self.mixture([torch.tensor(row, dtype=torch.float64) for row in rows], node).numpy()
        for change in self.changes:
            scores = change(scores, node)
        if not self.greedy:
            return softmax(scores)
        distribution = np.zeros(len(scores))
        distribution[int(np.argmax(scores))] = 1.0
        return distribution


class Mask:
    def __call__(self, scores: np.ndarray, node: Node) -> np.ndarray:
        if node.automaton is not None:
            scores[~mask_bits(node.automaton.mask(node.state), len(scores))] = -np.inf
        return scores


class Ban:
    def __init__(self, tokens: list[int]) -> None:
        self.tokens = list(tokens)

    def __call__(self, scores: np.ndarray, node: Node) -> np.ndarray:
        scores[self.tokens] = -np.inf
        return scores


class Temperature:
    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, scores: np.ndarray, node: Node) -> np.ndarray:
        return scores / self.temperature


class Penalised:
    """The library's penalties."""

    def __init__(self, penalties: Any) -> None:
        self.penalties = penalties

    def __call__(self, scores: np.ndarray, node: Node) -> np.ndarray:
        return self.penalties(torch.from_numpy(scores), node).numpy()
