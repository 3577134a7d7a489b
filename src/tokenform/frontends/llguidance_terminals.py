"""Terminals of llguidance's dialect: the languages of its lexemes.

Purpose: `&`, `~`, `{m,n}`, Rust's patterns, `%regex` and names of terminals as one language each; equal ones
are one terminal.
Invariant: a terminal is regular, and refers to no rule, token or other constraint, nor to itself.
Complexity: linear in the terminals with those that they name written out, at most `MOST_PARTS` of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tokenform.errors import InvalidGrammar, LimitExceeded, UnsupportedRegex
from tokenform.frontends import forms
from tokenform.frontends.ebnf_reader import EbnfReader
from tokenform.frontends.forms import Language
from tokenform.frontends.lark_reader import read_lark
from tokenform.frontends.llguidance_reader import LlguidanceReader
from tokenform.frontends.llguidance_words import RegexNode, RegexText

MOST_PARTS = 200_000  # of all terminals, once those that they name are written out
_WORDS = re.compile(r"\w+|(?s:\W)")


class Terminals:
    """The terminals of one grammar; `entries` are those of its structure, by their names."""

    def __init__(
        self, reader: LlguidanceReader | EbnfReader, text: RegexText, may_name: Callable[[str], bool]
    ) -> None:
        self._reader = reader
        self._may_name = may_name
        self._text = text
        self.entries: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}
        self._languages: dict[str, Language | None] = {}
        self._sizes: dict[str, int] = {}
        self._size = 0

    def terminal(self, language: Language, lazy: bool, name: str) -> str:
        """The name of the terminal of a language."""
        key = json.dumps([language, lazy])
        if key not in self._names:
            shown = name
            while shown in self.entries or shown in self._text.definitions:
                shown += "'"
            self._names[key] = shown
            entry = {"pattern": "", "literal": None, "flags": "", "kind": "re", "priority": 0}
            self.entries[shown] = {"name": shown, **entry, "language": language, "lazy": lazy}
        return self._names[key]

    def language(self, node: RegexNode) -> Language:
        self._grow(1)
        values = node.values
        match node.kind:
            case "seq":
                return {"concat": [self.language(part) for part in values]} if values else forms.literal("")
            case "or" | "and":
                return {node.kind: [self.language(part) for part in values]}
            case "not":
                return {"not": self.language(values[0])}
            case "repeat":
                return {"repeat": [self.language(values[0]), *values[1:]]}
            case "text" if not values[1]:
                return forms.literal(values[0])
            case "text":
                return {"regex": f"(?i:{re.escape(values[0])})"}
            case "range":
                return {"regex": f"[{re.escape(values[0])}-{re.escape(values[1])}]"}
            case "regex":
                return self._regex(node)
            case "language":
                found: Language = values[0]
                return found
            case "structured":
                return self._structured(node)
            case "name":
                return self._of_name(node)
        what = "an excluded or special token" if node.kind == "special" else shown_as(node)
        raise self._reader.mistake(
            f"{what} can't stand in a terminal, or in a rule with lazy or suffix=", node.at
        )

    def _grow(self, parts: int) -> None:
        self._size += parts
        if self._size > MOST_PARTS:
            raise LimitExceeded(f"The grammar's terminals have more than {MOST_PARTS} parts, written out.")

    def _regex(self, node: RegexNode) -> Language:
        pattern, flags = node.values
        kept = "".join(sorted(set(flags) - {"u"}))
        if re.search(r"(?<!\\)(?:\\\\)*\\[bB]", pattern):
            message = "`\\b` looks past the ends of what is matched, as nothing may here"
            raise self._reader.mistake(message, node.at, UnsupportedRegex)
        inner = f"(?{kept}:{pattern}\n)" if "x" in kept else f"(?{kept}:{pattern})"
        return {"regex": rf"\A{inner}\z", "dialect": "rust"}

    def _structured(self, node: RegexNode) -> Language:
        value = json.loads(node.values[0])
        kind, chunks = (
            next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else ("", None)
        )
        if (
            kind == "substring_chunks"
            and isinstance(chunks, list)
            and all(isinstance(c, str) for c in chunks)
        ):
            return {"spans": [chunk for chunk in chunks if chunk]}
        if kind == "substring_words" and isinstance(chunks, str):
            return {"spans": [found.group() for found in _WORDS.finditer(chunks)]}
        if kind == "substring_chars" and isinstance(chunks, str):
            return {"spans": chunks}
        message = "%regex needs substring_chunks (a list of texts), or substring_words or _chars (a text)"
        raise self._reader.mistake(message, node.at)

    def _of_name(self, node: RegexNode) -> Language:
        name = node.values[0]
        known = self._languages.get(name)
        if known is not None:
            self._grow(self._sizes[name])
            return known
        if name in self._languages:
            raise self._reader.mistake(f"the terminal {name} refers to itself", node.at)
        self._languages[name] = None
        before = self._size
        definition = self._text.definitions.get(name)
        if not self._may_name(name):
            raise self._reader.mistake(f"the rule {name} can't stand in a terminal", node.at)
        if definition is not None:
            found = self.language(definition.body)
        elif name in self._text.imports:
            found = self._imported(self._text.imports[name], node)
        else:
            raise self._reader.mistake(f"the terminal {name} is not defined", node.at)
        self._languages[name] = found
        self._sizes[name] = self._size - before
        return found

    def _imported(self, name: str, node: RegexNode) -> Language:
        try:
            read = read_lark(f"start: {name}\n%import common.{name}")
        except InvalidGrammar:
            raise self._reader.mistake(f"`common` has no {name}", node.at) from None
        (terminal,) = read["terminals"]
        flags = terminal["flags"]
        return {"regex": f"(?{flags}:{terminal['pattern']})" if flags else terminal["pattern"]}


def shown_as(node: RegexNode) -> str:
    """What messages call a part."""
    if node.kind in ("name", "special", "reference"):
        return str(node.values[0])
    if node.kind == "text":
        return json.dumps(node.values[0], ensure_ascii=False) + str(node.values[1])
    if node.kind == "regex":
        return f"/{node.values[0]}/{node.values[1]}"
    return {
        "json": "%json",
        "structured": "%regex",
        "lark": "%lark",
        "range": "a range",
        "language": "a class",
    }.get(node.kind, node.kind)
