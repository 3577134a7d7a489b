"""Mistakes in a Lark grammar, told with their place.

Purpose: Lark's own errors, of five kinds and mostly without a place, become `InvalidGrammar` with 1-based
line and column, the line itself, a caret, and what was expected.
Invariant: only reads the text; the place is that of the mistake for syntax, and of the definition (or, for
a name that has none, the first use) of the named symbol for meaning.
Rejected: showing Lark's messages as they are; they name tokens of its own grammar (`_NL_OR`), and lack
places.
"""

from __future__ import annotations

import re
from typing import Any, cast

from lark import Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError
from lark.load_grammar import _error_repr, _get_parser

from tokenform.errors import InvalidGrammar, LimitExceeded, TokenformError

# The parts of a Lark text in which neither keywords nor names are looked for: comments, strings, regexes.
# What is no escape is taken in one go: `re` keeps a place to go back to for each turn of a loop, 200 bytes.
SKIPPED = r'//[^\n]*|"[^"\\\n]*(?:\\.[^"\\\n]*)*"i?|/(?!/)[^/\\\n]*(?:\\.[^/\\\n]*)*/[imslux]*'
_NAME = re.compile(
    rf"{SKIPPED}|(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<defines>(?:\{{[^}}\n]*\}})?(?:\.-?\d+)?[ \t]*:)?"
)

# Readable names of the tokens of Lark's grammar language, for "expected ...".
_TOKEN_NAMES = {
    "RULE": "a rule name",
    "TERMINAL": "a terminal name",
    "STRING": "a string",
    "REGEXP": "a /regex/",
    "NUMBER": "a number",
    "OP": "'?', '*' or '+'",
    "TILDE": "'~'",
    "RULE_MODIFIERS": "'?' or '!'",
    "_COLON": "':'",
    "_COMMA": "','",
    "_DOT": "'.'",
    "_DOTDOT": "'..'",
    "_OR": "'|'",
    "_NL_OR": "a line that begins with '|'",
    "_NL": "the end of the line",
    "_LPAR": "'('",
    "_RPAR": "')'",
    "_LBRA": "'['",
    "_RBRA": "']'",
    "_LBRACE": "'{'",
    "_RBRACE": "'}'",
    "_TO": "'->'",
    "_IGNORE": "'%ignore'",
    "_IMPORT": "'%import'",
    "_DECLARE": "'%declare'",
    "_OVERRIDE": "'%override'",
    "_EXTEND": "'%extend'",
    "$END": "the end of the grammar",
}

_SHOWN = 160  # characters of a line in a message

# Where Lark's messages hold the name that they are about, most telling first.
_NAMED = (
    re.compile(r"\('\w+'\) in (\w+)"),
    re.compile(r"'([^']+)'"),
    re.compile(r"\bnot defined: (\w+)"),
    re.compile(r"\bused for (\w+)"),
    re.compile(r"\b[Tt]erminal (\w+)"),
    re.compile(r"\bin (?:terminal|template|rule) (\w+)"),
    re.compile(r"\((\w+)"),
)

# Lark's words for alternatives that are equal once the optional parts of a rule are written out.
_TWICE = re.compile(r"Rules defined twice:\s*\* <(\w+) : ([^\n]*)>")

# What to do about mistakes that come from other dialects, by what stands on the line before and at the place.
_HINTS = (
    (re.compile(r"%regex\b"), "%regex is not part of Lark's language; write a /regex/"),
    (re.compile(r"%llguidance\b"), "%llguidance is not part of Lark's language; leave the line out"),
    (re.compile(r"(?<=[\w\"/)\]])\{[ \t]*\d"), "a repetition is written with a tilde: x ~ 2, or x ~ 2..3"),
    (re.compile(r"::="), "this looks like GBNF; read it with tf.gbnf"),
    (
        re.compile(r"<\|?\w"),
        "special tokens come by name: definitions={'NAME': tf.combinators.special_token('<...>')}",
    ),
    (re.compile(r"\[[^\]\"/]-"), "a class of characters is written as a regex: /[a-z]/"),
)


def error_at(
    message: str, text: str, line: int, column: int, kind: type[TokenformError] = InvalidGrammar
) -> TokenformError:
    """The error for a place; `line` and `column` are 1-based."""
    lines = text.splitlines() or [""]
    first = max(column - 1 - _SHOWN // 2, 0)  # of a long line, what stands around the place
    shown = lines[min(line, len(lines)) - 1][first : first + _SHOWN]
    pointer = " " * max(column - 1 - first, 0) + "^"
    return kind(f"Line {line}, column {column}: {message}.\n{shown}\n{pointer}", line=line, column=column)


def place_of(text: str, position: int) -> tuple[int, int]:
    """Line and column of a position, both 1-based."""
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)


