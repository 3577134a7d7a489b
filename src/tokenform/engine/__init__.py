"""The engine as Python sees it: vocabulary, grammar, the automaton of both, its states, matchers, limits."""

from __future__ import annotations

from typing import Any

from tokenform._core import (
    Limits,
    Matcher,
    State,
    TokenAutomaton,
    accept_tokens,
    advance,
    clear_cache,
    fill_draft_masks,
    fill_masks,
    memory_held,
    set_limits,
)
from tokenform.disk_cache import cache_dir
from tokenform.engine.canvas import Canvas, Filling, Marginals
from tokenform.engine.certify import certify
from tokenform.engine.vocabulary import Vocabulary
from tokenform.frontends.grammar import Grammar

__all__ = [
    "Canvas",
    "Filling",
    "Grammar",
    "Limits",
    "Marginals",
    "Matcher",
    "State",
    "TokenAutomaton",
    "Vocabulary",
    "accept_tokens",
    "advance",
    "cache_dir",
    "certify",
    "clear_cache",
    "fill_draft_masks",
    "fill_masks",
    "memory_held",
    "set_limits",
]


def _automaton_in_a_notebook(self: Any) -> str:
    from tokenform.engine.drawing import automaton_html

    return automaton_html(self)


def _grammar_in_a_notebook(self: Any) -> str:
    from tokenform.engine.drawing import grammar_html

    return grammar_html(self)


def _automaton_shown(self: Any) -> str:
    return f"<TokenAutomaton over {self.vocabulary!r}>"


setattr(TokenAutomaton, "__repr__", _automaton_shown)  # noqa: B010
# notebooks ask for this name; the compiled class and the frontends know nothing of drawings
setattr(TokenAutomaton, "_repr_html_", _automaton_in_a_notebook)  # noqa: B010
setattr(Grammar, "_repr_html_", _grammar_in_a_notebook)  # noqa: B010
