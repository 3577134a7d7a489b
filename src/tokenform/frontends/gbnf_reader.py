"""llama.cpp's GBNF, read into a `GrammarStructure`.

Purpose: rules (`name ::= ...`), literals, character classes, `.`, groups, alternatives, `? * + {m} {m,}
{m,n}`, escapes (`\\n \\r \\t \\\\ \\" \\[ \\] \\xHH \\uHHHH \\UHHHHHHHH`), comments, rules over several
lines.
Invariant: the language is over characters: no lexer, nothing is ignored, so the structure asks for
`lexer="dynamic"`, where every segmentation counts, and each terminal has one length only.
Complexity: linear in the text plus the counts of `{m,n}`, bounded by `MAX_REPETITION`.
Source: `grammars/README.md` and `src/llama-grammar.cpp` of llama.cpp.  Wider in three points: underscores
in names, line breaks anywhere inside a rule, and left recursion.  Narrower in two: a rule defined twice
and an empty class are mistakes (llama.cpp takes the last rule, and reads `[]` as the empty text).  Tokens
by id (`<[1000]>`) aren't read.
Rejected: folding classes with a repetition into one regex terminal here; the engine folds regular parts of
every grammar, and a reader that does it too would be a second place for one rule.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NoReturn

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from tokenform.errors import InvalidGrammar, LimitExceeded
from tokenform.frontends.grammar_structure import (
    GrammarStructure,
    RuleEntry,
    TerminalEntry,
    escape_text,
    unproductive_cycles,
)
from tokenform.frontends.lark_errors import error_at

MAX_REPETITION = 20_000  # sum of all counts in {m,n}
MAX_NESTING = 200  # groups within groups

_SYNTAX = r"""
start: definition+
definition: HEAD alternatives
alternatives: sequence ("|" sequence)*
sequence: item*
item: atom (OPERATOR | COUNT)*
?atom: NAME | LITERAL | CLASS | ANY | "(" alternatives ")"

