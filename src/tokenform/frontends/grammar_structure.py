"""The neutral form of a context-free grammar, between the readers and the engine.

Purpose: every grammar reader (Lark, GBNF) produces the same plain, JSON-able dictionary, so that the
engine knows one form and no grammar language.
Invariant: a `GrammarStructure` that a reader returns has only defined symbols, every rule derives at least
one string of terminals, and no terminal is plainly empty or matches the empty text (scanned lexers only).
Rejected: passing Lark's own `Rule` and `TerminalDef` objects on, which would tie the engine to Lark's
version.
Complexity: `pattern_problem` is linear in the pattern.
"""

from __future__ import annotations

import re
import warnings
from typing import Any, Literal, TypedDict

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_parse as _sre_parse


class TerminalEntry(TypedDict):
    """One terminal.

    pattern: source of a regular expression without flags; literal: the text itself where kind is "str", else
    None;
    flags: letters of "imslux", sorted; priority: higher wins among matches of one length.
    """

    name: str
    pattern: str
    literal: str | None
    kind: Literal["str", "re"]
    flags: str
    priority: int


class RuleEntry(TypedDict):
    """One expansion of one rule; priority is 0 if none is given, order its place among the alternatives."""

    origin: str
    expansion: list[str]
    priority: int
    order: int


class IndenterEntry(TypedDict):
    """How line breaks become INDENT and DEDENT: names of terminals, and the columns that a tab counts for."""

    newline: str
    indent: str
    dedent: str
    open: list[str]
    close: list[str]
    tab: int


class GrammarStructure(TypedDict):
    """A whole grammar.

    terminals: in the order in which Lark's lexer prefers them among matches of one length and priority.
    lexer: "contextual" (longest match among the terminals that the parser can take) or "dynamic" (every
    segmentation of the text counts).  ignore: terminals that may stand between any two.  declare: terminals
    without
    a pattern.  schemas: JSON Schemas by the name of the declared terminal that stands for them.
    """

    terminals: list[TerminalEntry]
    rules: list[RuleEntry]
    ignore: list[str]
    declare: list[str]
    start: str
    lexer: Literal["contextual", "dynamic"]
    indenter: IndenterEntry | None
    schemas: dict[str, Any]


def escape_text(text: str) -> str:
    """The pattern that matches the text alone, inside a class or outside, for Python's `re` and Rust's
    `regex` alike.

    `re.escape` won't do: it puts a backslash before blanks and line breaks, which Rust refuses.
    """
    return re.sub(r"[\\.+*?()|\[\]{}^$#&~-]", r"\\\g<0>", text)


def pattern_problem(pattern: str, flags: str) -> str | None:
    """Why a terminal's pattern can't be used, or None.

    Whether it matches any text is for the engine to say, which has the automaton.
    """
    value = 0
    for letter in flags:
        value |= int(getattr(re, letter.upper()))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _sre_parse.parse(pattern, value)
    except re.error as error:
        return f"is not a regular expression: {error}"
    if tree.getwidth()[0] == 0:
        return (
            "matches the empty text, which no lexer can find an end for; make the rule that uses it optional"
        )
    return None
