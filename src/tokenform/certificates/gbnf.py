"""GBNF as rules: names, texts in quotes, classes, `.`, groups, `|`, `* + ? {m,n}`, comments."""

from __future__ import annotations

import re

from .characters import utf8
from .grammar import Symbol
from .patterns import Pattern
from .terms import CannotCheck, Terms

_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+|\#[^\r\n]*)|(?P<line>\r\n|\r|\n)|(?P<rule>[A-Za-z0-9-]+)(?=[ \t]*::=)|(?P<is>::=)
    |(?P<name>[A-Za-z0-9-]+)|(?P<text>"(?:[^"\\\r\n]|\\.)*")|(?P<class>\[(?:[^\]\\\r\n]|\\.)*\])
    |(?P<count>\{[0-9]{1,4}(?:,[0-9]{0,4})?\})|(?P<mark>[()|*+?.])""",
    re.VERBOSE,
)
_MARKS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
Rows = list[list[Symbol]]


class GbnfText:
    """Reads a grammar into `rules`."""

    def __init__(self, terms: Terms, text: str) -> None:
        self.terms, self.rules = terms, dict[str, Rows]()
        self.tokens, self.place, at = list[tuple[str, str]](), 0, 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise CannotCheck(f"GBNF that is not read here, at {text[at : at + 20]!r}")
            at = found.end()
            if found.lastgroup != "blank":
                self.tokens.append((found.lastgroup or "", found.group()))
        while self._lines():
            kind, name = self._take()
            if kind != "rule" or self._take()[0] != "is" or name in self.rules:
                raise CannotCheck(f"GBNF: no rule, or a second one, at {name!r}")
            self._lines()
            self.rules[name] = []
            self.rules[name] = self._either(0)
        used = {symbol for rows in self.rules.values() for row in rows for symbol in row}
        if missing := {symbol for symbol in used if isinstance(symbol, str)} - set(self.rules):
            raise CannotCheck(f"GBNF: no rule {sorted(missing)[0]!r}")

    def _peek(self) -> tuple[str, str]:
        return self.tokens[self.place] if self.place < len(self.tokens) else ("", "")

    def _take(self) -> tuple[str, str]:
        self.place += 1
        return self.tokens[self.place - 1] if self.place <= len(self.tokens) else ("", "")

    def _lines(self) -> bool:
        while self._peek()[0] == "line":
            self.place += 1
        return self._peek() != ("", "")

    def _either(self, depth: int) -> Rows:
        if depth > 50:
            raise CannotCheck("GBNF: groups nested too deep")
        rows = [self._row(depth)]
        while True:
            start = self.place
            if depth:
                self._lines()
            if self._peek()[1] != "|":
                self.place = start
                return rows
            self.place += 1
            self._lines()
            rows.append(self._row(depth))

    def _row(self, depth: int) -> list[Symbol]:
        row: list[Symbol] = []
        while True:
            if depth:
                self._lines()
            kind, text = self._peek()
            if kind in ("", "line", "rule") or text in ("|", ")"):
                return row
            self.place += 1
            symbol: Symbol
            if kind == "name":
                symbol = text
            elif kind == "text":
                symbol = Pattern(self.terms, text[1:-1], "gbnf", utf8).literal()
            elif kind == "class" or text == ".":
                symbol = Pattern(self.terms, text, "gbnf", utf8).whole()
            elif text == "(":
                symbol = self._rule(self._either(depth + 1))
                self._lines()
                if self._take()[1] != ")":
                    raise CannotCheck("GBNF: an open parenthesis")
            else:
                raise CannotCheck(f"GBNF: {text!r} has nothing before it")
            row.append(self._repeated(symbol))

    def _repeated(self, symbol: Symbol) -> Symbol:
        while self._peek()[0] == "count" or self._peek()[1] in _MARKS:
            kind, mark = self._take()
            if kind == "count":
                low, comma, high = mark[1:-1].partition(",")
                least, most = int(low), int(high) if high else None if comma else int(low)
                if most is not None and most < least:
                    raise CannotCheck("GBNF: a count out of order")
            else:
                least, most = _MARKS[mark]
            if isinstance(symbol, int):
                symbol = self.terms.times(symbol, least, most)
                continue
            if max(least, most or 0) > 100:
                raise CannotCheck("GBNF: a rule more than 100 times")
            rows: Rows = [[symbol] * n for n in range(least, (least if most is None else most) + 1)]
            if most is None:
                rows.append([str(len(self.rules)) + ":", symbol])  # the name that `_rule` gives next
            symbol = self._rule(rows)
        return symbol

    def _rule(self, rows: Rows) -> Symbol:
        """A rule without a name of its own; a term where it is one."""
        if all(isinstance(symbol, int) for row in rows for symbol in row):
            return self.terms.either([self.terms.row(row) for row in rows])  # type: ignore[arg-type]
        name = f"{len(self.rules)}:"
        self.rules[name] = rows
        return name
