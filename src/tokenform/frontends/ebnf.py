"""Grammars in XGrammar's EBNF.

Purpose: `tf.gbnf(text, dialect="xgrammar")`: rules over characters; macros and attributes are languages.
Invariant: every segmentation counts.  Lookaheads, which XGrammar does not hold a text to, change nothing here
either; a budget of characters ends a rule at the first place where it can end, as there.  What can't be kept
is refused: `max_tokens=`, and `lazy` or `max_chars=` of a rule that is not regular.
Complexity: that of `llguidance`.
Source: docs/defining_structures/ebnf_grammar.md of mlc-ai/xgrammar, and version 0.2.8.
"""

from __future__ import annotations

from tokenform.frontends.ebnf_reader import EbnfReader
from tokenform.frontends.forms import Form, Language
from tokenform.frontends.llguidance import Lowering
from tokenform.frontends.llguidance_reader import Definition

_ONE_OR_MORE: Language = {"regex": "(?s:.)+", "dialect": "python"}


def read_ebnf(text: str, start: str) -> tuple[Form, list[str]]:
    """The form of a grammar, and what its report says; raises what `gbnf` raises."""
    reader = EbnfReader(text)
    lowering = _EbnfLowering(reader, reader.grammar(), start, {}, {}, [])
    return lowering.form(), lowering.notes


class _EbnfLowering(Lowering):
    """All names are rules; a rule with an attribute that cuts its texts is one language."""

    lexer = "dynamic"

    def is_terminal(self, name: str) -> bool:
        return False

    def may_name(self, name: str) -> bool:
        return True

    def lexeme(self, definition: Definition) -> list[str] | None:
        given = definition.attributes
        if "max_tokens" in given:
            message = "max_tokens= counts tokens, which no text shows; count characters with max_chars="
            raise self.reader.mistake(message, definition.at)
        if "temperature" in given:
            self.notes.append(f"left out: temperature of the rule {definition.name}, which changes no text")
        most, lazy = given.get("max_chars"), given.get("lazy")
        if most is None and not lazy:
            return None
        language = self.terminals.language(definition.body)
        if lazy:
            language = {"and": [language, {"not": {"concat": [language, _ONE_OR_MORE]}}]}
        if most is not None:
            spent: Language = {"regex": f"(?s:.){{{int(most)},}}", "dialect": "python"}
            ended: Language = {"concat": [{"and": [language, spent]}, _ONE_OR_MORE]}
            language = {"and": [language, {"not": ended}]}
        return [self.terminals.terminal(language, False, definition.name)]
