"""The trie of visited prefixes with upper bounds θ on expected future grammaticality.

For a prefix u let c(u) = Σ over accepted completions y of f(y|u).  The trie keeps θ(ua) ≥ c(ua) for the
children of visited prefixes: 1 for a child nothing is known of, 0 for a forbidden one, and for a visited
child the sum of its own table, θ(u) = Σ_a f(a|u)·θ(ua).  So θ only falls as more is visited, θ(ε) = U ≥ Z,
and a descent that draws a ∝ f(a|u)·θ(ua) reaches a text x whose nodes are all in the trie with probability
f(x)/U: the θ telescope. Lo = Σ f(x) over accepted x that end below a visited node, so Lo ≤ Z ≤ U (Park et
al., "Grammar-aligned decoding", NeurIPS 2024, alg. 1; the lower bound and the certificate 1 - Lo/U are ours:
Σ_x min(Q, π) ≥ Σ_known f(x)/U = Lo/U).

Invariants: (1) consistency: a visited node's θ equals the sum of its table, bit for bit; (2) bounded memory:
evicting a leaf forgets what it learned - its θ goes back to the sum that a fresh visit would compute, so U
may rise, and (1) holds without having kept the table; (3) all in float64 logs: masses below 1e-308 stay
distinct.

Complexity: an update is O(|C(u)|) for each ancestor, vectorised; memory 16 bytes a kept token.
Rejected: θ kept for an evicted node at its learned value: a re-visit then starts from another sum, the θ no
longer telescope, and rejection is not exact any more.  One trie for several problems: f would be mixed;
`fingerprint` refuses it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tokenform.decoding.aligned.problem import Problem, StepDistribution
from tokenform.decoding.aligned.protocols import Float, Ids, Tokens
from tokenform.decoding.aligned.results import Certificate, log_sum
from tokenform.errors import OptionError

NODE_OVERHEAD = 600  # bytes of a node's objects besides its arrays, measured with tracemalloc


@dataclass(slots=True, eq=False)
class TrieNode:
    """A visited prefix: its step distribution and what is known of each child.

    Attributes:
        ids, logf: the tokens that may follow (sorted) and their log measure.
        parent, index: the node above, and the place of the last token in its `ids`.
        theta: log θ of the children for which it is not 0, by index into `ids`.
        children: visited children, by index into `ids`.
        log_theta: log Σ f·θ.
        log_known: log of the known accepted mass below, relative to this node.
        log_eos: log f(EOS|u) if EOS is known to be allowed, else -inf.
        stamp: when it was last used.
    """

    ids: Ids
    logf: Float
    parent: TrieNode | None
    index: int
    theta: dict[int, float] = field(default_factory=dict)
    children: dict[int, TrieNode] = field(default_factory=dict)
    log_theta: float = field(init=False)
    log_known: float = -math.inf
    log_eos: float = -math.inf
    stamp: int = 0

    def __post_init__(self) -> None:
        self.log_theta = log_sum(self.logf)

    def log_weights(self) -> Float:
        """log f(a|u)·θ(ua) for each of `ids`."""
        if not self.theta:
            return self.logf
        weights: Float = self.logf.copy()
        weights[list(self.theta)] += np.fromiter(self.theta.values(), np.float64, len(self.theta))
        return weights

    def find(self, token: int) -> int | None:
        """The index of a token in `ids`, or None."""
        index = int(np.searchsorted(self.ids, token))
        return index if index < len(self.ids) and self.ids[index] == token else None

    def refresh(self) -> bool:
        """Recomputes the sums; True if θ or the known mass changed."""
        theta = log_sum(self.log_weights())
        known = [self.logf[i] + child.log_known for i, child in self.children.items()]
        lower = log_sum(np.array([self.log_eos, *known]))
        changed = theta != self.log_theta or lower != self.log_known
        self.log_theta, self.log_known = theta, lower
        return changed

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return (
            NODE_OVERHEAD + self.ids.nbytes + self.logf.nbytes + 100 * (len(self.theta) + len(self.children))
        )


class Trie:
    """See the module's header.

    Args:
        problem: what it belongs to.
        limit_bytes: bound on memory; the least recently visited leaves are forgotten beyond it.
        restricted: the distributions cover the constraint's candidates (True) or every token of f > 0
            (False), in which case forbidden tokens are only ruled out one by one.
    """

    def __init__(self, problem: Problem, *, limit_bytes: int = 512 << 20, restricted: bool = True) -> None:
        if limit_bytes < 1 << 16:
            raise OptionError(f"limit_bytes is {limit_bytes}; a trie needs at least 65536")
        self.fingerprint = problem.fingerprint
        self.eos = problem.eos
        self.limit_bytes, self.restricted = limit_bytes, restricted
        self.root: TrieNode | None = None
        self.bytes = self.nodes = self.clock = self.evicted = 0

    def belongs_to(self, problem: Problem) -> None:
        """Raises OptionError if the problem is not the one that this trie learned from."""
        if problem.fingerprint != self.fingerprint:
            raise OptionError(
                "this trie was learned for another model, prompt, temperature, truncation, grammar, budget; "
                "use a fresh one"
            )

    def bound(self, parent: TrieNode | None, index: int) -> float:
        """log θ of a child that is not visited (of the root: 0)."""
        return 0.0 if parent is None else parent.theta.get(index, 0.0)

    def visit(
        self, distribution: StepDistribution, parent: TrieNode | None, index: int, *, exact: bool
    ) -> TrieNode:
        """Adds the node of a prefix that is not in the trie yet, and its θ to its parent's table; the sums
        above are then to be settled (`propagate`, `settle`).

        `exact`: the distribution is the exact mask, so that EOS, if it is there, is allowed.
        """
        node = TrieNode(*distribution, parent, index)
        place = node.find(self.eos)
        if exact and place is not None:
            node.log_eos = node.log_known = float(distribution.logf[place])
        if parent is None:
            self.root = node
        else:
            parent.children[index] = node
        self.nodes += 1
        self.bytes += node.size
        self.touch(node)
        if parent is not None:
            self._set(parent, index, node.log_theta)
        return node

    def forbid(self, node: TrieNode, indices: Iterable[int]) -> None:
        """Rules tokens out: θ = 0; the sums are then to be settled."""
        for index in indices:
            self._set(node, index, -math.inf)

    def touch(self, node: TrieNode) -> None:
        """Marks a node as just used."""
        self.clock += 1
        node.stamp = self.clock

    def propagate(self, node: TrieNode | None) -> None:
        """Recomputes the sums from a node up, as far as they change."""
        while node is not None and node.refresh():
            if node.parent is not None:
                self._set(node.parent, node.index, node.log_theta)
            node = node.parent

    def settle(self, path: list[TrieNode], stale: Container[int]) -> None:
        """Recomputes the sums along a path, root first, of those nodes (by `id`) whose tables have changed,
        and of what is above them.
        """
        changed = False
        for node in reversed(path):
            if changed or id(node) in stale:
                changed = node.refresh()
                if changed and node.parent is not None:
                    self._set(node.parent, node.index, node.log_theta)

    def _set(self, node: TrieNode, index: int, value: float) -> None:
        before = len(node.theta)
        if value == 0.0:
            node.theta.pop(index, None)
        else:
            node.theta[index] = value
        self.bytes += 100 * (len(node.theta) - before)

    def certificate(self) -> Certificate:
        """Lo ≤ Z ≤ U and the distance 1 - Lo/U of the distribution ∝ f·θ from the target."""
        if self.root is None:
            return Certificate(-math.inf, 0.0)
        return Certificate(min(self.root.log_known, self.root.log_theta), self.root.log_theta)

    def find(self, tokens: Tokens) -> TrieNode | None:
        """The node of a prefix, or None if it is not visited."""
        node = self.root
        for token in tokens:
            if node is None:
                return None
            index = node.find(token)
            node = None if index is None else node.children.get(index)
        return node

    def walk(self) -> Iterator[TrieNode]:
        """Every node, parents before children, children by token."""
        stack = [self.root] if self.root is not None else []
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children[i] for i in sorted(node.children, reverse=True))

    def shrink(self) -> None:
        """Evicts least recently visited leaves until the memory is four fifths of the limit, if it is above
        it.
        """
        if self.bytes <= self.limit_bytes:
            return
        while self.bytes > self.limit_bytes * 4 // 5:
            leaves = sorted(
                (n for n in self.walk() if not n.children and n.parent is not None), key=lambda n: n.stamp
            )
            if not leaves:
                return
            for leaf in leaves:
                self._evict(leaf)
                if self.bytes <= self.limit_bytes * 4 // 5:
                    return

    def _evict(self, leaf: TrieNode) -> None:
        parent = leaf.parent
        assert parent is not None
        self.bytes -= leaf.size
        self.nodes -= 1
        self.evicted += 1
        del parent.children[leaf.index]
        self._set(parent, leaf.index, log_sum(leaf.logf))  # as a first visit computes it
        self.propagate(parent)
