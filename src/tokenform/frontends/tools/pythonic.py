"""Arguments as keywords of a Python call: as a tree, and read.

Purpose: the schema of each argument becomes the Python literals of its instances: single- or double-quoted
strings, True, False, None, lists, dictionaries, and numbers as JSON writes them (which Python reads alike).
Invariant: every text of the tree is a Python expression whose value satisfies the schema (but for the words
of JSON, where a format allows them).
Complexity: that of `notation.py`.
Source: the Python language reference, section 2 (literals); Meta's prompt formats.
Rejected: writing JSON and translating it (the model was trained on Python literals), and keeping length or
pattern over escaped text (a string with `pattern`, `format` or a length is written without escapes instead).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from keyword import iskeyword, kwlist
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.layout import PythonArguments
from tokenform.frontends.tools.members import Case
from tokenform.frontends.tools.notation import Members, Notation, Spot, named_by, root_of, texts, unknown_name
from tokenform.frontends.tools.order import in_order
from tokenform.frontends.tools.read_literals import ArgumentsReader
from tokenform.frontends.tools.read_values import fail, python_value
from tokenform.frontends.tools.shape import (
    LINE,
    SPACE,
    Choice,
    Json,
    Node,
    RawString,
    Regex,
    Repeat,
    Rule,
    Seq,
    Text,
    choice,
    sequence,
)
from tokenform.frontends.tools.source import WHITESPACE, Reading

# A character as itself, or an escape that Python and JSON both give one character for.
SINGLE = r"'([^'\\\x00-\x1f\x7f]|\\['\"\\nrt])*'"
DOUBLE = r'"([^"\\\x00-\x1f\x7f]|\\[' + "'" + r'"\\nrt])*"'
COMMA, COLON = sequence(Text(","), LINE), sequence(Text(":"), SPACE)
_STRING = Choice((Regex(SINGLE), Regex(DOUBLE)))
# An argument that is not declared.
_KEYWORD = rf"(?!(?:{'|'.join(kwlist)})\Z)[A-Za-z_][A-Za-z0-9_]{{0,63}}"
_SPELLED: dict[str, str | int | None] = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_NAME, _CALLED = re.compile(r"\w*"), re.compile(r"[\w.]*")
_PYTHON = {True: "True", False: "False", None: "None"}
_JSON = {True: "true", False: "false", None: "null"}


class Bracketed(Notation):
    """Lists in square brackets and members in braces, with commas and colons."""

    item_separator = COMMA

    def any(self, place: Node | None) -> Node:
        name = f"{self.scope}value"
        if name not in self.rules:
            self.rules[name] = Seq(())
            value, words = Rule(name), [self.constant(word, None) for word in (True, False, None)]
            pair = sequence(self.unknown([]), COLON, value)
            self.rules[name] = Choice(
                (
                    self.string({"type": "string"}, False, None),
                    *words,
                    Json({"type": "number"}),
                    self.array(Repeat(value, 0, None, COMMA), None),
                    sequence(Text("{"), Repeat(pair, 0, None, COMMA), Text("}")),
                )
            )
        return self.rule(name)

    def array(self, inside: Node, place: Node | None) -> Node:
        return sequence(Text("["), inside, Text("]"))

    def other(self, key: Node, schema: Any, spot: Spot) -> Node:
        return sequence(key, COLON, self.value(schema, spot._replace(place=None)))


class KeywordReader(ArgumentsReader):
    """Reads the keywords of a call up to its parenthesis, or to the next call where that is missing."""

    def arguments(self) -> Reading[None]:
        seen: set[str] = set()
        self.calls.fragment("{")
        yield from self.source.blank()
        end = self.source.mark()  # of the last argument
        try:
            while not (yield from self.source.matches(")")):
                if (yield from self._next_call(end)):
                    break
                yield from self._keyword(seen)
                self.source.release(end)
                end = self.source.mark()
                yield from self.source.blank()
                yield from self.source.accept(",")
                yield from self.source.blank()
        finally:
            self.source.release(end)
        self.calls.fragment("}")

    def _keyword(self, seen: set[str]) -> Reading[None]:
        """One argument: `key=value`."""
        if seen and self.source.before not in (",", *WHITESPACE):
            raise fail(self.source, "a call needs ',' or ')' here")
        name = yield from self.source.word(_NAME)
        between: list[str] = []
        self.key(name, seen, name in seen and self.place.member(name).declared, between.append)
        yield from self.calls.literal("=")
        yield from self.source.blank()
        self.calls.fragment("".join(between))
        yield from python_value(self.source, self.calls.fragment)

    def _next_call(self, end: int) -> Reading[bool]:
        """Whether the next call begins here, so that this one's parenthesis is missing: it ended at `end`."""
        mark = self.source.mark()
        yield from self.source.accept(",")
        yield from self.source.blank()
        called = yield from self.source.word(_CALLED)
        found = called in self.calls.tools and (yield from self.source.matches("("))
        self.source.back(end if found else mark)
        self.source.release(mark)
        self.calls.over = self.calls.whole = self.calls.whole or found
        return found


