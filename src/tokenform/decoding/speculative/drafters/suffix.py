"""Suffix automaton drafts from the text itself and from earlier outputs.

Purpose: the longest match decides what is copied and how much of it: the longer the match,
the longer the draft; a copied token lengthens the match of the next.  Shorter suffixes that continue
otherwise become branches.
Invariant: the text's automaton has seen the committed tokens and nothing else; the datastore is bounded.
Complexity: amortised O(1) a committed token, O(path + draft) a proposal.
Source: Hu et al. 2024 (SAM decoding), draft length min(n, 1 + 4 x match); Oliaro et al. 2024
(SuffixDecoding), outputs of earlier requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock

from ..tree import ROOT, DraftTree
from .base import Budget, Context, Seen, Session, Silent
from .suffix_automaton import SEPARATOR, SuffixAutomaton


class Suffix:
    """Args:
    datastore: token lists of earlier texts.
    tokens: longest draft.
    shortest: matches shorter than this give no draft.
    branches: how many different continuations a tree may have.
    remember: add every finished output to the datastore.
    keep: tokens that the datastore holds at least before its older half is forgotten.

    Memory: 450 bytes a token, of up to 3 x `keep` tokens: 45 MB.
    """

    name = "suffix"

    def __init__(
        self,
        datastore: Iterable[Sequence[int]] = (),
        tokens: int = 32,
        shortest: int = 1,
        branches: int = 3,
        remember: bool = True,
        keep: int = 1 << 15,
    ) -> None:
        self.tokens, self.shortest, self.branches, self.remember = tokens, shortest, branches, remember
        self.keep, self._adding = keep, Lock()
        self.store, self._newer = SuffixAutomaton(), SuffixAutomaton()
        for text in datastore:
            self.add(text)

    def add(self, text: Sequence[int]) -> None:
        """Adds a text to the datastore; sessions at work keep the automaton that they began with."""
        # what is to stay is added to a second automaton meanwhile, so that forgetting costs no pause
        with self._adding:
            if len(self._newer.text) >= self.keep:
                self.store, self._newer = self._newer, SuffixAutomaton()
            stores = [self.store, self._newer][: 1 + (len(self.store.text) >= self.keep)]
            for token in [*text, SEPARATOR]:
                for store in stores:
                    store.extend(token)

    def session(self, context: Context) -> Session:
        return _SuffixSession(self, context)


class _SuffixSession(Silent):
    def __init__(self, drafter: Suffix, context: Context) -> None:
        self.drafter = drafter
        self.own, self.store = SuffixAutomaton(context.tokens), drafter.store
        self.output: list[int] = []
        self.match = (0, 0)
        if self.store.text:
            for token in context.tokens[-64:]:
                self.match = self.store.step(*self.match, token)

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        d, tree = self.drafter, DraftTree()
        own, stored = self.own.before(), self.match
        for token in context.path:
            own = self.own.step(*own, token)
            stored = self.store.step(*stored, token)
        found = [
            *self._candidates(self.own, *own, lambda s: self.own.copy(s, d.tokens, context.path)),
            *self._candidates(self.store, *stored, lambda s: self.store.continuation(s, d.tokens)),
        ]
        found.sort(key=lambda c: -c[0])
        for rank, (matched, tokens) in enumerate(found[: d.branches]):
            room = min(
                budget.nodes - len(tree),
                budget.depth,
                d.tokens,
                1 + 4 * matched if rank == 0 else 1 + matched,
            )
            node = ROOT
            for i, token in enumerate(tokens[: max(room, 0)]):
                share = 0.6**rank if i == 0 else 1.0
                node = tree.add(node, token, d.name, share * (1 - 0.6 ** (matched + i)))
        return tree

    def _candidates(
        self, automaton: SuffixAutomaton, state: int, matched: int, follow: Callable[[int], list[int]]
    ) -> list[tuple[int, list[int]]]:
        """(match, continuation) of the match and its shorter suffixes, each with another next token."""
        out: list[tuple[int, list[int]]] = []
        heads: set[int] = set()
        while state > 0 and matched >= self.drafter.shortest and len(out) < self.drafter.branches:
            tokens = follow(state)
            if tokens and tokens[0] not in heads:
                heads.add(tokens[0])
                out.append((matched, tokens))
            state = automaton.link[state]
            matched = automaton.length[state]
        return out

    def observe(self, context: Context, seen: Seen) -> None:
        for token in seen.committed:
            self.own.extend(token)
            self.match = self.store.step(*self.match, token)
        self.output.extend(seen.committed)

    def close(self) -> None:
        if self.drafter.remember and self.output:
            self.drafter.add(self.output)
