"""The constraint's mask.

Invariant: a token that the automaton does not allow has no mass; the others keep their ratios.
"""

from __future__ import annotations

import numpy as np

from ..node import Node, mask_bits


class Mask:
    """Takes the tokens away that the node's state does not allow; nothing without a constraint."""

    def __call__(self, scores: np.ndarray, node: Node) -> np.ndarray:
        if node.automaton is not None:
            scores[~mask_bits(node.automaton.mask(node.state), len(scores))] = -np.inf
        return scores


class Ban:
    """Takes fixed tokens away (padding ids, an EOS that may not come yet)."""

    def __init__(self, tokens: list[int]) -> None:
        self.tokens = list(tokens)

    def __call__(self, scores: np.ndarray, node: Node) -> np.ndarray:
        scores[self.tokens] = -np.inf
        return scores
