"""The words of a grammar's text, and the tree that they are read into: llguidance's dialect, or another.

Invariant: a word keeps its place; what begins none is an `InvalidGrammar` with line and column.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from tokenform.errors import InvalidGrammar, InvalidRegex, LimitExceeded, TokenformError, UnsupportedRegex
from tokenform.frontends.lark_errors import error_at, place_of
from tokenform.frontends.patterns import regex

MOST_NESTED = 100  # groups and grammars within each other

_TOKENS = re.compile(
    r"""(?P<skip>(?:\#|//)[^\n]*|[ \t\r\f]+|\\\n)
    |(?P<newline>\n\s*)
    |(?P<string>"(?:\\.|[^"\\\n])*"i?)
    |(?P<regex>/(?:\\.|[^/\\\n])+/[a-z]*)
    |(?P<special><[^<>\s]+>)
    |(?P<keyword>%[a-z]+)
    |(?P<name>[!?_]*[A-Za-z][A-Za-z0-9_\-]*)
    |(?P<self>_)
    |(?P<reference>@[A-Za-z0-9_\-]+)
    |(?P<number>0[xX][0-9a-fA-F]+|[+-]?\d+(?:\.(?!\.)\d*)?(?:[eE][+-]?\d+)?)
    |(?P<mark>->|::|\.\.|[:,.()\[\]{}~|=&+*?])""",
    re.VERBOSE,
)
TIMES = {"?": (0, 1), "*": (0, None), "+": (1, None)}
"""Least and most of the repetitions that have a sign."""


@dataclass(frozen=True)
class Token:
    """A word of a text, and where it stands."""

    kind: str
    text: str
    at: int


@dataclass(frozen=True)
class RegexNode:
    """A part of an expansion.

    kind: "or", "and", "seq" (values: nodes), "repeat" (node, least, most or None), "not" (node), "text" (str,
    flags), "regex" (pattern, flags), "range" (first, last), "name", "special", "reference", "json",
    "structured" (JSON text), "lark" (a `RegexText`), "call" (name, `Parameter`), "if" (node, `PartTest`),
    "language" (a language).
    """

    kind: str
    values: tuple[Any, ...]
    at: int


@dataclass
class Definition:
    """A rule or a terminal."""

    name: str
    body: RegexNode
    at: int
    attributes: dict[str, Any] = field(default_factory=dict)
    parametric: bool = False


@dataclass
class RegexText:
    """A whole grammar; `imports`: names by those in Lark's `common`."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    ignored: list[RegexNode] = field(default_factory=list)
    imports: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


class Words(ABC):
    """One text, how far it was read, and its next word; what dialects differ in is told by their readers.

    Attributes:
        words: the words of the dialect, by kinds.
    """

    words = _TOKENS

    def __init__(self, text: str) -> None:
        self.text = text
        self._at = 0
        self._depth = 0
        self.next = Token("end", "", 0)
        self.advance()

    def mistake(self, message: str, at: int, kind: type[TokenformError] = InvalidGrammar) -> TokenformError:
        """The error for a place in the text."""
        return error_at(message, self.text, *place_of(self.text, at), kind)

    def advance(self) -> Token:
        """Takes the next token."""
        token = self.next
        while True:
            at = self._at
            if at >= len(self.text):
                self.next = Token("end", "", at)
                return token
            found = self.words.match(self.text, at)
            if found is None:
                raise self.mistake(f"{self.text[at]!r} begins nothing, or is not closed", at)
            self._at = found.end()
            if found.lastgroup != "skip":
                self.next = Token(str(found.lastgroup), found.group(), at)
                return token

    def has(self, text: str) -> bool:
        """Whether that mark or keyword is next."""
        return self.next.text == text and self.next.kind in ("mark", "keyword", "self")

    def take(self, text: str) -> bool:
        """Takes it, where it is next."""
        found = self.has(text)
        if found:
            self.advance()
        return found

    def expect(self, what: str) -> Token:
        """Takes a token of that kind or text; raises where another is next."""
        if self.next.kind == what or self.has(what):
            return self.advance()
        raise self.unexpected(what)

    def unexpected(self, what: str) -> TokenformError:
        """The error for the next word, where something else has to stand."""
        word = self.next.text.strip() or ("the end" if self.next.kind == "end" else "the end of the line")
        return self.mistake(f"expected {what}, found {word}", self.next.at)

    def check_pattern(self, pattern: str, dialect: Literal["auto", "rust"], at: int) -> None:
        """Raises what is wrong with a pattern, with its place in the text."""
        try:
            regex(pattern, dialect=dialect)
        except (InvalidRegex, UnsupportedRegex) as error:
            raise self.mistake(str(error).rstrip("."), at, type(error)) from None
        except TokenformError:
            pass  # its grammar says so

    def enter(self) -> None:
        """Into a group."""
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise LimitExceeded(f"The grammar nests deeper than {MOST_NESTED}; name inner parts as rules.")

    def leave(self) -> None:
        """Out of a group."""
        self._depth -= 1

    # ---- expansions --------------------------------------------------------------------------------------

    def alternatives(self) -> RegexNode:
        """One sequence or more, with bars between them."""
        self.enter()
        node = self.several("or", self.alternative, self.bar)
        self.leave()
        return node

    def several(self, kind: str, part: Callable[[], RegexNode], more: Callable[[], bool]) -> RegexNode:
        """A part and those that follow as long as there are more: as it is, or as a node of them."""
        at, parts = self.next.at, [part()]
        while more():
            parts.append(part())
        return parts[0] if len(parts) == 1 else RegexNode(kind, tuple(parts), at)

    def alternative(self) -> RegexNode:
        """What stands between two bars."""
        return self.sequence()

    def bar(self) -> bool:
        """Steps over a bar, if one is next."""
        return self.take("|")

    def sequence(self) -> RegexNode:
        """Parts one after the other, or none."""
        at, parts = self.next.at, []
        while not self.ends():
            parts.append(self.repeated())
        return parts[0] if len(parts) == 1 else RegexNode("seq", tuple(parts), at)

    @abstractmethod
    def ends(self) -> bool:
        """Whether what is next ends a sequence."""

    @abstractmethod
    def repeated(self) -> RegexNode:
        """A part, with its repetitions."""
