"""Grammars in llama.cpp's GBNF, and in XGrammar's EBNF.

Invariant: every segmentation counts, and nothing is ignored: a text is accepted exactly if the start rule
derives it character by character.  In XGrammar's dialect lookaheads, which it does not hold a text to, change
nothing here either; a budget of characters ends a rule at the first place where it can end, as there.  What
can't be kept is refused: `lazy`, `max_chars=` or `max_tokens=` of a rule that is not regular.
Source: docs/defining_structures/ebnf_grammar.md of mlc-ai/xgrammar, and version 0.2.8.
Complexity: linear in the grammar's text, which the engine reads (`rust/core/src/gbnf/`); its tables are built
while they are used.
"""

from __future__ import annotations

import json
from typing import Literal

from tokenform import _core
from tokenform.errors import InvalidGrammar, LimitExceeded, OptionError
from tokenform.frontends import forms
from tokenform.frontends.ebnf_reader import EbnfReader, is_ebnf
from tokenform.frontends.forms import Form, Language
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.grammar_structure import GrammarStructure
from tokenform.frontends.llguidance import Lowering
from tokenform.frontends.llguidance_words import Definition
from tokenform.frontends.unicode import check_text

_ONE_OR_MORE: Language = {"regex": "(?s:.)+", "dialect": "python"}


def gbnf(
    text: str, *, start: str = "root", dialect: Literal["auto", "llama.cpp", "xgrammar"] = "auto"
) -> Grammar:
    """The texts that a grammar in GBNF derives.

    Args:
        text: the grammar.
        start: name of the start rule.
        dialect: "llama.cpp"; "xgrammar", which has macros (`Regex("a+")`, `TagDispatch(...)`) and attributes
            (`name[lazy] ::=`); "auto": XGrammar's where the text has something that llama.cpp does not read.

    Raises:
        InvalidGrammar: `line` and `column` are the place of the mistake; the message shows the line and says
            what was expected.
        UnsatisfiableGrammar: no text is accepted.
        LimitExceeded: the counts of `{m,n}` add up to more than 100,000, groups are nested deeper than 200,
            or the grammar is too large.
    """
    check_text(text, InvalidGrammar)
    if dialect not in ("auto", "llama.cpp", "xgrammar"):
        raise OptionError(f"dialect must be 'auto', 'llama.cpp' or 'xgrammar', not {dialect!r}")
    if dialect == "xgrammar" or (dialect == "auto" and is_ebnf(text)):
        try:
            form, notes = read_ebnf(text, start)
        except RecursionError:
            raise LimitExceeded("The grammar's rules refer to each other too deeply to be read.") from None
        core = forms.compiled(form, "the grammar")
        return Grammar(core, form=form, source=text, notes=[*core.report, *notes] if notes else None)
    return Grammar(_core.gbnf_grammar(text, start), form={"gbnf": text, "start": start}, source=text)


def read_gbnf(text: str, *, start: str = "root") -> GrammarStructure:
    """The neutral form of a grammar in GBNF; raises what `gbnf` raises."""
    check_text(text, InvalidGrammar)
    structure: GrammarStructure = json.loads(_core.read_gbnf(text, start))
    return structure


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
        if "temperature" in given:
            self.notes.append(f"left out: temperature of the rule {definition.name}, which changes no text")
        most, lazy, tokens = given.get("max_chars"), given.get("lazy"), given.get("max_tokens")
        if most is None and not lazy and tokens is None:
            return None
        if tokens is not None and int(tokens) == 0:
            return []
        language = self.terminals.language(definition.body)
        if lazy:
            language = {"and": [language, {"not": {"concat": [language, _ONE_OR_MORE]}}]}
        if most is not None:
            spent: Language = {"regex": f"(?s:.){{{int(most)},}}", "dialect": "python"}
            ended: Language = {"concat": [{"and": [language, spent]}, _ONE_OR_MORE]}
            language = {"and": [language, {"not": ended}]}
        if tokens is not None:
            name = f"{definition.name} (counted)"
            self._parts[name] = forms.counted(language, int(tokens))
            return [name]
        return [self.terminals.terminal(language, False, definition.name)]
