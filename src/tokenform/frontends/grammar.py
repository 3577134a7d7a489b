"""Grammar: a constraint as a value, before any vocabulary is known.

Purpose: what every frontend returns.  It pairs the core's grammar (which texts are
accepted) with the way to read an accepted text back (what the text means).
Invariant: a grammar never changes; compiling it twice for one vocabulary gives one
automaton, so masks that were computed once are shared by everybody who holds the grammar.
Complexity: `compile` is one dictionary lookup after the first call.
The automata live as long as the grammar.
Rejected: a cache keyed on the grammar's text in the module (it would outlive its users); weak keys (an
automaton holds its vocabulary, so they would never be dropped); subclasses by kind of constraint (they
would differ in nothing but `parse`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tokenform.errors import InvalidGrammar

if TYPE_CHECKING:
    from tokenform import _core


def _same_text(text: str) -> Any:
    return text


class Grammar:
    """A set of accepted texts, and how to read one back.

    Grammars combine with ``|`` (either), ``&`` (both), ``+`` (one after the other) and ``~`` (anything
    else); the value of a combined grammar is its text.

    Attributes:
        core: the core's grammar.
        source: what the grammar was made of (schema text, pattern, ...), for people.
        schema: the parsed JSON Schema where it was made of one, else None; prompts show it to the model.
    """

    __slots__ = ("__weakref__", "_automata", "_read", "core", "schema", "source")

    def __init__(
        self,
        core: _core.Grammar,
        *,
        read: Callable[[str], Any] | None = None,
        source: str = "",
        schema: Any = None,
    ) -> None:
        self.core = core
        self.schema = schema
        self.source = source
        self._read = read or _same_text
        self._automata: dict[_core.Vocabulary, _core.TokenAutomaton] = {}

    def compile(self, vocabulary: _core.Vocabulary) -> _core.TokenAutomaton:
        """The automaton of this grammar over the vocabulary's tokens; lazy, so this is cheap.

        Raises:
            VocabularyError: the vocabulary lacks bytes that every accepted text needs.
        """
        automaton = self._automata.get(vocabulary)
        if automaton is None:
            automaton = self._automata.setdefault(vocabulary, self.core.compile(vocabulary))
        return automaton

    @property
    def report(self) -> list[Any]:
        """What was ignored, loosened or not proven live, one entry each; empty: the grammar is exact."""
        return list(self.core.report)

    def parse(self, text: str) -> Any:
        """The value that an accepted text stands for: parsed JSON, an instance of the type, or the text."""
        return self._read(text)

    def _combined(self, operation: str, symbol: str, *others: Grammar) -> Grammar:
        method = getattr(self.core, operation, None)
        if method is None:
            raise InvalidGrammar(f"this kind of grammar can't be combined with {symbol!r}.")
        source = (
            f" {symbol} ".join(f"({g.source})" for g in (self, *others)) if others else f"~({self.source})"
        )
        return Grammar(method(*(g.core for g in others)), source=source)

    def __or__(self, other: Grammar) -> Grammar:
        return self._combined("union", "|", other) if isinstance(other, Grammar) else NotImplemented

    def __and__(self, other: Grammar) -> Grammar:
        return self._combined("intersection", "&", other) if isinstance(other, Grammar) else NotImplemented

    def __add__(self, other: Grammar) -> Grammar:
        return self._combined("concatenation", "+", other) if isinstance(other, Grammar) else NotImplemented

    def __invert__(self) -> Grammar:
        return self._combined("complement", "~")

    def __repr__(self) -> str:
        shown = self.source if len(self.source) <= 60 else f"{self.source[:57]}..."
        return f"Grammar({shown!r})"
