"""Grammars in llama.cpp's GBNF.

Purpose: `tf.gbnf(text)`: a context-free constraint over characters.
Invariant: every segmentation counts, and nothing is ignored: a text is accepted exactly if the start rule
derives it character by character.
Complexity: linear in the grammar's text, which the engine reads (`rust/core/src/gbnf/`); its tables are built
while they are used.
"""

from __future__ import annotations

import json

from tokenform import _core
from tokenform.errors import InvalidGrammar
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.grammar_structure import GrammarStructure
from tokenform.frontends.unicode import check_text


def gbnf(text: str, *, start: str = "root") -> Grammar:
    """The texts that a grammar in GBNF derives.

    Args:
        text: the grammar.
        start: name of the start rule.

    Raises:
        InvalidGrammar: `line` and `column` are the place of the mistake; the message shows the line and says
            what was expected.
        UnsatisfiableGrammar: no text is accepted.
        LimitExceeded: the counts of `{m,n}` add up to more than 100,000, groups are nested deeper than 200,
            or the grammar is too large.
    """
    check_text(text, InvalidGrammar)
    return Grammar(_core.gbnf_grammar(text, start), form={"gbnf": text, "start": start}, source=text)


def read_gbnf(text: str, *, start: str = "root") -> GrammarStructure:
    """The neutral form of a grammar in GBNF; raises what `gbnf` raises."""
    check_text(text, InvalidGrammar)
    structure: GrammarStructure = json.loads(_core.read_gbnf(text, start))
    return structure
