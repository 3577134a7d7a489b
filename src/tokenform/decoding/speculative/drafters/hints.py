"""What a grammar suggests beyond what it demands: names, and the manners in which documents are written.

Purpose: a grammar that leaves its writer the choice of white space, escapes and further properties
forces next to nothing, and yet nearly every document keeps to one layout from its beginning to its end.
So the text is followed on a narrower grammar too, of the same schemas written in one manner; what that one
forces is a good guess.  When the text leaves a manner, the next one that admits all of it is taken.
Invariant: a guess alone: masks are those of the request's own automaton.  But for integers written with a
point (`36.0`), a manner's texts are texts of the request's grammar.
Complexity: a narrower grammar is made when a text first comes to it, once for each grammar, and counts in the
engine's budgets; a text is read at most once for each manner, one automaton step a token.  A call of a
narrower automaton may need a sixteenth of what the request's own may, and after the first one that needs more
the grammar has no manners any more.
Rejected: guessing white space place by place (it knows nothing of names, escapes and numbers); the states
of all manners at each step (most texts never leave the first).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from tokenform.engine import Grammar, Limits, Vocabulary
from tokenform.errors import LimitExceeded, TokenformError

LAYOUTS = ("spaced", "compact", "indent")  # as `json.dumps` does by default, without spaces, with indent=2
_MIXED = ""  # whatever the request allows
_PLAIN = {"numbers": "canonical", "strings": "canonical"}  # no escape but those that JSON demands
_DECLARED = {"additional": "forbid", "order": "declared"}
_NARROWINGS: tuple[dict[str, str], ...] = (_DECLARED | _PLAIN, _DECLARED, _PLAIN, {})

_SHARE = 16  # of the work that a call of the request's automaton may need
_LONGEST = 1 << 18  # characters of a grammar's source that is narrowed


@dataclass
class _Narrower:
    """What is known of a grammar's manners."""

    grammars: dict[tuple[int, str], Grammar | None] = field(default_factory=dict)
    given_up: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)  # one makes a manner, others wait for it


_NARROWER: WeakKeyDictionary[Grammar, _Narrower] = WeakKeyDictionary()


class Hints:
    """Args:
    grammar: of the request; None for names alone.
    vocabulary: over which its automaton is compiled.
    limits: of that automaton.
    names: property names as JSON text with their colons; None takes them from the grammar's schema.
    """

    def __init__(
        self,
        grammar: Grammar | None = None,
        vocabulary: Vocabulary | None = None,
        limits: Limits | None = None,
        names: Sequence[bytes] | None = None,
    ) -> None:
        self._grammar, self._vocabulary, self._names = grammar, vocabulary, names
        most = limits or Limits()
        self._limits = Limits(work=max(most.work // _SHARE, 1), memory=most.memory, depth=most.depth)

    @cached_property
    def names(self) -> tuple[bytes, ...]:
        """The property names that the grammar's schema declares."""
        if self._names is not None:
            return tuple(self._names)
        schema = None if self._grammar is None else self._grammar.schema
        return tuple(property_names(schema)) if isinstance(schema, Mapping) else ()

    def prepare(self) -> None:
        """Makes what the first draft needs, for callers that would rather wait here than there."""
        _ = self.names
        next(self.manners(), None)

    def manners(self, layout: str = LAYOUTS[0]) -> Iterator[tuple[str, Any]]:
        """(layout or "", automaton) of each manner in which the texts may be written, narrowest first.

        Args:
            layout: the likeliest one.
        """
        layouts = [*sorted(LAYOUTS, key=lambda other: other != layout), _MIXED]
        for narrowing in range(len(_NARROWINGS)):
            for other in layouts:
                automaton = self._automaton(narrowing, other)
                if automaton is not None:
                    yield other, automaton

    def _automaton(self, narrowing: int, layout: str) -> Any:
        """That of one manner; None where it is no narrower, or can't be made."""
        if self._grammar is None or self._vocabulary is None or len(self._grammar.source) > _LONGEST:
            return None
        record, key = _NARROWER.setdefault(self._grammar, _Narrower()), (narrowing, layout)
        known = record.grammars
        try:
            if record.given_up:
                return None
            with record.lock:
                if key not in known:
                    known[key] = None
                    options = _NARROWINGS[narrowing] | ({"whitespace": layout} if layout else {})
                    known[key] = self._grammar.in_manner(options)
                narrower = known[key]
            return None if narrower is None else narrower.compile(self._vocabulary, limits=self._limits)
        except LimitExceeded:
            self.give_up()
            return None
        except TokenformError:  # nothing can be written so
            known[key] = None
            return None

    def give_up(self) -> None:
        """A narrower automaton needed too much: no text of the grammar is followed any more."""
        if self._grammar is not None:
            _NARROWER.setdefault(self._grammar, _Narrower()).given_up = True


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
