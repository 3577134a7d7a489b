"""Names that the constraint suggests: the property names of a schema.

Purpose: where a schema allows further properties its own names are not forced, but they are what a
model writes.  At a place where a name has begun, all names that fit are branches.
Invariant: a name is drafted only if the automaton allows it to its end (a string value that
happens to begin like a name is not taken for one).
Complexity: a search for each quote of the tail, and automaton walks for up to 64 names a proposal; memory
is that of the names.
Source: the design's "the grammar's own likely continuations".
Rejected: putting the schema's text into a suffix automaton (it finds the latest place, not the names
that fit here).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from tokenform.engine import State
from tokenform.errors import LimitExceeded, TokenformError

from ..tree import ROOT, DraftTree
from .base import Budget, Context, Session, Silent, after
from .following import Following, following
from .hints import LAYOUTS
from .spelling import Spelling, spelling_of

_TAIL = 24  # tokens in which the beginning of a name is looked for
_LONGEST = 256  # bytes of a name that is drafted
_TRIED = 64
_TAKEN = 8


class Names:
    """Drafts the names of `context.hints`."""

    name = "names"

    def __init__(self) -> None:
        self.layout = LAYOUTS[0]  # of the text that was last followed

    def session(self, context: Context) -> Session:
        spelling = spelling_of(context)
        names = () if context.hints is None else context.hints.names
        if not names or context.automaton is None or spelling is None:
            return Silent()
        return _NamesSession(spelling, names, following(context, self))


class _NamesSession(Silent):
    def __init__(self, spelling: Spelling, names: Sequence[bytes], followed: Following | None) -> None:
        self.spelling, self.followed = spelling, followed
        self.names, self.numbers = _ordered(tuple(names))

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        tree, pieces, names = DraftTree(), self.spelling.tokens, self.names
        tail = b"".join([pieces[t] for t in context.tail(_TAIL)])
        at = tail.find(b'"', max(len(tail) - _LONGEST, 0))
        while at >= 0:
            begun = tail[at:]
            first = bisect_right(names, begun)
            last = bisect_left(names, begun + b"\xff", first)  # a byte that no name has
            if first < last:
                fits, followed = list[list[int]](), self.followed
                place = None if followed is None else followed.after(context.tokens, context.path)
                # as the schema orders them
                for name in sorted(names[first : min(last, first + _TRIED)], key=self.numbers.__getitem__):
                    if tokens := self._fit(context, name[len(begun) :], place):
                        fits.append(tokens[: budget.depth])
                for tokens in fits[:_TAKEN]:
                    each = [0.9 / min(len(fits), _TAKEN), *[0.9] * len(tokens)]
                    tree.add_path(ROOT, tokens, Names.name, each, budget.nodes)
                if fits:
                    break
            at = tail.find(b'"', at + 1)
        return tree

    def _fit(self, context: Context, rest: bytes, place: tuple[Any, State] | None) -> list[int]:
        """The tokens of the rest of a name and what its writer puts after it; none if they are refused."""
        followed = self.followed
        if place is not None and followed is not None and not followed.given_up:
            manner, begun = place
            try:
                rest += manner.forced_bytes(manner.step_bytes(begun, rest))
            except LimitExceeded:
                followed.give_up()
            except TokenformError:
                pass
        tokens = self.spelling.encode(rest)
        return [] if after(context.automaton, context.state, tokens) is None else tokens


@lru_cache(maxsize=16)
def _ordered(names: tuple[bytes, ...]) -> tuple[list[bytes], Mapping[bytes, int]]:
    """Names by their bytes, where those of one beginning stand together, and each one's number."""
    numbers = {name: number for number, name in enumerate(names) if len(name) <= _LONGEST}
    return sorted(numbers), numbers
