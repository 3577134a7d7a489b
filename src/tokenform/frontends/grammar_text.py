"""A constraint that comes as a text with the name of its kind: of a request, a row, a file, a page's field.

Invariant: one text is one grammar, wherever it comes from.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tokenform.errors import InvalidGrammar, OptionError
from tokenform.frontends.gbnf import gbnf
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.lark import lark
from tokenform.frontends.patterns import choice, regex
from tokenform.frontends.schemas import SPELLINGS, json_schema
from tokenform.frontends.structural_tag import structural_tag


def grammar_of_text(kind: str, text: str, **options: Any) -> Grammar:
    """The grammar that a text stands for.

    Args:
        kind: "json" (a schema), "json_object", "regex", "choice" (a JSON list of texts), "grammar" (Lark's
            language or GBNF, told by how its rules are written), "lark", "gbnf" or "structural_tag".
        **options: of `json_schema`, for kinds that write JSON.
    Raises:
        OptionError: there is no such kind; and what its reader raises.
    """
    if kind not in _READERS:
        kinds = ", ".join(map(repr, _READERS))
        raise OptionError(f"there is no constraint of kind {kind!r}; choose one of {kinds}.")
    return _READERS[kind](text, **options)


def is_gbnf(text: str) -> bool:
    """Whether a grammar is in GBNF and not in Lark's language: rules are written with `::=`.

    Comments (`#`, `//`) and quoted texts don't count.
    """
    return any("::=" in _without_quoted(line) for line in text.splitlines())


def _without_quoted(line: str) -> str:
    """The line up to its comment, without what stands in quotes."""
    kept, quote, place = [], "", 0
    while place < len(line):
        sign = line[place]
        if quote:
            if sign == "\\":
                place += 1
            elif sign == quote:
                quote = ""
        elif sign in "\"'":
            quote = sign
        elif sign == "#" or line.startswith("//", place):
            break
        else:
            kept.append(sign)
        place += 1
    return "".join(kept)


def _grammar(text: str) -> Grammar:
    if not text.strip():
        message = "the grammar is empty; write rules, in GBNF (`root ::= ...`) or in Lark's language."
        raise InvalidGrammar(message, line=1, column=1)
    return gbnf(text) if is_gbnf(text) else lark(text)


def _choice(text: str) -> Grammar:
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"a choice is a JSON list of strings: {error}.") from None
    if not isinstance(listed, list):
        raise OptionError(f"a choice is a JSON list of strings, not {type(listed).__name__}.")
    return choice(listed)


def spelling_of(options: dict[str, Any]) -> dict[str, str]:
    """Those of the options that say how documents are written."""
    return {name: value for name, value in options.items() if name in SPELLINGS}


_READERS: dict[str, Callable[..., Grammar]] = {
    "json": lambda text, **options: json_schema(text, **options),
    "json_object": lambda _, **options: json_schema('{"type": "object"}', **options),
    "regex": lambda text, **_: regex(text),
    "choice": lambda text, **_: _choice(text),
    "grammar": lambda text, **_: _grammar(text),
    "lark": lambda text, **_: lark(text),
    "gbnf": lambda text, **_: gbnf(text),
    "structural_tag": lambda text, **options: structural_tag(text, json_options=spelling_of(options)),
}
