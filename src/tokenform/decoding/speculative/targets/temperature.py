"""Temperature: p(x) proportional to exp(score / T)."""

from __future__ import annotations

import numpy as np

from tokenform.errors import OptionError

from ..node import Node


class Temperature:
    """Divides the scores by T > 0 (for T = 0 make the target greedy)."""

    def __init__(self, temperature: float) -> None:
        if not temperature > 0:
            raise OptionError(f"temperature is above 0, not {temperature}; for 0 use Target(greedy=True)")
        self.temperature = temperature

    def __call__(self, scores: np.ndarray, node: Node) -> np.ndarray:
        scores /= self.temperature
        return scores
