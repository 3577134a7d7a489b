"""The target at the nodes of one scored tree, for samplers of one's own that are asked on the host.

Invariant: distributions and draws are computed at most once a node, and only where a verifier asks.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch

from tokenform.engine import State

from .node import Node
from .request import Request
from .tree import DraftTree

_AT_ONCE = 1 << 17  # logits of a tree


class NodeDistributions:
    """Asks the request's sampler at the nodes of a tree.

    Args:
        logits: [n + 1, V] of the model, then of each companion.
        base: prompt and committed output.
        states: the automaton's state at each node.
        remaining: tokens that may still be written.
    """

    def __init__(
        self,
        request: Request,
        tree: DraftTree,
        logits: Sequence[torch.Tensor],
        base: list[int],
        states: dict[int, State | None],
        remaining: int,
    ) -> None:
        self._request, self._tree, self._logits = request, tree, logits
        self._base, self._states, self._remaining = base, states, remaining
        self._rows: list[np.ndarray | None] = [None] * len(logits)
        self._nodes: dict[int, Node] = {}
        self._distributions: dict[int, np.ndarray] = {}
        self.seconds = 0.0

    def _ended(self, node: int) -> bool:
        if node >= 0 and self._tree.tokens[node] in self._request.eos:
            return True
        state = self._states[node]
        return self._request.automaton is not None and (
            state is None or self._request.automaton.is_finished(state)
        )

    def node(self, node: int) -> Node:
        """The node as a sampler sees it."""
        made = self._nodes.get(node)
        if made is None:
            request = self._request
            rows = tuple(self._row(number, node + 1) for number in range(len(self._logits)))
            path = self._tree.path(node) if node >= 0 else []
            made = Node(
                rows, self._base, path, len(request.prompt), request.automaton, self._states[node],
                self._remaining - len(path), request.seed, request.number,
            )  # fmt: skip
            self._nodes[node] = made
        return made

    def _row(self, number: int, row: int) -> np.ndarray:
        """float64 [V]; logits that are small as a whole are copied to the CPU at once."""
        if self._rows[number] is None and self._logits[number].numel() <= _AT_ONCE:
            self._rows[number] = self._logits[number].to("cpu", torch.float64).numpy()
        rows = self._rows[number]
        if rows is not None:
            one: np.ndarray = rows[row]
            return one
        return self._logits[number][row].to("cpu", torch.float64).numpy()

    def distribution(self, node: int) -> np.ndarray:
        if node not in self._distributions:
            began = time.perf_counter()
            if self._ended(node):  # never committed; verifiers may look one step too far
                distribution = np.zeros(self._logits[0].shape[-1])
                distribution[next(iter(self._request.eos), 0)] = 1.0
            else:
                distribution = self._request.sampler.distribution(self.node(node))
            self._distributions[node] = distribution
            self.seconds += time.perf_counter() - began
        return self._distributions[node]

    def draw(self, node: int) -> int:
        if self._ended(node):
            return next(iter(self._request.eos), 0)
        began = time.perf_counter()
        token = int(self._request.sampler.draw(self.node(node)))
        self.seconds += time.perf_counter() - began
        return token

    def logprobs(self, nodes: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """Log-probabilities under the model's own distribution of tokens, each at its node."""
        rows = [self.node(node).logits[0] for node in nodes[: len(tokens)]]
        return [float(row[t] - np.logaddexp.reduce(row)) for row, t in zip(rows, tokens, strict=False)]