class Pythonic(Bracketed):
    """The literals of Python."""

    layout: PythonArguments
    reader = KeywordReader

    def arguments(self, schema: Any, owner: str, strict: bool) -> Node:
        """`key=value` pairs, comma-separated, as the order says."""
        return choice([self._keywords(case, owner) for case in self.cases(schema, owner, strict)])

    def _keywords(self, case: Case, owner: str) -> Node:
        written: list[tuple[Node, bool]] = []
        for member in case.members:
            if not member.key.isidentifier() or iskeyword(member.key):
                raise ToolError(
                    f"{owner}: {member.key!r} is no name for a Python keyword argument; rename it"
                )
            value = self.shared(member.schema, f"{owner}, argument {member.key!r}", None, None)
            written.append((sequence(Text(member.key + "="), value), member.required))
        said = [(named_by(_KEYWORD, key), value) for key, value in case.keyed]
        if not said and case.others is not False:
            said = [(unknown_name(_KEYWORD, case.names), case.others)]
        beside = f"{owner}, arguments that are not declared"
        others = [sequence(k, Text("="), self.value(v, Spot(beside, root_of(v)))) for k, v in said]
        return in_order(self.order, written, choice(others) if others else None, COMMA, bounds=case.bounds)

    def constant(self, value: Any, place: Node | None) -> Node:
        words = (_PYTHON, _JSON) if self.layout.json_words else (_PYTHON,)
        return texts([literal(value, quote, names) for names in words for quote in "'\""])

    def string(self, schema: Any, bounded: bool, place: Node | None) -> Node:
        if not bounded:
            return _STRING
        controls = tuple(map(chr, (*range(32), 127)))
        raws = [(quote, RawString(schema, (quote, "\\", *controls))) for quote in "'\""]
        return Choice(tuple(sequence(Text(quote), raw, Text(quote)) for quote, raw in raws))

    def number(self, schema: dict[str, Any], place: Node | None) -> Node:
        return Json(schema)

    def mapping(self, members: Members, place: Node | None) -> Node:
        written = [
            (sequence(self.constant(key, None), COLON, value), needed) for key, value, needed in members.pairs
        ]
        inside = in_order(self.order, written, members.more, COMMA, bounds=members.bounds)
        return sequence(Text("{"), inside, Text("}"))

    # A key that is written twice is read as Python reads it: the last value holds.

    def unknown(self, declared: list[str]) -> Node:
        return Choice(tuple(Regex(_key(quote, declared)) for quote in "'\""))

    def named(self, schema: Any) -> Node:
        return self.string(schema, True, None)


def _key(quote: str, declared: list[str]) -> str:
    """The pattern of a key in these quotes that is none of the declared, however those are spelled."""
    body = (SINGLE if quote == "'" else DOUBLE)[1:]
    if not declared:
        return quote + body
    short = {"\n": "n", "\r": "r", "\t": "t", "'": "'", '"': '"', "\\": "\\"}
    spelled = "|".join(
        "".join(
            f"(?:{re.escape(c)}|{re.escape(chr(92) + short[c])})" if c in short else re.escape(c) for c in key
        )
        for key in declared
    )
    return rf"{quote}(?!(?:{spelled}){quote}\Z){body}"


def literal(value: Any, quote: str = "'", words: Mapping[Any, str] = _PYTHON) -> str:
    """A value as a Python literal, with spaces as `repr` puts them."""
    if isinstance(value, str):
        return quote + value.translate(str.maketrans({**_SPELLED, quote: "\\" + quote})) + quote
    if isinstance(value, list):
        return "[" + ", ".join(literal(v, quote, words) for v in value) + "]"
    if isinstance(value, dict):
        pairs = (f"{literal(k, quote, words)}: {literal(v, quote, words)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    return words[value] if value is None or isinstance(value, bool) else repr(value)
