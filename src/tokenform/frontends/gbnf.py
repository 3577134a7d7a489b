"""Grammars in llama.cpp's GBNF.

Purpose: `tf.gbnf(text)`: a context-free constraint over characters.
Invariant: every segmentation counts, and nothing is ignored: a text is accepted exactly if the start rule
derives it character by character.
Complexity: linear in the grammar's text; the engine builds its tables while they are used.
"""

from __future__ import annotations

from tokenform.frontends.gbnf_reader import read_gbnf
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.lark import from_structure


def gbnf(text: str, *, start: str = "root") -> Grammar:
    """The texts that a grammar in GBNF derives.

    Args:
        text: the grammar.
        start: name of the start rule.

    Raises:
        InvalidGrammar: `line` and `column` are the place of the mistake.
        UnsatisfiableGrammar: no text is accepted.
        LimitExceeded: the grammar is too large.
    """
    return from_structure(read_gbnf(text, start=start), text, {})
