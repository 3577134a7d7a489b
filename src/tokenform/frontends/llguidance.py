"""Grammars in llguidance's dialect of Lark's language.

Purpose: `tf.lark(text, dialect="llguidance")`: the texts that llguidance's lexer and parser read.
Invariant: a lexeme is the longest that a terminal of the context reads, and counts as each of the
terminals that read it; a lazy one ends where it first can.  Patterns are Rust's; `~` is the complement among
texts of characters.  What is not followed exactly is refused (`max_tokens=`, a `stop=` that is a text,
parametric rules); captures and temperatures change no text, and are named in the report.
Complexity: linear in the text and in the counts of repetitions; languages are the engine's work.
Source: docs/syntax.md of guidance-ai/llguidance.
Rejected: every segmentation of a text (`lexer="dynamic"`): a lazy lexeme would end nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tokenform.errors import InvalidGrammar, LimitExceeded, TokenformError, UnsupportedRegex
from tokenform.frontends import forms
from tokenform.frontends.forms import Form, Language
from tokenform.frontends.grammar import Grammar, without_captures
from tokenform.frontends.lark_reader import read_lark
from tokenform.frontends.llguidance_reader import Definition, LlguidanceReader, RegexNode, RegexText
from tokenform.frontends.schemas import json_schema

MOST_REPEATED = 20_000
MOST_TOKENS = 2_000
MOST_PARTS = 200_000  # of all terminals, once those that they name are written out
_WORDS = re.compile(r"\w+|(?s:\W)")
_OPTIONS = {"no_forcing", "allow_initial_skip", "allow_invalid_utf8", "skip_repetition"}
_TOKEN_IDS = re.compile(r"<\[(?:\^?\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*|\*)\]>")


def read_llguidance(
    text: str, start: str, definitions: Mapping[str, Grammar], json_options: Mapping[str, Any]
) -> tuple[Form, list[str]]:
    """The form of a grammar, and what its report says; raises what `lark` raises."""
    reader = LlguidanceReader(text)
    lowering = _Lowering(reader, reader.grammar(), start, definitions, json_options, [])
    return lowering.form(), lowering.notes


class _Lowering:
    """Flat rules and languages of one grammar."""

    def __init__(
        self,
        reader: LlguidanceReader,
        text: RegexText,
        start: str,
        definitions: Mapping[str, Grammar],
        json_options: Mapping[str, Any],
        notes: list[str],
    ) -> None:
        self._reader = reader
        self._text = text
        self._start = start
        self._definitions = definitions
        self._json_options = json_options
        self.notes = notes
        self._terminals: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}
        self._languages: dict[str, Language | None] = {}
        self._rules: list[dict[str, Any]] = []
        self._parts: dict[str, Form] = {}
        self._helpers = self._repeated = 0
        self._sizes: dict[str, int] = {}
        self._size = 0

    def form(self) -> Form:
        """The grammar as data."""
        unknown = set(self._text.options) - _OPTIONS
        if unknown or self._text.options.get("skip_repetition", "zero_or_more") == "once":
            name = sorted(unknown)[0] if unknown else '"skip_repetition": "once"'
            raise InvalidGrammar(f"%llguidance: {name} is not read; leave it out.")
        definition = self._text.definitions.get(self._start)
        if definition is None:
            known = ", ".join(sorted(self._text.definitions)) or "none"
            raise InvalidGrammar(
                f"The start rule '{self._start}' is not defined; rules of the grammar: {known}."
            )
        ignored = [
            self._terminal(self._language(node), False, f"%ignore {i}")
            for i, node in enumerate(self._text.ignored)
        ]
        done, todo = set(), [self._start]
        while todo:
            name = todo.pop()
            if name not in done:
                done.add(name)
                todo += self._rule(self._text.definitions[name])
        structure = {
            "terminals": list(self._terminals.values()),
            "rules": self._rules,
            "ignore": ignored,
            "declare": list(self._parts),
            "start": self._start,
            "lexer": "longest",
            "starts_at_once": self._text.options.get("allow_initial_skip") is not True,
            "indenter": None,
            "parts": self._parts,
        }
        return {"grammar": structure}

    # ---- rules -------------------------------------------------------------------------------------------

    def _rule(self, definition: Definition) -> list[str]:
        """Adds a rule; the rules that it names."""
        used: list[str] = []
        name, body = definition.name, definition.body
        if self._attributed(definition):
            language = self._language(body)
            suffix = definition.attributes.get("suffix")
            if suffix is not None:
                language = {"concat": [language, self._language(suffix)]}
            self._add(name, [self._terminal(language, True, name)])
        elif _is_terminal(name):
            self._add(name, [self._named(name, body)])
        else:
            self._add_all(name, body, used)
        return used

    def _attributed(self, definition: Definition) -> bool:
        """Whether the rule is a lazy lexeme."""
        given = definition.attributes
        stop = given.get("stop")
        if stop is not None and stop.values[:1] != ("",):
            message = "stop= takes back what was written; write suffix=, or lazy and the end in the pattern"
            raise self._reader.mistake(message, definition.at)
        if "max_tokens" in given:
            message = "max_tokens= counts tokens, which no text shows; count characters with {m,n}"
            raise self._reader.mistake(message, definition.at)
        for key in ("capture", "stop_capture", "temperature"):
            if key in given:
                self.notes.append(f"left out: {key} of the rule {definition.name}, which changes no text")
        return "suffix" in given or bool(given.get("lazy"))

    def _add(self, origin: str, expansion: list[str]) -> None:
        self._rules.append(
            {"origin": origin, "expansion": expansion, "priority": 0, "order": len(self._rules)}
        )

    def _add_all(self, origin: str, node: RegexNode, used: list[str]) -> None:
        for part in node.values if node.kind == "or" else (node,):
            self._add(origin, self._symbols(part, origin, used))

    def _helper(self, origin: str) -> str:
        self._helpers += 1
        return f"{origin.partition('.')[0]}.{self._helpers}"

    def _symbols(self, node: RegexNode, origin: str, used: list[str]) -> list[str]:
        """Symbols of a part of a rule."""
        match node.kind:
            case "seq":
                return [symbol for part in node.values for symbol in self._symbols(part, origin, used)]
            case "or":
                name = self._helper(origin)
                self._add_all(name, node, used)
                return [name]
            case "repeat":
                return self._repeat(node, origin, used)
            case "name" if not _is_terminal(node.values[0]):
                if node.values[0] not in self._text.definitions:
                    raise self._reader.mistake(f"the rule {node.values[0]} is not defined", node.at)
                used.append(node.values[0])
                return [node.values[0]]
            case "special" | "reference" | "json" | "lark":
                return self._part(node, origin)
            case "text" if node.values[0] == "":
                return []
        return [self._named(_shown(node), node)]

    def _repeat(self, node: RegexNode, origin: str, used: list[str]) -> list[str]:
        inner, least, most = node.values
        if inner.kind == "special" and inner.values[0].startswith(("<[^", "<[*")):
            return self._others(inner, least, most)
        self._repeated += max(least, most or 0)
        if self._repeated > MOST_REPEATED:
            raise LimitExceeded(
                f"The counts of the grammar's repetitions add up to more than {MOST_REPEATED}."
            )
        symbols = self._symbols(inner, origin, used)
        if len(symbols) != 1:
            name = self._helper(origin)
            self._add(name, symbols)
            symbols = [name]
        out = symbols * least
        if most is None:
            name = self._helper(origin)
            self._add(name, [])
            self._add(name, [name, *symbols])
            return [*out, name]
        tail: list[str] = []
        for _ in range(most - least):
            name = self._helper(origin)
            self._add(name, [])
            self._add(name, [*symbols, *tail])
            tail = [name]
        return out + tail

    # ---- constraints of their own ------------------------------------------------------------------------

    def _part(self, node: RegexNode, origin: str) -> list[str]:
        value = node.values[0]
        if node.kind == "special" and value.startswith("<["):
            return self._token_ids(node, origin)
        name = _shown(node)
        if node.kind == "json":
            name = f"JSON_SCHEMA_{node.at}"
        if node.kind == "lark":
            name = f"%lark {node.at}"
        if name not in self._parts:
            self._parts[name] = self._form_of(node)
        return [name]

    def _form_of(self, node: RegexNode) -> Form:
        value = node.values[0]
        if node.kind == "special":
            return {"special": value, "spelled": "unknown"}
        if node.kind == "lark":
            inner = _Lowering(self._reader, value, "start", self._definitions, self._json_options, self.notes)
            return inner.form()
        try:
            if node.kind == "json":
                return json_schema(value, **self._json_options).form
            grammar = self._definitions.get(value.removeprefix("@"))
            if grammar is None:
                raise InvalidGrammar(f"definitions has no grammar of the name {value.removeprefix('@')!r}")
            return forms.lowered(without_captures(grammar, "definitions"))
        except TokenformError as error:
            placed = self._reader.mistake(f"{_shown(node)}: {error}".rstrip("."), node.at)
            raise type(error)(str(placed), line=placed.line, column=placed.column) from None

    def _token_ids(self, node: RegexNode, origin: str) -> list[str]:
        """Tokens by their numbers, any of which may stand there."""
        value = node.values[0]
        if not _TOKEN_IDS.fullmatch(value):
            raise self._reader.mistake(f"{value} is no list of token ids, as <[5]> or <[5,7-9]> is", node.at)
        if value[2] in "^*":
            message = f"{value} stands in a repetition without an end alone: {value}* or {value}+"
            raise self._reader.mistake(message, node.at)
        ids: list[int] = []
        for listed in value[2:-2].split(","):
            first, _, last = listed.partition("-")
            low, high = int(first), int(last or first)
            if high < low or high - low + len(ids) >= MOST_TOKENS:
                raise self._reader.mistake(
                    f"{value} runs backwards, or has more than {MOST_TOKENS} tokens", node.at
                )
            ids += range(low, high + 1)
        names = [f"<[{number}]>" for number in dict.fromkeys(ids)]
        for name, number in zip(names, dict.fromkeys(ids), strict=True):
            self._parts[name] = {"special": number}
        if len(names) == 1:
            return names
        helper = self._helper(origin)
        for name in names:
            self._add(helper, [name])
        return [helper]

    def _others(self, node: RegexNode, least: int, most: int | None) -> list[str]:
        """Any tokens but one, again and again."""
        found = re.fullmatch(r"<\[\^(\d+)\]>", node.values[0])
        if found is None or most is not None or least > 1:
            message = (
                "of tokens that are excluded one is read, in a repetition without an end: <[^5]>* or <[^5]>+"
            )
            raise self._reader.mistake(message, node.at)
        name = f"!{node.values[0]}"
        self._parts[name] = {"other": int(found.group(1))}
        if least:
            return [name]
        helper = self._helper(self._start)
        self._add(helper, [])
        self._add(helper, [name])
        return [helper]

    # ---- terminals ---------------------------------------------------------------------------------------

    def _named(self, name: str, node: RegexNode) -> str:
        return self._terminal(self._language(node), False, name)

    def _terminal(self, language: Language, lazy: bool, name: str) -> str:
        """The name of the terminal of a language."""
        key = json.dumps([language, lazy])
        if key not in self._names:
            shown = name
            while shown in self._terminals or shown in self._parts or shown in self._text.definitions:
                shown += "'"
            self._names[key] = shown
            entry = {"pattern": "", "literal": None, "flags": "", "kind": "re", "priority": 0}
            self._terminals[shown] = {"name": shown, **entry, "language": language, "lazy": lazy}
        return self._names[key]

    def _language(self, node: RegexNode) -> Language:
        """The language of a part of a terminal."""
        self._grow(1)
        values = node.values
        match node.kind:
            case "seq":
                return {"concat": [self._language(part) for part in values]} if values else forms.literal("")
            case "or" | "and":
                return {node.kind: [self._language(part) for part in values]}
            case "not":
                return {"not": self._language(values[0])}
            case "repeat":
                return {"repeat": [self._language(values[0]), *values[1:]]}
            case "text" if not values[1]:
                return forms.literal(values[0])
            case "text":
                return {"regex": f"(?i:{re.escape(values[0])})"}
            case "range":
                return {"regex": f"[{re.escape(values[0])}-{re.escape(values[1])}]"}
            case "regex":
                return self._regex(node)
            case "structured":
                return self._structured(node)
            case "name":
                return self._of_name(node)
        what = "an excluded or special token" if node.kind == "special" else _shown(node)
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
            placed = self._reader.mistake(
                "`\\b` looks past the ends of what is matched, as nothing may here", node.at
            )
            raise UnsupportedRegex(str(placed), line=placed.line, column=placed.column)
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
        if not _is_terminal(name):
            raise self._reader.mistake(f"the rule {name} can't stand in a terminal", node.at)
        if definition is not None:
            found = self._language(definition.body)
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


def _is_terminal(name: str) -> bool:
    return name.lstrip("_")[:1].isupper()


def _shown(node: RegexNode) -> str:
    if node.kind in ("name", "special", "reference"):
        return str(node.values[0])
    if node.kind == "text":
        return json.dumps(node.values[0], ensure_ascii=False) + str(node.values[1])
    if node.kind == "regex":
        return f"/{node.values[0]}/{node.values[1]}"
    return {"json": "%json", "structured": "%regex", "lark": "%lark", "range": "a range"}.get(
        node.kind, node.kind
    )
