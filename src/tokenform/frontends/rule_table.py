"""Rules that a program writes, by readable names, for the engine.

Invariant: a rule stands once; names of rules are shortened for the engine, whose messages show those of
terminals alone.
Complexity: linear in the rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

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
        """The expansions that derive a text: by how many of their symbols are not yet known to."""
        waiting: dict[str, list[int]] = defaultdict(list)
        rules = list(self._rules)
        left = [len(body) for _, body in rules]
        for at, (_, body) in enumerate(rules):
            for symbol in body:
                waiting[symbol].append(at)
        known = {name: None for name in self.terminals}
        for name in (ready := list(known) + [name for name, body in rules if not body]):
            for at in waiting.pop(name, ()):
                left[at] -= 1
                if not left[at] and rules[at][0] not in known:
                    known[rules[at][0]] = None
                    ready.append(rules[at][0])
        return [rule for rule, count in zip(rules, left, strict=True) if not count]
