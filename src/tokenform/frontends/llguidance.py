"""Grammars in llguidance's dialect of Lark's language.

Invariant: a lexeme is the longest that a terminal of the context reads, and counts as each of the
terminals that read it; a lazy one ends where it first can.  Patterns are Rust's; `~` is the complement among
texts of characters.  A `stop=` is taken back there once it was written; here it is not written.  What is not
followed exactly is refused (`max_tokens=`); temperatures change no text, and are in the report; captures are
found in a text again (`Grammar.captures`).
Complexity: linear in the text, the counts of repetitions and the numbers that rules with a parameter are
given; languages are the engine's work.
Source: docs/syntax.md of guidance-ai/llguidance.
Rejected: every segmentation of a text (`lexer="dynamic"`): a lazy lexeme would end nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from tokenform.errors import InvalidGrammar, LimitExceeded, TokenformError, UnsatisfiableGrammar
from tokenform.frontends import forms
from tokenform.frontends.ebnf_reader import EbnfReader
from tokenform.frontends.forms import Form, Language
from tokenform.frontends.gbnf_rules import Rules, deriving
from tokenform.frontends.grammar import Grammar, without_captures
from tokenform.frontends.llguidance_captures import CapturingRules
from tokenform.frontends.llguidance_reader import LlguidanceReader
from tokenform.frontends.llguidance_terminals import Terminals, shown_as
from tokenform.frontends.llguidance_words import Definition, RegexNode, RegexText
from tokenform.frontends.schemas import json_schema

MOST_REPEATED = 20_000
MOST_INSTANCES = 20_000  # rules that those with a parameter are written out to
_OPTIONS = {"no_forcing", "allow_initial_skip", "allow_invalid_utf8", "skip_repetition"}
_ALONE = "a part by itself"
_TOKEN_IDS = re.compile(r"<\[(?:\^?\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*|\*)\]>")


def read_llguidance(
    text: str, start: str, definitions: Mapping[str, Grammar], json_options: Mapping[str, Any]
) -> tuple[Form, list[str], tuple[Any, ...] | None]:
    """The form of a grammar, what its report says, and where it has captures how it is put together; raises
    what `lark` raises."""
    reader = LlguidanceReader(text)
    read = reader.grammar()
    lowering = Lowering(reader, read, start, definitions, json_options, [])
    form = lowering.form()
    rules = CapturingRules(read, partial(_part_alone, reader, read, definitions, json_options))
    captured = start in rules.capturing
    parts = ("rules", rules.piece(RegexNode("name", (start,), 0))) if captured else None
    return form, lowering.notes, parts


def _part_alone(
    reader: LlguidanceReader,
    text: RegexText,
    definitions: Mapping[str, Grammar],
    json_options: Mapping[str, Any],
    node: RegexNode,
) -> Grammar:
    known = {**text.definitions, _ALONE: Definition(_ALONE, node, node.at)}
    one_lexeme = node.kind in ("text", "regex", "range") or (node.kind == "name" and node.values[0].isupper())
    alone = replace(text, definitions=known, ignored=[] if one_lexeme else text.ignored)
    form = Lowering(reader, alone, _ALONE, definitions, json_options, []).form()
    return Grammar(forms.compiled(form, "a part of the grammar"), form=form)


class Lowering:
    """Flat rules and languages of one grammar."""

    lexer = "longest"

    def __init__(
        self,
        reader: LlguidanceReader | EbnfReader,
        text: RegexText,
        start: str,
        definitions: Mapping[str, Grammar],
        json_options: Mapping[str, Any],
        notes: list[str],
        nested: bool = False,
    ) -> None:
        """nested: it stands in another grammar, which finds no captures in it."""
        self.reader = reader
        self.nested = nested
        self._text = text
        self._start = start
        self._definitions = definitions
        self._json_options = json_options
        self.notes = notes
        self.terminals = Terminals(reader, text, self.may_name)
        self._rules: list[dict[str, Any]] = []
        self._parts: dict[str, Form] = {}
        self._helpers = self._repeated = self._instances = 0
        self._number: int | None = None  # the parameter of the rule that is written

    def is_terminal(self, name: str) -> bool:
        return name.lstrip("_")[:1].isupper()

    def may_name(self, name: str) -> bool:
        """Whether a lexeme may hold what has this name."""
        return self.is_terminal(name)

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
        if definition.parametric:
            raise self.reader.mistake(f"the start rule {self._start} has a parameter", definition.at)
        language, terminal = self.terminals.language, self.terminals.terminal
        ignored = [
            terminal(language(node), False, f"%ignore {i}") for i, node in enumerate(self._text.ignored)
        ]
        done, todo = set(), [(self._start, -1)]
        while todo:
            called = todo.pop()
            if called not in done:
                done.add(called)
                todo += self._rule(self._text.definitions[called[0]], called[1])
        if self._instances:
            self._rules = _productive(self._rules, self._start, {*self.terminals.entries, *self._parts})
        structure = {
            "terminals": list(self.terminals.entries.values()),
            "rules": self._rules,
            "ignore": ignored,
            "declare": list(self._parts),
            "start": self._start,
            "lexer": self.lexer,
            "starts_at_once": self._text.options.get("allow_initial_skip") is not True,
            "indenter": None,
            "parts": self._parts,
        }
        return {"grammar": structure}

    # ---- rules -------------------------------------------------------------------------------------------

    def _rule(self, definition: Definition, number: int) -> list[tuple[str, int]]:
        """Adds a rule for a number that it is given, -1: for none; the rules that it names."""
        used: list[tuple[str, int]] = []
        name, body = definition.name, definition.body
        self._number = None
        if definition.parametric:
            self._check_parametric(definition)
            self._instances += 1
            if self._instances > MOST_INSTANCES:
                message = f"rules with a parameter are written out more than {MOST_INSTANCES} times"
                raise self.reader.mistake(message, definition.at, LimitExceeded)
            self._number, name = number, f"{name}::{number}"
            if "capture" in definition.attributes:
                self.notes.append(f"left out: capture of the rule {name}")
        lexeme = self.lexeme(definition)
        if lexeme is not None:
            self._add(name, lexeme)
        elif self.is_terminal(name):
            self._add(name, [self._named(name, body)])
        else:
            self._add_all(name, body, used)
        return used

    def _check_parametric(self, definition: Definition) -> None:
        for key in definition.attributes:
            if key not in ("capture", "stop_capture"):
                raise self.reader.mistake(f"{key} is nothing for a rule with a parameter", definition.at)
        if not _needs(definition.body):
            message = f"the rule {definition.name} has a parameter, and nothing in it asks for it"
            raise self.reader.mistake(message, definition.at)

    def lexeme(self, definition: Definition) -> list[str] | None:
        """The symbols of a rule that is a lazy lexeme, or the text before one; None: it is neither."""
        attributes, body = definition.attributes, definition.body
        language, terminal = self.terminals.language, self.terminals.terminal
        if attributes.get("max_tokens", 1) == 0:
            return []
        if "max_tokens" in attributes:
            message = "max_tokens= counts tokens, which no text shows; count characters with {m,n}"
            raise self.reader.mistake(message, definition.at)
        left_out = ("stop_capture", "temperature", *(("capture",) if self.nested else ()))
        for key in left_out:
            if key in attributes:
                self.notes.append(f"left out: {key} of the rule {definition.name}, which changes no text")
        stop, suffix = attributes.get("stop"), attributes.get("suffix")
        if suffix is not None:
            whole = {"concat": [language(body), language(suffix)]}
            return [terminal(whole, True, definition.name)]
        if stop is not None and stop.values[:1] != ("",):
            return [self._stopped(definition.name, language(body), language(stop))]
        return [terminal(language(body), True, definition.name)] if attributes.get("lazy") else None

    def _stopped(self, name: str, body: Language, stop: Language) -> str:
        """The text before a stop, which is taken back where it was written: no stop is within the text, and
        every segmentation counts, since what follows may begin as the text goes on."""
        self.notes.append(f"left out: the stop of the rule {name}, which is not written")
        before = {"concat": [body, stop, {"any": True}]}
        self._parts[f"{name} (stopped)"] = {"language": {"and": [body, {"not": before}]}}
        return f"{name} (stopped)"

    def _named(self, name: str, node: RegexNode) -> str:
        return self.terminals.terminal(self.terminals.language(node), False, name)

    def _add(self, origin: str, expansion: list[str]) -> None:
        self._rules.append(
            {"origin": origin, "expansion": expansion, "priority": 0, "order": len(self._rules)}
        )

    def _add_all(self, origin: str, node: RegexNode, used: list[tuple[str, int]]) -> None:
        for part in node.values if node.kind == "or" else (node,):
            if part.kind == "if":
                part, condition = part.values
                if condition.needs:
                    self._has_number(part)
                if not condition.holds(self._number or 0):
                    continue
            self._add(origin, self._symbols(part, origin, used))

    def _has_number(self, node: RegexNode) -> None:
        if self._number is None:
            raise self.reader.mistake(
                "only a rule with a parameter (name::_) has a number to ask for", node.at
            )

    def _call(self, node: RegexNode, used: list[tuple[str, int]]) -> str:
        """A rule by its name, with the number that it is given."""
        name, parameter = node.values if node.kind == "call" else (node.values[0], None)
        definition = self._text.definitions.get(name)
        if definition is None:
            raise self.reader.mistake(f"the rule {name} is not defined", node.at)
        if definition.parametric != (parameter is not None):
            has, given = ("a", "none") if definition.parametric else ("no", "one")
            raise self.reader.mistake(f"the rule {name} has {has} parameter, and is given {given}", node.at)
        if parameter is None:
            used.append((name, -1))
            return str(name)
        if parameter.needs:
            self._has_number(node)
        number = parameter.of(self._number or 0)
        used.append((name, number))
        return f"{name}::{number}"

    def _helper(self, origin: str) -> str:
        self._helpers += 1
        return f"{origin.partition('.')[0]}.{self._helpers}"

    def _symbols(self, node: RegexNode, origin: str, used: list[tuple[str, int]]) -> list[str]:
        """Symbols of a part of a rule."""
        match node.kind:
            case "seq":
                return [symbol for part in node.values for symbol in self._symbols(part, origin, used)]
            case "or" | "if":
                name = self._helper(origin)
                self._add_all(name, node, used)
                return [name]
            case "repeat":
                return self._repeat(node, origin, used)
            case "name" | "call" if not self.is_terminal(node.values[0]):
                return [self._call(node, used)]
            case "special" | "reference" | "json" | "lark":
                return self._part(node)
            case "text" if node.values[0] == "":
                return []
            case "and":
                raise self.reader.mistake("& stands in terminals; name it in capitals (AB: A & B)", node.at)
        return [self._named(shown_as(node), node)]

    def _repeat(self, node: RegexNode, origin: str, used: list[tuple[str, int]]) -> list[str]:
        inner, least, most = node.values
        if (
            inner.kind == "special"
            and inner.values[0].startswith(("<[^", "<[*"))
            and most is None
            and least < 2
        ):
            return self._others(inner, least)
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
        return [*out, *tail]

    # ---- constraints of their own ------------------------------------------------------------------------

    def _part(self, node: RegexNode) -> list[str]:
        value = node.values[0]
        if node.kind == "special" and value.startswith("<["):
            return self._token_ids(node)
        name = shown_as(node)
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
            options = self._definitions, self._json_options, self.notes
            return Lowering(self.reader, value, "start", *options, nested=True).form()
        try:
            if node.kind == "json":
                return json_schema(value, **self._json_options).form
            grammar = self._definitions.get(value.removeprefix("@"))
            if grammar is None:
                raise InvalidGrammar(f"definitions has no grammar of the name {value.removeprefix('@')!r}")
            return forms.lowered(without_captures(grammar, "definitions"))
        except TokenformError as error:
            message = f"{shown_as(node)}: {error}".rstrip(".")
            raise self.reader.mistake(message, node.at, type(error)) from None

    def _token_ids(self, node: RegexNode) -> list[str]:
        """One of the tokens of these numbers, or one of all others."""
        value = node.values[0]
        self._parts[value] = {"but" if value[2] in "^*" else "special": self._ids(node)}
        return [value]

    def _others(self, node: RegexNode, least: int) -> list[str]:
        """Any tokens but these, again and again."""
        name = f"!{node.values[0]}"
        self._parts[name] = {"other": self._ids(node)}
        if least:
            return [name]
        helper = self._helper(self._start)
        self._add(helper, [])
        self._add(helper, [name])
        return [helper]

    def _ids(self, node: RegexNode) -> list[int | list[int]]:
        value = node.values[0]
        if not _TOKEN_IDS.fullmatch(value):
            raise self.reader.mistake(f"{value} is no list of token ids, as <[5]> or <[5,7-9]> is", node.at)
        ids: list[int | list[int]] = []
        for listed in value[2:-2].strip("^*").split(",") if value != "<[*]>" else []:
            first, _, last = listed.partition("-")
            low, high = int(first), int(last or first)
            if high < low or high >= 1 << 32:
                raise self.reader.mistake(f"{value} runs backwards, or has numbers of no token", node.at)
            ids.append(low if low == high else [low, high])
        return ids


def _needs(node: RegexNode) -> bool:
    """Whether a part of a rule asks for its parameter."""
    if node.kind == "call":
        return bool(node.values[1].needs)
    if node.kind == "if" and node.values[1].needs:
        return True
    return any(_needs(part) for part in node.values if isinstance(part, RegexNode))


def _productive(rules: list[dict[str, Any]], start: str, others: set[str]) -> list[dict[str, Any]]:
    """The rules without those that derive no text, as one whose conditions don't hold.

    Args:
        others: symbols that are no rules.
    """
    ways: Rules = {}
    for rule in rules:
        ways.setdefault(rule["origin"], []).append(tuple(rule["expansion"]))
    done = others | deriving(ways, others.__contains__)
    if start not in done:
        raise UnsatisfiableGrammar(f"The rule {start} derives no text: no conditions of its parts hold.")
    return [rule for rule in rules if done.issuperset(rule["expansion"])]
