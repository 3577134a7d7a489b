"""Names that the constraint suggests: the property names of a schema.

Purpose: where a schema allows further properties its own names are not forced, but they are what a
model writes.  At a place where a name has begun, all names that fit are branches.
Invariant: a name is drafted only if the automaton allows it to its end (a string value that
happens to begin like a name is not taken for one).
Complexity: O(tail) look-ups and O(names that fit) automaton walks a proposal, both bounded.
Source: the design's "the grammar's own likely continuations".
Rejected: putting the schema's text into a suffix automaton (it finds the latest place, not the names
that fit here).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..tree import ROOT, DraftTree
from .base import Budget, Context, Session, Silent
from .spelling import Spelling, spelling_of

_TAIL = 24  # tokens in which the beginning of a name is looked for
_TRIED = 64
_TAKEN = 8


class Names:
    """Drafts `context.hints`.

    Args:
        vocabulary: bytes of every token id; None is the constraint's.
        encode: bytes -> token ids as the model's tokenizer writes them; None is the request's, or longest
            match.
    """

    name, drawn = "names", False

    def __init__(
        self,
        vocabulary: Sequence[bytes] | None = None,
        encode: Callable[[bytes], list[int]] | None = None,
    ) -> None:
        self.spelling = Spelling(vocabulary, encode) if vocabulary is not None else None

    def session(self, context: Context) -> Session:
        spelling = self.spelling or spelling_of(context)
        if not context.hints or context.automaton is None or spelling is None:
            return Silent()
        return _NamesSession(spelling, context.hints)


class _NamesSession(Silent):
    def __init__(self, spelling: Spelling, hints: Sequence[bytes]) -> None:
        self.spelling = spelling
        self.rests: dict[bytes, list[bytes]] = {}
        for hint in dict.fromkeys(hints):
            for n in range(1, len(hint)):
                rests = self.rests.setdefault(hint[:n], [])
                if len(rests) < _TRIED:
                    rests.append(hint[n:])
        self.longest = max(map(len, self.rests), default=0)

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        tree, pieces = DraftTree(), self.spelling.tokens
        tail = b"".join(pieces[t] for t in context.tail(_TAIL))
        for n in range(min(self.longest, len(tail)), 0, -1):
            rests = self.rests.get(tail[-n:])
            fits = [tokens for rest in rests or () if (tokens := self._fit(context, rest))][:_TAKEN]
            for tokens in fits:
                node = ROOT
                for i, token in enumerate(tokens[: budget.depth]):
                    if len(tree) < budget.nodes:
                        node = tree.add(node, token, Names.name, 0.9 if i else 0.9 / len(fits))
            if fits:
                break
        return tree

    def _fit(self, context: Context, rest: bytes) -> list[int]:
        """The tokens of the rest of a name, or none if the automaton refuses it."""
        tokens, state = self.spelling.encode(rest), context.state
        for token in tokens:
            if not context.automaton.allows(state, token):
                return []
            state = context.automaton.advance(state, token)
        return tokens


def property_names(schema: Any) -> list[bytes]:
    """Every property name that a JSON Schema declares, as JSON text with its colon, in order."""
    return [f"{json.dumps(name, ensure_ascii=False)}:".encode() for name in dict.fromkeys(_names(schema))]


def _names(schema: Any) -> Iterator[str]:
    todo = [schema]  # no recursion: a schema may nest deeper than Python calls
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            properties = part.get("properties")
            if isinstance(properties, dict):
                yield from (str(name) for name in properties)
            todo.extend(reversed(part.values()))
        elif isinstance(part, list):
            todo.extend(reversed(part))
