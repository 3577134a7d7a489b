"""The engine as Python sees it: a vocabulary, a grammar, the automaton of both, its states and its limits."""

from __future__ import annotations

from tokenform._core import Limits, State, TokenAutomaton, set_limits
from tokenform.engine.vocabulary import Vocabulary
from tokenform.frontends.grammar import Grammar

__all__ = ["Grammar", "Limits", "State", "TokenAutomaton", "Vocabulary", "set_limits"]
