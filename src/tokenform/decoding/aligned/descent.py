"""One walk from the root of a trie to a finished text or a dead end: what ASAp and CARS share.

The walk knows the trie as it was at its start; each visit may change sums above it, but never those of the
nodes still ahead, so the probability of every choice is that of the trie at the start of the walk.

`reject=False` (ASAp): at a new node and at a token that a predicate refuses, go on within the node.
`reject=True` (CARS): the walk ends there, with the probability that makes accepted texts exact: a new node
whose sum s is below the bound b that its parent promised survives with probability s/b.  For an exact mask
and b = 1 this is the same distribution as drawing from the raw model and rejecting forbidden tokens, without
touching them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tokenform.decoding.aligned.problem import Prefix, Problem, StepDistribution
from tokenform.decoding.aligned.protocols import Tokens
from tokenform.decoding.aligned.rejection_step import run_steps, two_loops
from tokenform.decoding.aligned.trie import Trie, TrieNode
from tokenform.decoding.keyed_random import Purpose, pick, stream

UNIFORMS = 64  # numbers taken from a stream at a time


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


def descend(problem: Problem, trie: Trie, numbers: Numbers | None, *, reject: bool) -> Walk:
    """Walks once.

    Args:
        numbers: what is drawn by; None draws nothing: the token of most mass left is taken, of equals the
            smallest id, and only what is refused ends the walk (with `reject` alone).
    """
    walk = Walk(None)
    prefix, parent, index = problem.root(), None, 0
    while True:
        walk.visited += 1
        node = trie.root if parent is None else parent.children.get(index)
        if node is None:
            promised = trie.bound(parent, index)
            node = trie.visit(
                _distribution(problem, trie, prefix),
                parent,
                index,
                exact=problem.constraint.exact and trie.restricted,
            )
            if node.log_theta == -math.inf or (
                reject and numbers and math.log1p(-numbers.uniform()) > node.log_theta - promised
            ):
                return walk
        else:
            trie.touch(node)
            if node.log_theta == -math.inf:
                return walk
        choice = _choose(problem, trie, node, prefix, numbers, reject)
        if choice is None:
            return walk
        index, log_weight = choice
        walk.logf += float(node.logf[index])
        walk.log_weight += log_weight
        token = int(node.ids[index])
        if token == problem.eos:
            walk.tokens = prefix.tokens
            return walk
        prefix, parent = problem.extend(prefix, token), node


def _distribution(problem: Problem, trie: Trie, prefix: Prefix) -> StepDistribution:
    if trie.restricted:
        return problem.distributions([prefix], masked=False)[0]
    return problem.full_distributions([prefix])[0]


def _choose(
    problem: Problem, trie: Trie, node: TrieNode, prefix: Prefix, numbers: Numbers | None, reject: bool
) -> tuple[int, float] | None:
    """Draws a child ∝ f·θ; the index and the log weight f(a|u)/q(a), or None for a dead end or a rejection.

    What a predicate refuses is ruled out.  CARS then rejects the walk; ASAp goes on within the node by
    adaptive weighted rejection over f·θ, whose mass estimate keeps the weight proper without asking about
    every token.
    """
    weights, total = node.log_weights(), node.log_theta
    if total == -math.inf:
        return None
    settled = problem.constraint.exact and trie.restricted
    if settled or reject or numbers is None:
        index = int(weights.argmax()) if numbers is None else pick(weights, numbers.uniform())
        if settled or index in node.children or allowed(problem, trie, node, prefix, index):
            return index, total - node.theta.get(index, 0.0)
        return None
    step = two_loops(weights, numbers.generator)
    [outcome] = run_steps(
        [step], lambda _, indices: [allowed(problem, trie, node, prefix, i, settle=False) for i in indices]
    )
    for index in outcome.rejected:
        node.theta[index] = -math.inf
        trie.bytes += 100
    if outcome.rejected:
        trie.propagate(node)
    if outcome.index is None:
        return None
    return outcome.index, outcome.log_mass - float(weights[outcome.index] - node.logf[outcome.index])


def allowed(
    problem: Problem, trie: Trie, node: TrieNode, prefix: Prefix, index: int, *, settle: bool = True
) -> bool:
    """Asks the constraint about one token and lets the trie know."""
    token = int(node.ids[index])
    if bool(problem.check([prefix], [token])[0]):
        if token == problem.eos:
            trie.confirm_end(node, index)
        return True
    if settle:
        trie.forbid(node, index)
    return False
