"""Regular languages of bytes as terms, and their derivatives.

Purpose: the part of the checker that says what a regular expression means.
A term is a number; equal terms are one number.  `derivative(t, b)` is the language of what may follow
byte `b` in `t` (Brzozowski 1964), `nullable(t)` whether the empty text is in it, `is_empty(t)` whether none.
Invariant: every term but EMPTY that has no intersection in it is not empty, since EMPTY is folded away.
Complexity: a term for each derivative that is met; `is_empty` looks at up to MOST of them.
"""

from __future__ import annotations

from typing import Any

MOST = 20_000


class CannotCheck(Exception):
    """The certificate is neither accepted nor refused: the checker does not read this constraint."""


class Terms:
    """Terms and what is known of them.

    A term is ("empty",), ("epsilon",), ("set", bits), ("then", a, b), ("or", parts), ("and", parts) or
    ("times", a, least, most) with most None for no bound; parts are sorted tuples of terms.
    """

    EMPTY, EPSILON = 0, 1

    def __init__(self) -> None:
        self._number: dict[tuple[Any, ...], int] = {("empty",): 0, ("epsilon",): 1}
        self._term: list[tuple[Any, ...]] = [("empty",), ("epsilon",)]
        self._nullable = [False, True]
        self._with_and = [False, False]
        self._derivatives: dict[tuple[int, int], int] = {}
        self._empty: dict[int, bool] = {}

    def _make(self, term: tuple[Any, ...], nullable: bool, parts: tuple[int, ...] = ()) -> int:
        number = self._number.get(term)
        if number is None:
            number = self._number[term] = len(self._term)
            self._term.append(term)
            self._nullable.append(nullable)
            self._with_and.append(term[0] == "and" or any(self._with_and[part] for part in parts))
        return number

    def set_of(self, bits: int) -> int:
        """One byte of a set; bit b of `bits` stands for byte b."""
        return self._make(("set", bits), False) if bits else self.EMPTY

    def text(self, data: bytes) -> int:
        """This text alone."""
        return self.row([self.set_of(1 << byte) for byte in data])

    def row(self, parts: list[int]) -> int:
        """One after the other."""
        whole = self.EPSILON
        for part in reversed(parts):
            whole = self.then(part, whole)
        return whole

    def then(self, a: int, b: int) -> int:
        if self.EMPTY in (a, b):
            return self.EMPTY
        if a == self.EPSILON:
            return b
        if b == self.EPSILON:
            return a
        if self._term[a][0] == "then":  # to the right, so that equal texts are one term
            return self.then(self._term[a][1], self.then(self._term[a][2], b))
        return self._make(("then", a, b), self._nullable[a] and self._nullable[b], (a, b))

    def either(self, parts: list[int]) -> int:
        flat: set[int] = set()
        for part in parts:
            flat.update(self._term[part][1] if self._term[part][0] == "or" else (part,))
        flat.discard(self.EMPTY)
        sets = [part for part in flat if self._term[part][0] == "set"]
        if len(sets) > 1:
            bits = 0
            for part in sets:
                bits |= self._term[part][1]
            flat = flat.difference(sets) | {self.set_of(bits)}
        if len(flat) < 2:
            return next(iter(flat), self.EMPTY)
        key = tuple(sorted(flat))
        return self._make(("or", key), any(self._nullable[part] for part in key), key)

    def both(self, a: int, b: int) -> int:
        if self.EMPTY in (a, b):
            return self.EMPTY
        key = tuple(sorted((a, b)))
        return self._make(("and", key), self._nullable[a] and self._nullable[b], key)

    def times(self, a: int, least: int, most: int | None) -> int:
        """`a` at least `least` and at most `most` times; None: without bound."""
        if self._nullable[a]:
            least = 0
        if most == 0 or (a in (self.EMPTY, self.EPSILON) and least == 0):
            return self.EPSILON
        if a == self.EMPTY:
            return self.EMPTY
        if (least, most) == (1, 1):
            return a
        return self._make(("times", a, least, most), least == 0, (a,))

    def nullable(self, t: int) -> bool:
        return self._nullable[t]

    def derivative(self, t: int, byte: int) -> int:
        known = self._derivatives.get((t, byte))
        if known is None:
            known = self._derivatives[t, byte] = self._derive(t, byte)
        return known

    def _derive(self, t: int, byte: int) -> int:
        kind, *of = self._term[t]
        if kind == "set":
            return self.EPSILON if of[0] >> byte & 1 else self.EMPTY
        if kind == "then":
            begun = self.then(self.derivative(of[0], byte), of[1])
            return self.either([begun, self.derivative(of[1], byte)]) if self._nullable[of[0]] else begun
        if kind == "or":
            return self.either([self.derivative(part, byte) for part in of[0]])
        if kind == "and":
            return self.both(*(self.derivative(part, byte) for part in of[0]))
        if kind == "times":
            a, least, most = of
            rest = self.times(a, max(least - 1, 0), None if most is None else most - 1)
            return self.then(self.derivative(a, byte), rest)
        return self.EMPTY

    def is_empty(self, t: int) -> bool:
        """Whether no text is in it: every term that bytes lead to is looked at, until one is nullable."""
        if not self._with_and[t]:
            return t == self.EMPTY
        known = self._empty.get(t)
        if known is not None:
            return known
        seen, todo, found = {t}, [t], False
        for at in todo:
            if self._nullable[at] or self._empty.get(at) is False or (at and not self._with_and[at]):
                found = True
                break
            for byte in range(256):
                after = self.derivative(at, byte)
                if after != self.EMPTY and after not in seen and not self._empty.get(after):
                    seen.add(after)
                    todo.append(after)
            if len(seen) > MOST:
                raise CannotCheck(f"an intersection has more than {MOST} derivatives")
        if found:
            self._empty[t] = False
        else:  # closed under all bytes, none of them nullable
            self._empty.update(dict.fromkeys(seen, True))
        return not found
