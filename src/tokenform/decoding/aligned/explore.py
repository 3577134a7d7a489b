"""Visiting prefixes that no walk has come to yet, most uncertain mass first.

U - Lo is the sum, over prefixes that the trie promises mass but has not visited, of their mass f(u)·θ(u).
Walks shrink it where they happen to go; this visits the largest terms directly, many in one model call, so
that the certificate and the bounds improve at the price of rows of a batch, not of more forward passes.

Invariant: exploring happens between walks and only lowers θ, so ASAp's certificate and CARS's exactness are
untouched; it depends on the trie alone, so draws stay the same for any batch size.
Complexity: a best-first search that opens at most `OPENED` visited nodes, O(|C(u)|) each.
Rejected: siblings of the walk's own path: after a few walks the largest terms lie elsewhere.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

import numpy as np

from tokenform.decoding.aligned.descent import allowed
from tokenform.decoding.aligned.problem import Prefix, Problem
from tokenform.decoding.aligned.trie import Trie, TrieNode

OPENED = 256  # visited nodes looked into at a time
EVERY = 8  # walks between two explorations


def explore(problem: Problem, trie: Trie, count: int) -> None:
    """Visits up to `count` prefixes of largest uncertain mass.  Does nothing for predicates (their
    distributions aren't masked), but for those that say that they are `cheap`.
    """
    exact = problem.constraint.exact
    may = exact or getattr(problem.constraint, "cheap", False)
    if count < 1 or trie.root is None or not (may and trie.restricted):
        return
    found: list[tuple[TrieNode, int, Prefix]] = []
    for parent, index in _frontier(problem, trie, trie.root, count):
        before = _prefix_of(problem, parent)
        if exact or allowed(problem, trie, parent, before, [index])[0]:
            found.append((parent, index, problem.extend(before, int(parent.ids[index]))))
        else:
            trie.propagate(parent)
    distributions = problem.distributions([prefix for _, _, prefix in found], masked=exact) if found else []
    for (parent, index, _), distribution in zip(found, distributions, strict=True):
        trie.visit(distribution, parent, index, exact=exact)
        trie.propagate(parent)


def _frontier(problem: Problem, trie: Trie, root: TrieNode, count: int) -> list[tuple[TrieNode, int]]:
    """The unvisited children of largest f(u)·θ(u), best first."""
    found: list[tuple[TrieNode, int]] = []
    # (-log of the uncertain mass, tie-break, log f(u) of the node, node, index of an unvisited child or -1)
    heap: list[tuple[float, int, float, TrieNode, int]] = [(0.0, 0, 0.0, root, -1)]
    serial = opened = 0
    while heap and len(found) < count:
        _, _, above, node, index = heapq.heappop(heap)
        if index >= 0:
            found.append((node, index))
            continue
        opened += 1
        if opened > OPENED:
            continue
        for mass, path, child, place in _parts(problem, node, above, count):
            serial += 1
            heapq.heappush(heap, (-mass, serial, path, child, place))
    return found


def _parts(
    problem: Problem, node: TrieNode, above: float, count: int
) -> Iterator[tuple[float, float, TrieNode, int]]:
    """What the uncertain mass of a node splits into: visited children and the largest unvisited ones."""
    for index, child in sorted(node.children.items()):
        path = above + float(node.logf[index])
        if child.log_known < child.log_theta:
            share = child.log_theta + math.log(-math.expm1(child.log_known - child.log_theta))
            yield path + share, path, child, -1
    weights = node.log_weights().copy()
    weights[list(node.children)] = -np.inf
    end = node.find(problem.eos)
    if end is not None:
        weights[end] = -np.inf
    best = np.argpartition(-weights, count)[:count] if len(weights) > count else np.arange(len(weights))
    for index in np.sort(best).tolist():
        if weights[index] > -math.inf:
            yield above + float(weights[index]), 0.0, node, index


def _prefix_of(problem: Problem, node: TrieNode) -> Prefix:
    tokens: list[int] = []
    while node.parent is not None:
        tokens.append(int(node.parent.ids[node.index]))
        node = node.parent
    prefix = problem.root()
    for token in reversed(tokens):
        prefix = problem.extend(prefix, token)
    return prefix
