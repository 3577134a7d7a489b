"""Parts of a grammar with a name, found again in an accepted text.

Invariant: the text is what the grammar accepts; captures change nothing about it.  Where a text can be cut
in several ways, an earlier part takes as much as it can while the rest still fits, as in a regular
expression; of a choice, the first alternative that fits counts.
Complexity: each part is walked once from each place at which it may begin; at most `STEPS` steps a text.
Rejected: marks inside the engine (a state would remember where a part began, and recur no more).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tokenform import _core
from tokenform.errors import LimitExceeded, OptionError
from tokenform.frontends.byte_vocabulary import byte_vocabulary

STEPS = 500_000


class Parted(Protocol):
    """What is asked of a `Grammar` here."""

    parts: tuple[Any, ...] | None

    def compile(self, vocabulary: _core.Vocabulary) -> _core.TokenAutomaton:
        """Its automaton."""
        ...

    def parse(self, text: str) -> Any:
        """What a text stands for."""
        ...


@dataclass(frozen=True)
class Capture:
    """A named part of a text.

    Attributes:
        text: the part.
        value: what its grammar reads it as: JSON, an instance of a type, or the text.
        span: where it begins and ends in the text, in characters.
    """

    text: str
    value: Any
    span: tuple[int, int]

    def moved(self, by: int) -> Capture:
        """The same in a text that has so many characters before it."""
        return replace(self, span=(self.span[0] + by, self.span[1] + by))


def found_in(grammar: Parted, text: str) -> dict[str, Any]:
    """The captures of an accepted text, by name: one each, or a list where the name occurs several times.

    Raises:
        OptionError: the grammar does not accept the text, or has captures in a rule that begins with itself.
        LimitExceeded: finding them needs too many steps.
    """
    if grammar.parts is None:
        return {}
    cut = _Cut(text)
    try:
        ways = dict(cut.ways(grammar, 0))
    except RecursionError:
        raise LimitExceeded("the captures stand too deep inside one another.") from None
    if len(cut.data) not in ways:
        raise OptionError(f"{text[:60]!r} is no text of the grammar.")
    found: dict[str, Any] = {}
    for name, inner, start, end in sorted(ways[len(cut.data)], key=lambda one: (one[2], -one[3])):
        part, begin = cut.data[start:end].decode(), len(cut.data[:start].decode())
        one = Capture(part, inner.parse(part), (begin, begin + len(part)))
        if name in found:
            found[name] = [*(found[name] if isinstance(found[name], list) else [found[name]]), one]
        else:
            found[name] = one
    return found


Found = tuple[tuple[str, Parted, int, int], ...]
"""(name, grammar, start, end) of captures, in bytes."""
Ways = list[tuple[int, Found]]
"""Where a part may end, the ends to be preferred first, each once; and its captures then."""


class _Cut:
    """The ways to cut one text."""

    def __init__(self, text: str) -> None:
        self.data = text.encode("utf-8", "surrogatepass")
        self._left = STEPS
        self._known: dict[tuple[int, int], Ways] = {}
        self._begun: set[tuple[int, int]] = set()

    def ways(self, grammar: Parted, start: int) -> Ways:
        """The ways in which the grammar takes a part from `start`."""
        key = id(grammar), start
        if key not in self._known:
            if key in self._begun:
                raise OptionError("captures are not found in rules that begin with themselves; write x: y x?")
            self._begun.add(key)
            self._known[key] = self._first_of_each(self._ways(grammar, start))
        return self._known[key]

    def _ways(self, grammar: Parted, start: int) -> Iterator[tuple[int, Found]]:
        parts = grammar.parts
        if parts is None:
            yield from self._plain(grammar, start)
        elif parts[0] == "capture":
            for end, found in self.ways(parts[2], start):
                yield end, (*found, (parts[1], parts[2], start, end))
        elif parts[0] == "rules":
            yield from self.ways(parts[1], start)
        elif parts[0] == "choice":
            for one in parts[1]:
                yield from self.ways(one, start)
        else:
            yield from self._sequence(parts[1], start)

    def _sequence(self, parts: tuple[Parted, ...], start: int) -> Iterator[tuple[int, Found]]:
        """Part by part, each place where the parts before may end once."""
        ways: Ways = [(start, ())]
        for part in parts:
            ways = self._first_of_each(
                (end, (*before, *found)) for at, before in ways for end, found in self.ways(part, at)
            )
        return iter(ways)

    def _first_of_each(self, ways: Iterable[tuple[int, Found]]) -> Ways:
        """The first way to each end."""
        first: dict[int, Found] = {}
        for end, found in ways:
            self._step()
            first.setdefault(end, found)
        return list(first.items())

    def _plain(self, grammar: Parted, start: int) -> Iterator[tuple[int, Found]]:
        """Where a part without captures may end that begins here, the farthest first."""
        automaton = grammar.compile(byte_vocabulary())
        state, ends = automaton.start, []
        for place in range(start, len(self.data) + 1):
            self._step()
            if automaton.is_accepting(state):
                ends.append(place)
            if place == len(self.data) or not automaton.allows(state, self.data[place]):
                break
            state = automaton.advance(state, self.data[place])
        return iter([(end, ()) for end in reversed(ends)])

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise LimitExceeded(
                f"the captures of this text of {len(self.data)} bytes need more than {STEPS} steps; put "
                "texts that can't be mistaken between them."
            )
