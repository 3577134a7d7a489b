"""Captures of a grammar in llguidance's dialect: its rules as the parts that a text is cut into.

Purpose: `Grammar.captures` finds what rules with `[capture]` or `[capture="name"]` wrote.
Invariant: a part that captures nothing is a grammar by itself, with the same terminals and `%ignore`; what is
ignored stands between parts, or at the end of one of several lexemes.
Rejected: rules with a parameter and nested `%lark`, whose captures stay in the report.
Complexity: a part is made when a text is cut first; repetitions as a text comes to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tokenform import _core
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.llguidance_words import RegexNode, RegexText

_EMPTY = RegexNode("seq", (), 0)
Key = tuple[Any, ...]


@dataclass(eq=False)
class CapturingRules:
    """The rules of a grammar.  made: the grammar of a part that captures nothing."""

    text: RegexText
    made: Callable[[RegexNode], Grammar]
    pieces: dict[Key, PartOfText] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Without the pieces, whose keys are of this process: others have their parts under other keys."""
        return self.__dict__ | {"pieces": {}}

    @cached_property
    def capturing(self) -> set[str]:
        known = self.text.definitions
        found = {name for name, one in known.items() if "capture" in one.attributes and not one.parametric}
        while True:
            more = {name for name, one in known.items() if name not in found and self.calls(one.body, found)}
            if not more:
                return found
            found |= more

    @cached_property
    def ignorable(self) -> RegexNode:
        """What may stand between two lexemes."""
        return RegexNode("repeat", (RegexNode("or", tuple(self.text.ignored), 0), 0, None), 0)

    def calls(self, node: RegexNode, names: set[str]) -> bool:
        """Whether a part names one of these rules."""
        if node.kind == "name":
            return node.values[0] in names
        return any(self.calls(one, names) for one in node.values if isinstance(one, RegexNode))

    def piece(self, node: RegexNode, least: int = 1, most: int | None = 1) -> PartOfText:
        """A part, so many times."""
        key = id(node), least, most
        if key not in self.pieces:
            self.pieces[key] = PartOfText(self, node, least, most)
        return self.pieces[key]


@dataclass(eq=False)
class PartOfText:
    """A part of a grammar, which is cut where something in it is captured."""

    rules: CapturingRules
    node: RegexNode
    least: int = 1
    most: int | None = 1

    @cached_property
    def parts(self) -> tuple[Any, ...] | None:
        """What it is put together of; None: it captures nothing."""
        node, piece = self.node, self.rules.piece
        if (self.least, self.most) != (1, 1):
            return self._repeated()
        if node is _EMPTY:
            return "sequence", ()
        if not self.rules.calls(node, self.rules.capturing):
            return None
        if node.kind == "or":
            return "choice", tuple(map(piece, node.values))
        if node.kind == "repeat":
            return "sequence", (piece(*node.values),)
        if node.kind == "name":
            definition = self.rules.text.definitions[node.values[0]]
            inside = piece(definition.body)
            named = definition.attributes.get("capture")
            if named is None:
                return "sequence", (inside,)
            return "capture", named.values[0] if isinstance(named, RegexNode) else definition.name, inside
        return "sequence", self._apart([piece(one) for one in node.values])

    def _apart(self, pieces: list[PartOfText]) -> tuple[PartOfText, ...]:
        """The parts, with what is ignored between them."""
        if not self.rules.text.ignored:
            return tuple(pieces)
        between = self.rules.piece(self.rules.ignorable)
        return tuple(part for one in pieces for part in (between, one))[1:]

    def _repeated(self) -> tuple[Any, ...]:
        if self.most == 0:
            return "sequence", ()
        more = self.rules.piece(
            self.node, max(self.least - 1, 0), None if self.most is None else self.most - 1
        )
        once = PartsInRow(("sequence", self._apart([self.rules.piece(self.node), more])), self)
        return ("sequence", (once,)) if self.least else ("choice", (once, self.rules.piece(_EMPTY)))

    @cached_property
    def _grammar(self) -> Grammar:
        return self.rules.made(self.node)

    def compile(self, vocabulary: _core.Vocabulary) -> _core.TokenAutomaton:
        """The automaton of a part that captures nothing."""
        return self._grammar.compile(vocabulary)

    def parse(self, text: str) -> str:
        """What it stands for."""
        return text


@dataclass(eq=False)
class PartsInRow:
    """Parts that are put together; `of` keeps them."""

    parts: tuple[Any, ...]
    of: PartOfText
