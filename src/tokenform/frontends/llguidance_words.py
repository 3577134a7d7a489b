"""The words of a grammar's text, one after the other: those of llguidance's dialect, or of another.

Invariant: a word keeps its place; what begins none is an `InvalidGrammar` with line and column.
Complexity: linear in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tokenform.errors import InvalidGrammar, InvalidRegex, LimitExceeded, TokenformError, UnsupportedRegex
from tokenform.frontends.lark_errors import error_at
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


@dataclass(frozen=True)
class Token:
    """A word of a text, and where it stands."""

    kind: str
    text: str
    at: int


class Words:
    """One text, how far it was read, and its next word.

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

    def mistake(self, message: str, at: int) -> InvalidGrammar:
        """The error for a place in the text."""
        line = self.text.count("\n", 0, at) + 1
        return error_at(message, self.text, line, at - self.text.rfind("\n", 0, at))

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

    def unexpected(self, what: str) -> InvalidGrammar:
        """The error for the next word, where something else has to stand."""
        word = self.next.text.strip() or ("the end" if self.next.kind == "end" else "the end of the line")
        return self.mistake(f"expected {what}, found {word}", self.next.at)

    def check_pattern(self, pattern: str, dialect: Literal["auto", "rust"], at: int) -> None:
        """Raises what is wrong with a pattern, with its place in the text."""
        try:
            regex(pattern, dialect=dialect)
        except (InvalidRegex, UnsupportedRegex) as error:
            placed = self.mistake(str(error).rstrip("."), at)
            raise type(error)(str(placed), line=placed.line, column=placed.column) from None
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
