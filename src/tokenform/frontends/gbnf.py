"""Grammars in llama.cpp's GBNF, and in XGrammar's EBNF.

Purpose: `tf.gbnf(text)`: a context-free constraint over characters.
Invariant: every segmentation counts, and nothing is ignored: a text is accepted exactly if the start rule
derives it character by character.
Complexity: linear in the grammar's text, which the engine reads (`rust/core/src/gbnf/`); its tables are built
while they are used.
"""

from __future__ import annotations

import json
from typing import Literal

from tokenform import _core
from tokenform.errors import InvalidGrammar, LimitExceeded, OptionError
from tokenform.frontends import forms
from tokenform.frontends.ebnf import read_ebnf
from tokenform.frontends.ebnf_reader import is_ebnf
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.grammar_structure import GrammarStructure
from tokenform.frontends.unicode import check_text


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
