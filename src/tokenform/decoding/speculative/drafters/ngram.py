"""Prompt lookup: what followed the last n tokens when they stood there before.

Invariant: the index holds every n-gram of the committed text, latest places first.
Complexity: O(longest) dictionary entries a token; a proposal O(longest + draft).
Source: Saxena 2023 (prompt lookup decoding); Yang et al. 2023 (LLMA).
Rejected: searching the text at each step (linear in the prompt).
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.errors import OptionError

from ..tree import ROOT, DraftTree
from .base import Budget, Context, Seen, Silent
from .suffix import copied


class NGram:
    """Args:
    longest, shortest: lengths of the n-grams that are looked up, longest first.
    tokens: length of a draft.
    places: how many earlier places become branches.
    """

    name = "ngram"

    def __init__(self, longest: int = 4, shortest: int = 1, tokens: int = 10, places: int = 4) -> None:
        if not 1 <= shortest <= longest:
            raise OptionError(f"n-gram lengths are 1 <= shortest <= longest, not {shortest} and {longest}")
        self.longest, self.shortest, self.tokens, self.places = longest, shortest, tokens, places

    def session(self, context: Context) -> NGramSession:
        return NGramSession(self, context)


class NGramSession(Silent):
    def __init__(self, drafter: NGram, context: Context) -> None:
        self.drafter = drafter
        self.index: dict[tuple[int, ...], list[int]] = {}
        self.known = 0
        self.learn(context.tokens)

    def learn(self, tokens: Sequence[int]) -> None:
        """Indexes the n-grams before each token that is new (the text's own tail stays out)."""
        d = self.drafter
        for end in range(max(self.known, 1), len(tokens)):
            for n in range(d.shortest, min(d.longest, end) + 1):
                places = self.index.setdefault(tuple(tokens[end - n : end]), [])
                places.insert(0, end)
                del places[d.places :]
        self.known = len(tokens)

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        d, tree = self.drafter, DraftTree()
        tail = context.tail(d.longest)
        for n in range(min(d.longest, len(tail)), d.shortest - 1, -1):
            for place in self.index.get(tuple(tail[-n:]), ()):
                length = min(d.tokens, budget.depth, budget.nodes - len(tree.tokens))
                found = copied(context.tokens, context.path, place, max(length, 0))
                each = [1 - 0.7 ** (n + i) for i in range(len(found))]  # the match grows with the copy
                tree.add_path(ROOT, found, d.name, each)
            if tree.tokens:
                break
        return tree

    def observe(self, context: Context, seen: Seen) -> None:
        self.learn(context.tokens)
