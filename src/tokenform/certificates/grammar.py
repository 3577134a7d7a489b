"""Context-free grammars whose terminals are regular languages of bytes, and the prefixes of their texts.

Purpose: what follows a byte, and whether an accepted text can still follow (Earley 1970, byte by byte).
A state is a number for a set of items; an item is a production, a place in it, what is left of the terminal
there, and the state in which the production began.
Invariant: rules that derive no text are taken out and empty terminals dropped, so a state with any item has
an accepted continuation, and a prefix without one has no state (None).
Complexity: a state for each set of items that is met; remembered for as long as the grammar.
"""

from __future__ import annotations

from .terms import Terms

Symbol = str | int
"""The name of a rule, or a term."""
_HERE = -1
_NOWHERE = -2
Item = tuple[int, int, int, int]
"""Production, place, what is left of the terminal (-1 for none), state where it began."""


class Productions:
    """Rules by name, each a list of rows of symbols."""

    def __init__(self, terms: Terms, rules: dict[str, list[list[Symbol]]], start: str) -> None:
        self.terms = terms
        self._rows: list[tuple[str, tuple[Symbol, ...]]] = [("", (start,))]
        self._of: dict[str, list[int]] = {}
        for name, row in _productive(terms, rules):
            self._of.setdefault(name, []).append(len(self._rows))
            self._rows.append((name, tuple(row)))
        self._number: dict[frozenset[Item], int] = {}
        self._kernels: list[frozenset[Item]] = []
        self._closures: dict[int, tuple[list[Item], dict[str, list[Item]], bool]] = {}
        self._steps: dict[tuple[int, int], int | None] = {}
        self.start = self._state(frozenset([(0, 0, -1, _NOWHERE)]) if start in self._of else frozenset())

    def _state(self, kernel: frozenset[Item]) -> int | None:
        if not kernel:
            return None
        number = self._number.get(kernel)
        if number is None:
            number = self._number[kernel] = len(self._kernels)
            self._kernels.append(kernel)
        return number

    def accepts(self, state: int | None) -> bool:
        """Whether the text may end here."""
        return state is not None and self._closure(state)[2]

    def step(self, state: int | None, byte: int) -> int | None:
        """The state after a byte; None where no accepted text goes on so."""
        if state is None:
            return None
        key = state, byte
        if key not in self._steps:
            kernel = set()
            for row, place, left, began in self._closure(state)[0]:
                after = self.terms.derivative(left, byte)
                if not self.terms.is_empty(after):
                    kernel.add((row, place, after, began))
            self._steps[key] = self._state(frozenset(kernel))
        return self._steps[key]

    def read(self, state: int | None, data: bytes) -> int | None:
        for byte in data:
            state = self.step(state, byte)
        return state

    def _closure(self, state: int) -> tuple[list[Item], dict[str, list[Item]], bool]:
        """Items at a terminal; those that wait for each rule; whether the start is complete."""
        known = self._closures.get(state)
        if known is not None:
            return known
        scanning: list[Item] = []
        waiting: dict[str, list[Item]] = {}
        empty: set[str] = set()  # rules that are complete where they began
        accepted = False
        todo, seen = list(self._kernels[state]), set(self._kernels[state])

        def add(row: int, place: int, left: int, began: int) -> None:
            item = row, place, left, began
            if item not in seen:
                seen.add(item)
                todo.append(item)

        while todo:
            row, place, left, began = todo.pop()
            name, symbols = self._rows[row]
            if place == len(symbols):
                if began == _NOWHERE:
                    accepted = True
                    continue
                if began == _HERE:
                    empty.add(name)
                others = waiting if began == _HERE else self._closure(began)[1]
                for other in list(others.get(name, ())):
                    origin = other[3] if began == _HERE or other[3] != _HERE else began
                    add(other[0], other[1] + 1, -1, origin)
                continue
            symbol = symbols[place]
            if isinstance(symbol, str):
                waiting.setdefault(symbol, []).append((row, place, left, began))
                for production in self._of[symbol]:
                    add(production, 0, -1, _HERE)
                if symbol in empty:
                    add(row, place + 1, -1, began)
                continue
            left = symbol if left == -1 else left
            scanning.append((row, place, left, state if began == _HERE else began))
            if self.terms.nullable(left):
                add(row, place + 1, -1, began)
        self._closures[state] = scanning, waiting, accepted
        return self._closures[state]


def _productive(terms: Terms, rules: dict[str, list[list[Symbol]]]) -> list[tuple[str, list[Symbol]]]:
    """The rows of which texts can be derived: the least fixpoint."""
    good: set[str] = set()
    while True:
        fit = [
            (name, row)
            for name, rows in rules.items()
            for row in rows
            if all(s in good if isinstance(s, str) else not terms.is_empty(s) for s in row)
        ]
        if good == {name for name, _ in fit}:
            return fit
        good = {name for name, _ in fit}
