"""Rules that a program writes, by readable names, for the engine.

Invariant: a rule stands once; names of rules are shortened for the engine, whose messages show those of
terminals alone.
Complexity: linear in the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenform.frontends.gbnf_rules import Rules, deriving
from tokenform.frontends.grammar_structure import (
    GrammarStructure,
    RuleEntry,
    TerminalEntry,
    escape_text,
)

Expansion = Sequence[str]


def one_of(texts: Iterable[str]) -> str:
    """The pattern of these texts alone."""
    return "(?:" + "|".join(map(escape_text, texts)) + ")"


class RuleTable:
    """Terminals and rules, put together."""

    def __init__(self) -> None:
        self.terminals: dict[str, str] = {}
        self._rules: dict[tuple[str, tuple[str, ...]], None] = {}

    def rule(self, origin: str, *expansions: Expansion) -> None:
        """Adds expansions of a rule."""
        for expansion in expansions:
            self._rules[origin, tuple(expansion)] = None

    def terminal(self, name: str, pattern: str) -> str:
        """The name of a terminal, which is added where it is new."""
        self.terminals.setdefault(name, pattern)
        return name

    def __len__(self) -> int:
        return len(self._rules)

    def structure(self, start: str) -> GrammarStructure:
        """The grammar, with the longest match and nothing that is ignored; without terminals that no rule
        names and expansions that derive no text."""
        rules = self._productive()
        short = {name: f"r{at:x}" for at, name in enumerate(dict.fromkeys(name for name, _ in rules))}
        named = {symbol for _, expansion in rules for symbol in expansion}
        return GrammarStructure(
            terminals=[
                TerminalEntry(name=name, pattern=pattern, literal=None, kind="re", flags="", priority=0)
                for name, pattern in self.terminals.items()
                if name in named
            ],
            rules=[
                RuleEntry(
                    origin=short[name], expansion=[short.get(one, one) for one in body], priority=0, order=0
                )
                for name, body in rules
            ],
            ignore=[],
            declare=[],
            start=short[start],
            lexer="contextual",
            indenter=None,
            schemas={},
        )

    def _productive(self) -> list[tuple[str, tuple[str, ...]]]:
        """The expansions that derive a text."""
        ways: Rules = {}
        for name, body in self._rules:
            ways.setdefault(name, []).append(body)
        derived = self.terminals.keys() | deriving(ways, self.terminals.__contains__)
        return [rule for rule in self._rules if derived.issuperset(rule[1])]
