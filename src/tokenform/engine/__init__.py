"""The engine as Python sees it: a vocabulary, a grammar, and the automaton of both."""

from __future__ import annotations

from tokenform._core import TokenAutomaton
from tokenform.engine.vocabulary import Vocabulary
from tokenform.frontends.grammar import Grammar

__all__ = ["Grammar", "TokenAutomaton", "Vocabulary"]
