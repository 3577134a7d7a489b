"""One walk from the root of a trie to a finished text or a dead end: what ASAp, AWRS and CARS share.

The walk knows the trie as it was at its start: what it learns changes sums above it, which are settled at its
end, never those of the nodes still ahead.

`reject=False` (ASAp, AWRS): at a new node and at a token that the constraint refuses, go on within the node.
`reject=True` (CARS): the walk ends there, with the probability that makes accepted texts exact: a new node
whose sum s is below the bound b that its parent promised survives with probability s/b.  For an exact mask
and b = 1 this is the same distribution as drawing from the raw model and rejecting forbidden tokens, without
touching them.

Complexity: O(V) a prefix that is visited, and once more at the end for each that learned something.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tokenform.decoding.aligned.problem import Prefix, Problem, StepDistribution
from tokenform.decoding.aligned.protocols import Float, Tokens
from tokenform.decoding.aligned.rejection_step import Step, run_steps, two_loops
from tokenform.decoding.aligned.trie import Trie, TrieNode
from tokenform.decoding.keyed_random import Purpose, pick, stream

UNIFORMS = 64  # numbers taken from a stream at a time
Way = Generator[Prefix, StepDistribution, "Walk"]
"""Yields prefixes of which it is sent the distributions."""


@dataclass(slots=True)
class Walk:
    """The outcome: `tokens` is None after a rejection or a dead end.

    logf: log measure of tokens and EOS.
    log_weight: log of an unbiased weight f(x)/q(x), q the chance of this walk (for ASAp; CARS is exact
    without).
    visited: prefixes whose distribution was looked at.
    """

    tokens: Tokens | None
    logf: float = 0.0
    log_weight: float = 0.0
    visited: int = 0


class Numbers:
    """The random numbers of one walk, taken from its stream in blocks."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator
        self._block: list[float] = []

    def uniform(self) -> float:
        """The next number in [0, 1)."""
        if not self._block:
            self._block = self.generator.random(UNIFORMS)[::-1].tolist()
        return self._block.pop()


def walk_numbers(seed: int, attempt: int) -> Numbers:
    """The numbers of one walk."""
    return Numbers(stream(seed, Purpose.DESCENT, attempt))


@dataclass(slots=True)
class Descent:
    """How walks go down.

    Attributes:
        reject: see the module's header.
        estimator: the step by rejection where there is no exact mask and nothing is rejected.
        learn: whether the trie hears of what is found; without, a walk is a guess of what a real one does.
    """

    problem: Problem
    trie: Trie
    reject: bool
    estimator: Callable[[Float, np.random.Generator], Step] = two_loops
    learn: bool = True
    _stale: set[int] = field(default_factory=set)

    def walk(self, numbers: Numbers | None) -> Walk:
        """Walks once.

        Args:
            numbers: what is drawn by; None draws nothing: the token of most mass left is taken, of equals the
                smallest id, and only what is refused ends the walk (with `reject` alone).
        """
        [walk] = run_steps([self.way(numbers)], lambda _, prefixes: self.distributions(prefixes))
        return walk

    def distributions(self, prefixes: Sequence[Prefix]) -> list[StepDistribution]:
        """What walks through these prefixes are sent."""
        if self.trie.restricted:
            return self.problem.distributions(prefixes, masked=False)
        return self.problem.full_distributions(prefixes)

    def way(self, numbers: Numbers | None) -> Way:
        """The same as a coroutine, so that several go side by side."""
        walk, path = Walk(None), list[TrieNode]()
        self._stale = set()
        yield from self._down(walk, path, numbers)
        if self.learn:
            self.trie.settle(path, self._stale)
        return walk

    def _down(
        self, walk: Walk, path: list[TrieNode], numbers: Numbers | None
    ) -> Generator[Prefix, StepDistribution, None]:
        prefix, index = self.problem.root(), 0
        while True:
            walk.visited += 1
            parent = path[-1] if path else None
            node = parent.children.get(index) if parent else self.trie.root
            promised = self.trie.bound(parent, index)
            if fresh := node is None:
                node = self._new((yield prefix), parent, index)
            else:
                self.trie.touch(node)
            path.append(node)
            if node.log_theta == -math.inf:
                return
            survival = node.log_theta - promised
            if fresh and self.reject and numbers and math.log1p(-numbers.uniform()) > survival:
                return
            choice = self._choose(node, prefix, numbers)
            if choice is None:
                return
            index, log_weight = choice
            walk.logf += float(node.logf[index])
            walk.log_weight += log_weight
            token = int(node.ids[index])
            if token == self.problem.eos:
                walk.tokens = prefix.tokens
                return
            prefix = self.problem.extend(prefix, token)

    def _new(self, distribution: StepDistribution, parent: TrieNode | None, index: int) -> TrieNode:
        if not self.learn:
            return TrieNode(*distribution, None, 0)
        if parent is not None:
            self._stale.add(id(parent))
        return self.trie.visit(distribution, parent, index, exact=self._mask_known)

    @property
    def _mask_known(self) -> bool:
        """Whether a node's tokens are all allowed."""
        return self.problem.constraint.exact and self.trie.restricted

    def _choose(self, node: TrieNode, prefix: Prefix, numbers: Numbers | None) -> tuple[int, float] | None:
        """Draws a child ∝ f·θ; the index and the log weight f(a|u)/q(a), or None for a rejection.

        What the constraint refuses is ruled out.  CARS then rejects the walk; the others go on within the
        node by adaptive weighted rejection over f·θ, whose mass estimate keeps the weight proper without
        asking about every token.
        """
        weights, total = node.log_weights(), node.log_theta
        if self._mask_known or self.reject or numbers is None:
            index = int(weights.argmax()) if numbers is None else pick(weights, numbers.uniform())
            if self._mask_known or index in node.children or self._allowed(node, prefix, [index])[0]:
                return index, total - node.theta.get(index, 0.0)
            return None
        step = self.estimator(weights, numbers.generator)
        [outcome] = run_steps([step], lambda _, asked: [self._allowed(node, prefix, one) for one in asked])
        if outcome.index is None:
            return None
        return outcome.index, outcome.log_mass - float(weights[outcome.index] - node.logf[outcome.index])

    def _allowed(self, node: TrieNode, prefix: Prefix, indices: list[int]) -> list[bool]:
        if not self.learn:
            verdicts: list[bool] = self.problem.check([prefix] * len(indices), node.ids[indices]).tolist()
            return verdicts
        self._stale.add(id(node))
        return allowed(self.problem, self.trie, node, prefix, indices)


def allowed(problem: Problem, trie: Trie, node: TrieNode, prefix: Prefix, indices: list[int]) -> list[bool]:
    """Asks the constraint about some tokens and lets the trie know, whose sums are then to be settled."""
    verdicts: list[bool] = problem.check([prefix] * len(indices), node.ids[indices]).tolist()
    trie.forbid(node, [index for index, valid in zip(indices, verdicts, strict=True) if not valid])
    end = node.find(problem.eos)
    if end in indices and verdicts[indices.index(end)]:
        node.log_eos = float(node.logf[end])
    return verdicts
