"""What the grammar forces: the bytes that every accepted continuation shares.

Purpose: those bytes are certain, their tokenisation is not: the last token of the span may
be one that reaches beyond it, and a model may split otherwise than its tokenizer.  So the
canonical tokens are the trunk, and at the span's end other tokens that spell the same bytes
are siblings: shorter ones, and longer ones that were taken there before.  Where the grammar
then leaves few tokens, each is a branch.
Invariant: every drafted token is allowed; a node spells a prefix of the forced bytes or
extends them by bytes that were seen before.
Complexity: O(span) automaton calls, memoised there.
Source: jump-forward decoding (Zheng et al. 2024, SGLang) made lossless as a draft; healing of the
span's end as in token healing (Lundberg 2023).
Rejected: appending forced tokens without a forward pass (it changes the law: the model may prefer
another tokenisation).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import torch

from ..tree import ROOT, DraftTree
from .base import Budget, Context, Session, Silent


class Forced:
    """Args:
    vocabulary: bytes of every token id; None drafts the canonical tokens alone.
    tail: how many tokens at the span's end get siblings.
    siblings: most siblings of a node.
    choices: where at most so many tokens are allowed, all are drafted.
    rounds: how often span and choice may alternate.
    encode: bytes -> canonical token ids, as the model's tokenizer writes them; None takes the
        automaton's own.
    """

    name, drawn = "forced", False

    def __init__(
        self,
        vocabulary: Sequence[bytes] | None = None,
        tail: int = 2,
        siblings: int = 2,
        choices: int = 2,
        rounds: int = 3,
        encode: Callable[[bytes], list[int]] | None = None,
    ) -> None:
        self.vocabulary, self.tail, self.siblings = vocabulary, tail, siblings
        self.choices, self.rounds, self.encode = choices, rounds, encode
        self.seen: defaultdict[bytes, Counter[int]] = defaultdict(Counter)
        self.ids: dict[bytes, int] = {b: i for i, b in reversed(list(enumerate(vocabulary or ()))) if b}

    def session(self, context: Context) -> Session:
        return _ForcedSession(self) if context.automaton is not None else Silent()


class _ForcedSession(Silent):
    def __init__(self, drafter: Forced) -> None:
        self.drafter = drafter
        self.rests: dict[tuple[int, ...], bytes] = {}

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        tree = DraftTree()
        fronts = [(ROOT, int(context.state or 0), 1.0)]
        for _ in range(self.drafter.rounds):
            below: list[tuple[int, int, float]] = []
            for node, state, share in fronts:
                below += self._grow(tree, context, node, state, share, budget)
            fronts = below
        return tree

    def _grow(
        self, tree: DraftTree, context: Context, node: int, state: int, share: float, budget: Budget
    ) -> list[tuple[int, int, float]]:
        """Adds the forced span below `node` and the choices after it; returns where to go on."""
        d, auto = self.drafter, context.automaton
        if auto.is_finished(state) or len(tree) >= budget.nodes:
            return []
        rest = bytes(auto.forced_bytes(state)) if d.vocabulary is not None or d.encode is not None else b""
        span = d.encode(rest) if d.encode is not None else list(auto.forced(state))
        for i, token in enumerate(span):
            if not auto.allows(state, token) or not self._room(tree, node, budget):
                return []
            if d.vocabulary is not None:
                self.rests[(*context.path, *tree.path(node))] = rest
                if i >= len(span) - d.tail:
                    self._siblings(tree, auto, node, state, token, rest, budget)
                rest = rest[len(d.vocabulary[token]) :]
            node = tree.add(node, token, d.name, 0.95 if i < len(span) - 1 else 0.8 * share)
            state = auto.advance(state, token)
        if auto.is_finished(state):
            return []
        allowed = auto.allowed_tokens(state)
        if not 0 < len(allowed) <= d.choices:
            return [(node, state, share)] if span else []
        fronts = []
        for token in allowed:
            if self._room(tree, node, budget):
                child = tree.add(node, int(token), d.name, 0.9 * share / len(allowed))
                fronts.append((child, auto.advance(state, int(token)), share / len(allowed)))
        return fronts

    def _siblings(
        self, tree: DraftTree, auto: object, node: int, state: int, token: int, rest: bytes, budget: Budget
    ) -> None:
        """Other tokens for the span's end: longer ones seen there, then the longest shorter one."""
        d = self.drafter
        assert d.vocabulary is not None
        others = [t for t, _ in d.seen[rest].most_common(d.siblings) if t != token] if rest in d.seen else []
        own = d.vocabulary[token]
        shorter = (d.ids[own[:n]] for n in range(len(own) - 1, 0, -1) if own[:n] in d.ids)
        others += [t for t in (next(shorter, None),) if t is not None]
        for other in others[: d.siblings]:
            if self._room(tree, node, budget) and auto.allows(state, other):  # type: ignore[attr-defined]
                tree.add(node, other, d.name, 0.1)

    @staticmethod
    def _room(tree: DraftTree, node: int, budget: Budget) -> bool:
        depth = tree.depths[node] if node >= 0 else 0
        return len(tree) < budget.nodes and depth < budget.depth

    def observe(
        self,
        context: Context,
        committed: Sequence[int],
        tree: DraftTree,
        visited: Sequence[int],
        logits: torch.Tensor,
    ) -> None:
        """Counts which token was taken where a span was about to end."""
        d = self.drafter
        if d.vocabulary is not None:
            for i, token in enumerate(committed):
                rest = self.rests.get(tuple(committed[:i]))
                if rest and d.vocabulary[token].startswith(rest) and len(d.vocabulary[token]) > len(rest):
                    d.seen[rest][token] += 1
        self.rests = {}