HEAD.2: /[A-Za-z0-9_-]+[ \t]*::=/
NAME: /[A-Za-z0-9_-]+/
LITERAL: /"(?:\\[\s\S]|[^"\\])*"/
CLASS: /\[(?:\\[\s\S]|[^\]\\])*\]/
ANY: "."
OPERATOR: /[?*+]/
COUNT: /\{[ \t]*[0-9]+[ \t]*(?:,[ \t]*[0-9]*[ \t]*)?\}/
COMMENT: /#[^\r\n]*/
SPACE: /[ \t\r\n]+/
%ignore COMMENT
%ignore SPACE
"""

_TOKEN_NAMES = {
    "HEAD": "a rule (name ::=)",
    "NAME": "a rule name",
    "LITERAL": 'a "literal"',
    "CLASS": "a [class]",
    "ANY": "'.'",
    "OPERATOR": "'?', '*' or '+'",
    "COUNT": "'{m,n}'",
    "VBAR": "'|'",
    "LPAR": "'('",
    "RPAR": "')'",
    "$END": "the end of the grammar",
}

_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([nrt\\\"\[\]]))|([^\\])", re.DOTALL
)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}


def read_gbnf(text: str, *, start: str = "root") -> GrammarStructure:
    """Reads a grammar in GBNF.

    Args:
        text: the grammar.
        start: name of the start rule.

    Raises:
        InvalidGrammar: a mistake, with `line`, `column`, the line itself and what was expected.
        LimitExceeded: repetition counts above `MAX_REPETITION` in sum, or groups nested deeper than
        `MAX_NESTING`.
    """
    tree = _parse(text)
    reader = _Reader(text)
    for definition in tree.children:
        assert isinstance(definition, Tree)
        reader.define(definition)
    return reader.finish(start)


def _parse(text: str) -> Tree[Token]:
    try:
        return _parser("basic").parse(text)
    except UnexpectedInput:
        pass
    try:
        return _parser("contextual").parse(text)
    except UnexpectedInput as error:
        raise _syntax_error(error, text) from None


@cache
def _parser(lexer: Literal["basic", "contextual"]) -> Lark:
    """Both read the same texts: the first builds one scanner instead of one for each state of the parser, the
    second knows what was expected where a text is wrong."""
    return Lark(_SYNTAX, parser="lalr", lexer=lexer)


class _Reader:
    """Collects the terminals and flat rules of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._terminals: dict[str, TerminalEntry] = {}
        self._rules: list[RuleEntry] = []
        self._heads: dict[str, Token] = {}
        self._uses: dict[str, Token] = {}
        self._helpers = 0
        self._repetitions = 0

    def define(self, definition: Tree[Token]) -> None:
        head, alternatives = definition.children
        assert isinstance(head, Token) and isinstance(alternatives, Tree)
        name = head.removesuffix("::=").strip()
        before = self._text[: head.start_pos].rpartition("\n")[2]
        if before.strip():
            self._fail(f"the rule '{name}' must begin on a line of its own", head)
        if name in self._heads:
            self._fail(f"the rule '{name}' is defined more than once", head)
        self._heads[name] = head
        self._add_alternatives(name, alternatives, 0)

    def finish(self, start: str) -> GrammarStructure:
        for name, token in self._uses.items():
            if name not in self._heads:
                self._fail(f"the rule '{name}' is used but not defined", token)
        if start not in self._heads:
            known = ", ".join(self._heads)
            raise InvalidGrammar(f"The start rule '{start}' is not defined; rules of the grammar: {known}.")
        for name in unproductive_cycles(self._reachable(start), self._terminals):
            visible = name.partition(".")[0]
            self._fail(
                f"the rule '{visible}' derives nothing: all of its alternatives need a rule that never ends",
                self._heads[visible],
            )
        rules = self._reachable(start)
        used = {symbol for rule in rules for symbol in rule["expansion"]}
        return GrammarStructure(
            terminals=[entry for name, entry in self._terminals.items() if name in used],
            rules=rules,
            ignore=[],
            declare=[],
            start=start,
            lexer="dynamic",
            indenter=None,
            schemas={},
        )

    def _reachable(self, start: str) -> list[RuleEntry]:
        by_origin: dict[str, list[RuleEntry]] = {}
        for rule in self._rules:
            by_origin.setdefault(rule["origin"], []).append(rule)
        seen = {start}
        pending = [start]
        while pending:
            for rule in by_origin[pending.pop()]:
                for symbol in rule["expansion"]:
                    if symbol in by_origin and symbol not in seen:
                        seen.add(symbol)
                        pending.append(symbol)
        return [rule for rule in self._rules if rule["origin"] in seen]

    def _add_alternatives(self, origin: str, alternatives: Tree[Token], depth: int) -> None:
        if depth > MAX_NESTING:
            raise LimitExceeded(
                f"Groups are nested deeper than {MAX_NESTING} in the rule '{origin}'; name some as rules."
            )
        expansions: dict[tuple[str, ...], list[str]] = {}  # each once
        for sequence in alternatives.children:
            assert isinstance(sequence, Tree)
            expansion: list[str] = []
            for item in sequence.children:
                assert isinstance(item, Tree)
                expansion += self._item(origin, item, depth)
            expansions.setdefault(tuple(expansion), expansion)
        self._add(origin, *expansions.values())

    def _item(self, origin: str, item: Tree[Token], depth: int) -> list[str]:
        atom, *operators = item.children
        symbols = self._atom(origin, atom, depth)
        for operator in operators:
            assert isinstance(operator, Token)
            least, most = self._bounds(operator)
            symbols = self._repeat(origin, symbols, least, most)
        return symbols

    def _atom(self, origin: str, atom: Token | Tree[Token], depth: int) -> list[str]:
        if isinstance(atom, Tree):
            name = self._helper(origin)
            self._add_alternatives(name, atom, depth + 1)
            return [name]
        if atom.type == "NAME":
            self._uses.setdefault(str(atom), atom)
            return [str(atom)]
        if atom.type == "LITERAL":
            literal = "".join(character for character, _ in self._characters(atom))
            return [self._terminal(str(atom), escape_text(literal), literal, "")] if literal else []
        if atom.type == "ANY":
            return [self._terminal(".", ".", None, "s")]
        return [self._terminal(str(atom), self._class_pattern(atom), None, "")]

    def _bounds(self, operator: Token) -> tuple[int, int | None]:
        if operator.type == "OPERATOR":
            return {"?": (0, 1), "*": (0, None), "+": (1, None)}[str(operator)]
        low, comma, high = operator.strip("{}").partition(",")
        least = int(low)
        most = (int(high) if high.strip() else None) if comma else least
        if most is not None and most < least:
            self._fail(f"the repetition {operator} has its bounds the wrong way round", operator)
        self._repetitions += max(least, most or 0)
        if self._repetitions > MAX_REPETITION:
            raise LimitExceeded(
                f"The repetitions of the grammar add up to more than {MAX_REPETITION} "
                f"(line {operator.line}: {operator}); "
                "use smaller bounds or '*'.",
                line=operator.line,
                column=operator.column,
            )
        return least, most

    def _repeat(self, origin: str, symbols: list[str], least: int, most: int | None) -> list[str]:
        """Symbols for `symbols{least,most}`; rules `tail` are unambiguous: each count has one derivation."""
        if not symbols:
            return []
        if most is None:
            loop = self._helper(origin)
            self._add(loop, symbols if least == 1 else [], [loop, *symbols])
            return [loop] if least < 2 else symbols * least + [loop]
        tail: list[str] = []
        for _ in range(most - least):
            name = self._helper(origin)
            self._add(name, [], symbols + tail)
            tail = [name]
        return symbols * least + tail

    def _add(self, origin: str, *expansions: list[str]) -> None:
        self._rules += [
            RuleEntry(origin=origin, expansion=expansion, priority=0, order=order)
            for order, expansion in enumerate(expansions)
        ]

    def _helper(self, origin: str) -> str:
        self._helpers += 1
        return f"{origin.partition('.')[0]}.{self._helpers}"  # no rule name of GBNF holds a dot

    def _terminal(self, name: str, pattern: str, literal: str | None, flags: str) -> str:
        self._terminals.setdefault(
            name,
            TerminalEntry(
                name=name,
                pattern=pattern,
                literal=literal,
                kind="re" if literal is None else "str",
                flags=flags,
                priority=0,
            ),
        )
        return name

    def _characters(self, token: Token, skip: int = 1) -> list[tuple[str, bool]]:
        """The characters between the first `skip` and the last one of the token, and: was it escaped?"""
        found: list[tuple[str, bool]] = []
        position, end = skip, len(token) - 1
        while position < end:
            match = _ESCAPE.match(token, position, end)
            if match is None:
                self._fail(f"unknown escape {token[position : position + 2]}", token, position)
            code = match.group(1) or match.group(2) or match.group(3)
            if code is not None and (int(code, 16) > 0x10FFFF or 0xD800 <= int(code, 16) <= 0xDFFF):
                self._fail(f"{match.group()} is not a Unicode character", token, position)
            simple = match.group(4)
            plain = _CONTROL.get(simple, simple) if simple else match.group(5)
            found.append((chr(int(code, 16)) if code else plain, match.group(5) is None))
            position = match.end()
        return found

    def _class_pattern(self, token: Token) -> str:
        negated = token.startswith("[^")
        characters = self._characters(token, 2 if negated else 1)
        if not characters:
            self._fail("the class is empty; use \"\" for the empty text and '.' for any character", token)
        parts: list[str] = []
        index = 0
        while index < len(characters):
            low = characters[index][0]
            if index + 2 < len(characters) and characters[index + 1] == ("-", False):
                high = characters[index + 2][0]
                if high < low:
                    self._fail(f"the range {low!r} to {high!r} in {token} is the wrong way round", token)
                parts.append(f"{escape_text(low)}-{escape_text(high)}")
                index += 3
            else:
                parts.append(escape_text(low))
                index += 1
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def _fail(self, message: str, token: Token, offset: int = 0) -> NoReturn:
        before = token[:offset]
        line = (token.line or 1) + before.count("\n")
        column = (token.column or 1) + offset if "\n" not in before else len(before.rpartition("\n")[2]) + 1
        raise error_at(message, self._text, line, column)


def _syntax_error(error: UnexpectedInput, text: str) -> InvalidGrammar:
    lines = text.splitlines() or [""]
    line, column = error.line, error.column
    if isinstance(error, UnexpectedCharacters):
        message, expected = f"unexpected character {error.char!r}", error.allowed or set()
    elif isinstance(error, UnexpectedToken):
        shown = "the end of the grammar" if error.token.type == "$END" else repr(str(error.token))
        message, expected = f"unexpected {shown}", error.accepts or error.expected
    else:
        assert isinstance(error, UnexpectedEOF)
        message, expected = "unexpected end of the grammar", set(error.expected)
    if line < 1 or line > len(lines):
        line, column = len(lines), len(lines[-1]) + 1
    wanted = " or ".join(sorted({_TOKEN_NAMES.get(name, name) for name in expected}))
    return error_at(f"{message}; expected {wanted}" if wanted else message, text, line, column)
