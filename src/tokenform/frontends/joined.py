"""Grammars put together by `|` and `+`, one after the other, read as a whole when they are used.

Purpose: a loop that adds one grammar to what it has costs what it adds.
Invariant: a join holds its two operands as they were; how often and in which order they were joined makes no
difference to the texts, nor, within a run of one symbol, to the form.
Rejected: putting the forms together and reading them at each step (4,096 steps of a loop read eight million
parts, 20 s); a check at each step (what joins grammars of some texts has some text).
Complexity: a join is O(1); its form and its source are linear in its parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tokenform.errors import LimitExceeded
from tokenform.frontends import forms
from tokenform.frontends.forms import Form

PARTS = 30_000  # of one grammar, each as often as it stands there
DEPTH = 200  # changes of the symbol on the way from the whole to a part

_PUT_TOGETHER = {"|": forms.choice, "+": forms.sequence}


@dataclass(frozen=True, slots=True, eq=False)
class Single:
    """A grammar that joins none."""

    form: Form
    source: str
    parts: int = 1
    depth: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Two grammars and the symbol between them.

    Raises:
        LimitExceeded: it has too many parts, or they are joined too deep inside one another.
    """

    symbol: str
    first: Part
    second: Part
    parts: int = field(init=False)
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        both = self.first, self.second
        object.__setattr__(self, "parts", sum(part.parts for part in both))
        object.__setattr__(self, "depth", max(part.depth + (not self._goes_on(part)) for part in both))
        if self.parts > PARTS:
            raise LimitExceeded(f"grammars joined by + and | have {PARTS} parts at most; use a choice.")
        if self.depth > DEPTH:
            raise LimitExceeded(
                f"+ and | are {DEPTH} levels inside one another at most; write a grammar in Lark's language."
            )

    def _goes_on(self, part: Part) -> bool:
        return isinstance(part, Joined) and part.symbol == self.symbol

    def run(self) -> list[Part]:
        """What this symbol joins, from left to right."""
        out: list[Part] = []
        waiting: list[Part] = [self]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Joined) and part.symbol == self.symbol:
                waiting += (part.second, part.first)
            else:
                out.append(part)
        return out

    @property
    def form(self) -> Form:
        """The whole as plain data."""
        known: dict[int, Form] = {}
        for join, run in reversed(list(self._joins().values())):
            parts = [known[id(part)] if isinstance(part, Joined) else part.form for part in run]
            known[id(join)] = _PUT_TOGETHER[join.symbol](parts)
        return known[id(self)]

    def _joins(self) -> dict[int, tuple[Joined, list[Part]]]:
        """The runs of one symbol, each once, each after those around it."""
        found: dict[int, tuple[Joined, list[Part]]] = {}
        waiting = [self]
        for join in waiting:
            run = join.run()
            found.pop(id(join), None)
            found[id(join)] = join, run
            waiting += {id(part): part for part in run if isinstance(part, Joined)}.values()
        return found

    @property
    def source(self) -> str:
        """The whole as people read it."""
        out: list[str] = []
        waiting: list[Part | str] = [self]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Joined):
                waiting += [")", part.second, f") {part.symbol} (", part.first, "("]
            else:
                out.append(part if isinstance(part, str) else part.source)
        return "".join(out)


Part = Single | Joined