def foreign_error(error: Exception, plain: str, text: str) -> TokenformError:
    """What Lark raises beside its own errors, told as a mistake at the nearest place that is known."""
    about: Any = None
    while isinstance(error, VisitError):
        about = error.obj if _first_token(error.obj) is not None else about
        error = error.orig_exc
    if isinstance(error, TokenformError):
        return error
    if isinstance(error, UnexpectedInput):
        return syntax_error(plain, text)
    if isinstance(error, OverflowError):
        return _in_limit(text)
    if isinstance(error, (TypeError, AttributeError, IndexError)) and _first_error(plain):
        return syntax_error(plain, text)  # Lark's own report failed
    if isinstance(error, AssertionError) and (name := _holder_of_declared(plain)):
        return holds_declared(name, text)
    message = "Lark can't read this"
    if isinstance(about, Tree) and about.data == "range":
        message = 'a range goes from one character to another, as in "a".."z"'
    elif declared := re.search(r"^[ \t]*%declare\b[^\n]*?\b([a-z]\w*)", text, re.MULTILINE):
        message = f"%declare names terminals, in capitals; {declared.group(1)!r} is a rule"
        return error_at(message, text, *place_of(text, declared.start(1)))
    elif str(error).strip():
        message += f" ({str(error).strip().splitlines()[0].rstrip('.')})"
    token = _first_token(about)
    if token is None:
        return InvalidGrammar(f"{message[:1].upper()}{message[1:]}; simplify the grammar.")
    return error_at(message, text, token.line or 1, token.column or 1)


def _in_limit(text: str) -> TokenformError:
    """A count of a repetition beyond what a pattern may say."""
    found = re.search(r"\{\d{6,}|\d{10,}", text)
    message = "a repetition that counts so far is beyond what a pattern may say"
    if found is None:
        return LimitExceeded(f"{message}.")
    return error_at(message, text, *place_of(text, found.start()), LimitExceeded)


def _first_token(tree: Any) -> Token | None:
    if isinstance(tree, Token):
        return tree if tree.line is not None else None
    if isinstance(tree, Tree):
        tokens = (t for t in tree.scan_values(lambda v: isinstance(v, Token)) if t.line is not None)
        return next(tokens, None)
    return None


def _first_error(plain: str) -> tuple[UnexpectedInput, str] | None:
    """Lark's first complaint, with its explanation.

    Not by `find_grammar_errors`: it goes on after the first, and copies what was read so far for each.
    """
    try:
        _get_parser().parse(plain + "\n", "start")
    except UnexpectedInput as error:
        try:
            return error, _error_repr(error)
        except TypeError:  # an explanation of Lark's that is a mistake itself
            shown = getattr(error, "token", None)
            return error, f"unexpected {str(shown)!r}" if shown else "unexpected end"
    return None


def holds_declared(name: str, text: str) -> TokenformError:
    """A terminal that names a declared one, or a schema."""
    return semantic_error(
        f"The terminal {name} holds %json or a declared terminal, which is a grammar of its own: put it into "
        "a rule (a name in lower case)",
        text,
        name,
    )


def _holder_of_declared(plain: str) -> str | None:
    """The first terminal whose line names a declared one."""
    declared = re.findall(r"^[ \t]*%declare\b([^\n]*)", plain, re.MULTILINE)
    names = "|".join(re.escape(name) for line in declared for name in line.split())
    found = re.search(rf"^[ \t]*(_?[A-Z]\w*)[^\n:]*:[^\n]*\b(?:{names})\b", plain, re.MULTILINE)
    return found.group(1) if found and names else None


