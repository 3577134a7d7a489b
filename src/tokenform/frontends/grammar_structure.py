"""The neutral form of a context-free grammar, between the readers and the engine.

Purpose: every grammar reader (Lark, GBNF) produces the same plain, JSON-able dictionary, so that the
engine knows one form and no grammar language.
Invariant: a `GrammarStructure` that a reader returns has only defined symbols, every rule derives at least
one string of terminals, and no terminal is plainly empty or matches the empty text (scanned lexers only).
Complexity: `pattern_problem` is linear in the pattern.
Rejected: passing Lark's own `Rule` and `TerminalDef` objects on, which would tie the engine to Lark's
version.
"""

from __future__ import annotations

import re
import warnings
from typing import Any, Literal, TypedDict

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_constants as _sre  # the one public home of the opcodes on Python 3.10 to 3.13
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


def pattern_problem(pattern: str, flags: str, *, empty_allowed: bool = False) -> str | None:
    """Why a terminal's pattern can't be used, or None.

    The test for "matches no text at all" is structural: sound, not complete (`a(?=b)c` passes here); the
    engine,
    which has the automaton, decides the rest.
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
    if _matches_nothing(tree):
        return "matches no text at all"
    if not empty_allowed and tree.getwidth()[0] == 0:
        return (
            "matches the empty text, which no lexer can find an end for; make the rule that uses it optional"
        )
    return None


_COMPLEMENTS = (
    {_sre.CATEGORY_SPACE, _sre.CATEGORY_NOT_SPACE},
    {_sre.CATEGORY_DIGIT, _sre.CATEGORY_NOT_DIGIT},
    {_sre.CATEGORY_WORD, _sre.CATEGORY_NOT_WORD},
)


def _matches_nothing(tree: Any) -> bool:
    return any(_item_matches_nothing(operator, argument) for operator, argument in tree)


def _item_matches_nothing(operator: Any, argument: Any) -> bool:
    if operator is _sre.IN:
        members = list(argument)
        if not members or members[0][0] is not _sre.NEGATE:
            return not members
        categories = {item for kind, item in members if kind is _sre.CATEGORY}
        return any(pair <= categories for pair in _COMPLEMENTS)
    if operator is _sre.BRANCH:
        return all(_matches_nothing(branch) for branch in argument[1])
    if operator is _sre.SUBPATTERN:
        return _matches_nothing(argument[3])
    if operator in (_sre.MAX_REPEAT, _sre.MIN_REPEAT):
        return bool(argument[0] > 0) and _matches_nothing(argument[2])
    if operator is _sre.ASSERT_NOT:
        return len(argument[1]) == 0
    if operator is _sre.ASSERT:
        return _matches_nothing(argument[1])
    return False
