"""Grammars in Lark's language.

Purpose: `tf.lark(text)`: a context-free constraint.
Invariant: which texts are accepted is what Lark's LALR parser with its contextual lexer accepts, or what its
Earley parser with the complete dynamic lexer does, but for the points below.
Complexity: Lark's loading time; the engine builds its tables while they are used.
Differences from Lark, with the contextual lexer: any context-free grammar is taken, ambiguous ones included;
the longest match wins, whatever its priority (Lark takes the first terminal of its order that matches at
all); a terminal that has been read past one of its ends must reach another (Lark goes back to the last
end); what a lookahead at the end of a pattern asks of the text behind it is taken as if the text ended there.
An indented line is at most 8 columns deeper than the block around it, and at most 160 deep.
"""

from __future__ import annotations

import json

from tokenform import _core
from tokenform.errors import InvalidGrammar
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.grammar_structure import GrammarStructure
from tokenform.frontends.lark_reader import Lexer, read_lark


def lark(
    text: str,
    *,
    start: str | None = None,
    lexer: Lexer | None = None,
    import_paths: list[str] | None = None,
) -> Grammar:
    """The texts that a grammar in Lark's language derives.

    Args:
        text: the grammar.
        start: name of the start rule; without it that of the text's `// tokenform:` line, or "start".
        lexer: "contextual" (longest match among the terminals that may come) or "dynamic" (every segmentation
            counts); without it that of the text's `// tokenform:` line, or "contextual".
        import_paths: folders in which `%import` looks, before Lark's own grammars.

    Raises:
        InvalidGrammar: `line` and `column` are the place of the mistake where the text has one.
        UnsupportedRegex: a terminal's pattern isn't regular.
        UnsatisfiableGrammar: no text is accepted.
        LimitExceeded: the grammar is too large.
    """
    return from_structure(read_lark(text, start=start, lexer=lexer, import_paths=import_paths), text)


def from_structure(structure: GrammarStructure, source: str) -> Grammar:
    """The grammar of a neutral structure; `source` is what people are shown."""
    if structure["schemas"]:
        raise InvalidGrammar("%json inside a grammar is not supported; use json_schema for the whole text.")
    return Grammar(_core.context_free(json.dumps(structure)), source=source)