def syntax_error(plain: str, text: str) -> TokenformError:
    """The first mistake in syntax; plain: what Lark read, text: what the caller wrote (same lines)."""
    lines = text.splitlines() or [""]
    first = _first_error(plain)
    line, column = (first[0].line, first[0].column) if first else (None, None)
    ended = first is None or getattr(getattr(first[0], "token", None), "type", "") == "$END"
    if ended or not isinstance(line, int) or line < 1 or line > len(lines):
        return error_at("the grammar ends before this rule does", text, len(lines), len(lines[-1]) + 1)
    assert first is not None
    error, explanation = first
    if isinstance(error, UnexpectedCharacters):
        expected, explanation = error.allowed or set(), f"unexpected character {error.char!r}"
    else:
        token = cast(UnexpectedToken, error)
        expected = set(token.accepts or token.expected or ())
        explanation = explanation.split(". Expected one of")[0]
    message = re.sub(r"'(?:\\n|\\r)+'", "end of line", explanation.rstrip("."))
    message = message[:1].lower() + message[1:]
    expected_names = " or ".join(sorted({_TOKEN_NAMES.get(name, name) for name in expected}))
    shown = lines[line - 1]
    if hint := next((way for pattern, way in _HINTS if pattern.search(shown)), None):
        return error_at(f"{message}: {hint}", text, line, column or 1)
    return error_at(
        f"{message}; expected {expected_names}" if expected_names else message, text, line, column or 1
    )


def semantic_error(
    message: str, text: str, name: str | None = None, kind: type[TokenformError] = InvalidGrammar
) -> TokenformError:
    """A mistake in meaning; the place is that of `name`, or of the name that the message gives."""
    first = message.strip().splitlines()[0].rstrip(".:!")
    if twice := _TWICE.match(message):
        name, same = twice.groups()
        first = (
            f"The rule {name!r} has the alternative {same!r} more than once, by optional parts that are "
            "there or not; write it once"
        )
    place = (
        _find_directive(text, first)
        or _find_name(text, name or _named_in(first), last="more than once" in first)
        or _find_quoted(text, name, first)
    )
    first = re.sub(r"NonTerminal\('(\w+)'\)", r"the rule \1", first)
    first = re.sub(r"\b__IGNORE_\d+", "what %ignore names", first)
    if place is None:
        return kind(f"{first}.")
    return error_at(first, text, *place, kind)


def _named_in(message: str) -> str | None:
    for pattern in _NAMED:
        if found := pattern.search(message):
            return found.group(1)
    return None


def _find_name(text: str, name: str | None, *, last: bool) -> tuple[int, int] | None:
    definitions: list[int] = []
    uses: list[int] = []
    for match in _NAME.finditer(text):
        if name and match.group("name") == name:
            (definitions if match.group("defines") else uses).append(match.start())
    places = definitions or uses
    return place_of(text, places[-1 if last else 0]) if places else None


def _find_directive(text: str, message: str) -> tuple[int, int] | None:
    """The place of the `%extend`, `%override` or `%ignore` that a message is about, or of a stray `->`."""
    if found := re.search(r"\b__IGNORE_(\d+)", message):
        # a name alone is kept as it is, but counted
        directives = list(re.finditer(r"^[ \t]*%ignore\b", text, re.MULTILINE))
        number = int(found.group(1))
        return place_of(text, directives[number].start()) if number < len(directives) else None
    if "Aliasing not allowed in terminals" in message:
        stray = re.search(
            r"^[ \t]*(?:%ignore\b|_?[A-Z]\w*(?:\.-?\d+)?[ \t]*:)[^\n]*?(->)", text, re.MULTILINE
        )
        return place_of(text, stray.start(1)) if stray else None
    if named := re.search(
        r"(?:extend|override).*?(?:\b(?:rule|terminal)|parameters:) (\w+)(?: as|$)", message
    ):
        directive = re.search(rf"%(?:extend|override)[ \t]+[?!]*({named.group(1)})\b", text)
        return place_of(text, directive.start(1)) if directive else None
    return None


def _find_quoted(text: str, name: str | None, message: str) -> tuple[int, int] | None:
    """The place of a piece of text: an unnamed terminal, the bounds of a repetition, the empty string."""
    bounds = re.search(r"\((-?\d+)\.\.(-?\d+)", message)
    span = re.fullmatch(r"\[(\\?.)-(\\?.)\]", name or "")
    pieces = [re.escape(name)] if name and not span else []
    if span:
        pieces.append(rf'"{re.escape(span.group(1))}"[ \t]*\.\.[ \t]*"{re.escape(span.group(2))}"')
    if bounds:
        pieces.append(rf"~[ \t]*{bounds.group(1)}[ \t]*\.\.[ \t]*{bounds.group(2)}")
    if '("")' in message:
        pieces.append(r'(?<![\w\\"])""')
    for piece in pieces:
        if found := re.search(piece, text):
            return place_of(text, found.start())
    return None
