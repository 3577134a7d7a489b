"""Regular expressions as terms: the part of the syntax that Python's `re` and ECMA-262 read alike.

Characters, `.`, classes, `\\d` and `\\w` of ECMA-262, groups, `|`, `* + ? {m,n}` (greedy or not: the language
is the same).  Anything else is no mistake, but `CannotCheck`.
"""

from __future__ import annotations

from collections.abc import Callable

from .characters import ANY, DIGITS, WORD, Ranges, union, without
from .terms import CannotCheck, Terms

Spell = Callable[[Terms, Ranges], int]
_CONTROLS = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11}
_BREAKS: dict[str, Ranges] = {
    "python": [(10, 10)],
    "ecma": [(10, 10), (13, 13), (0x2028, 0x2029)],
    "gbnf": [],
}
_ESCAPED = frozenset('^$\\.*+?()[]{}|/-"')
_HEX = {"x": 2, "u": 4, "U": 8}
MOST_TIMES = 100_000


class Pattern:
    """Reads one pattern; `spell` says how a set of characters is spelled in bytes."""

    def __init__(self, terms: Terms, text: str, dialect: str, spell: Spell) -> None:
        self.terms, self.text, self.dialect, self.spell = terms, text, dialect, spell
        self.at = self.depth = 0

    def whole(self, alternatives: bool = True) -> int:
        """The texts that the pattern matches as a whole; without `alternatives` it may be none of several."""
        term = self._either() if alternatives else self._row()
        if self.at < len(self.text):
            raise self._no("something that can't stand there")
        return term

    def _no(self, what: str) -> CannotCheck:
        return CannotCheck(f"the pattern {self.text!r} has {what} at {self.at}")

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _next(self) -> str:
        self.at += 1
        if self.at > len(self.text):
            raise self._no("an end")
        return self.text[self.at - 1]

    def _either(self) -> int:
        parts = [self._row()]
        while self._peek() == "|":
            self.at += 1
            parts.append(self._row())
        return self.terms.either(parts)

    def literal(self) -> int:
        """The text itself, with escapes."""
        parts = []
        while self.at < len(self.text):
            parts.append(self.spell(self.terms, self._member()))
        return self.terms.row(parts)

    def _row(self) -> int:
        parts = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._one()))
        return self.terms.row(parts)

    def _repeated(self, term: int) -> int:
        mark = self._peek()
        if mark not in ("*", "+", "?", "{"):
            return term
        self.at += 1
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(mark) or self._counts()
        self.at += self._peek() == "?"
        if self._peek() in ("*", "+", "?", "{"):
            raise self._no("a quantifier of a quantifier")
        return self.terms.times(term, least, most)

    def _counts(self) -> tuple[int, int | None]:
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at : max(end, self.at)].partition(",")
        digits = all(part.isascii() and part.isdigit() for part in (low, high) if part)
        if end < 0 or not low or not digits or len(low + high) > 12:
            raise self._no("a brace that is no count")
        self.at = end + 1
        least = int(low)
        most = least if not comma else int(high) if high else None
        if max(least, most or 0) > MOST_TIMES or (most is not None and most < least):
            raise self._no("a count out of bounds")
        return least, most

    def _one(self) -> int:
        char = self._next()
        if char == "(":
            return self._group()
        if char in "*+?{}]^$":
            raise self._no(f"{char!r}, which is not read here,")
        if char == ".":
            ranges = without(ANY, _BREAKS[self.dialect])
        elif char == "[":
            ranges = self._class()
        else:
            ranges = self._escape() if char == "\\" else [(ord(char), ord(char))]
        return self.spell(self.terms, ranges)

    def _group(self) -> int:
        if self._peek() == "?":
            self.at += 1
            if self._next() != ":":
                raise self._no("a lookaround or a named group")
        self.depth += 1
        if self.depth > 50:
            raise self._no("groups nested too deep")
        inner = self._either()
        if self._peek() != ")":
            raise self._no("an open parenthesis")
        self.at, self.depth = self.at + 1, self.depth - 1
        return inner

    def _escape(self) -> Ranges:
        char = self._next()
        if char in _CONTROLS:
            return [(_CONTROLS[char], _CONTROLS[char])]
        if char in ("d", "w") and self.dialect == "ecma":
            return DIGITS if char == "d" else WORD
        if char in _HEX:
            digits = "".join(self._next() for _ in range(_HEX[char]))
            if set(digits) <= set("0123456789abcdefABCDEF") and int(digits, 16) <= 0x10FFFF:
                return [(int(digits, 16),) * 2]
        if char in _ESCAPED:
            return [(ord(char), ord(char))]
        raise self._no(f"the escape \\{char}")

    def _class(self) -> Ranges:
        negated = self._peek() == "^"
        self.at += negated
        ranges: Ranges = []
        while self._peek() != "]":
            low = self._member()
            if self._peek() == "-" and self.text[self.at + 1 : self.at + 2] != "]":
                self.at += 1
                high = self._member()
                if low[0][0] != low[-1][1] or high[0][0] != high[-1][1] or low[0][0] > high[0][0]:
                    raise self._no("a range of classes")
                low = [(low[0][0], high[0][0])]
            ranges += low
        self.at += 1
        if not ranges:
            raise self._no("an empty class")
        return without(ANY, union(ranges)) if negated else union(ranges)

    def _member(self) -> Ranges:
        char = self._next()
        if char in "[&~|" and self.dialect == "python":
            raise self._no(f"{char!r} in a class")
        return self._escape() if char == "\\" else [(ord(char), ord(char))]
