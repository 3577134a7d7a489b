"""llguidance's dialect of Lark's language, read into a tree.

Purpose: the text of a grammar as llguidance reads it: `&` and `~` between terminals, `{m,n}`, `<|token|>`,
`<[ids]>`, `%json`, `%regex`, nested `%lark`, `@name`, attributes in brackets, names with `-`.
Invariant: a mistake is an `InvalidGrammar` with line and column; what is read keeps its place.
Complexity: linear in the text.
Source: docs/syntax.md of guidance-ai/llguidance.  Wider in one point: a line may break inside parentheses.
Rejected: rewriting it as Lark's own language (its reader knows neither tokens nor `&`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from tokenform.errors import InvalidGrammar, LimitExceeded
from tokenform.frontends.json_text import raw_json
from tokenform.frontends.lark_errors import SKIPPED, error_at

MOST_NESTED = 100  # groups and grammars within each other

_TOKENS = re.compile(
    r"""(?P<skip>(?:\#|//)[^\n]*|[ \t\r\f]+|\\\n)
    |(?P<newline>\n\s*)
    |(?P<string>"(?:\\.|[^"\\\n])*"i?)
    |(?P<regex>/(?:\\.|[^/\\\n])+/[a-z]*)
    |(?P<special><[^<>\s]+>)
    |(?P<keyword>%[a-z]+)
    |(?P<name>[!?_]*[A-Za-z][A-Za-z0-9_\-]*)
    |(?P<reference>@[A-Za-z0-9_\-]+)
    |(?P<number>[+-]?\d+(?:\.(?!\.)\d*)?(?:[eE][+-]?\d+)?)
    |(?P<mark>->|\.\.|[:,.()\[\]{}~|=&+*?])""",
    re.VERBOSE,
)
_SIGN = re.compile(
    rf"""{SKIPPED}|\#[^\n]*
    |(?P<sign>%(?:llguidance|regex|lark)\b|<[^<>\s]+>|@[A-Za-z0-9_\-]+|&
    |~[ \t]*[/"(A-Za-z~]|(?<=[\w")/\]])\{{[ ]*[\d,]
    |^[ \t]*[!?_]*[a-z][\w\-]*\[[^\]\n]*\][ \t]*:|^[ \t]*[!?_]*[A-Za-z]\w*-[\w\-]*[ \t]*:)""",
    re.VERBOSE | re.MULTILINE,
)
_JSON = re.compile(r"%json\s*(?=\{)")


def is_llguidance(text: str) -> bool:
    """Whether the text has something that llguidance reads and Lark does not."""
    plain = _without_schemas(text)
    return any(found.lastgroup == "sign" for found in _SIGN.finditer(plain))


def _without_schemas(text: str) -> str:
    pieces, at = [], 0
    while found := _JSON.search(text, at):
        pieces.append(text[at : found.start()])
        try:
            at = raw_json(text, found.end(), kind=InvalidGrammar)
        except (InvalidGrammar, LimitExceeded):
            at = found.end()
    return "".join([*pieces, text[at:]])


@dataclass(frozen=True)
class RegexNode:
    """A part of an expansion.

    kind: "or", "and", "seq" (values: nodes), "repeat" (node, least, most or None), "not" (node), "text" (str,
    flags), "regex" (pattern, flags), "range" (first, last), "name", "special", "reference", "json",
    "structured" (JSON text), "lark" (a `Text`).
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


@dataclass
class RegexText:
    """A whole grammar; `imports`: names by those in Lark's `common`."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    ignored: list[RegexNode] = field(default_factory=list)
    imports: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


class LlguidanceReader:
    """One text and how far it was read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._at = 0
        self._depth = 0
        self._next = _Token("end", "", 0)
        self._advance()

    def mistake(self, message: str, at: int) -> InvalidGrammar:
        """The error for a place in the text."""
        line = self.text.count("\n", 0, at) + 1
        return error_at(message, self.text, line, at - self.text.rfind("\n", 0, at))

    def _advance(self) -> _Token:
        token = self._next
        while True:
            at = self._at
            if at >= len(self.text):
                self._next = _Token("end", "", at)
                return token
            found = _TOKENS.match(self.text, at)
            if found is None:
                raise self.mistake(f"{self.text[at]!r} begins nothing", at)
            self._at = found.end()
            if found.lastgroup != "skip":
                self._next = _Token(str(found.lastgroup), found.group(), at)
                return token

    def _has(self, text: str) -> bool:
        return self._next.text == text and self._next.kind in ("mark", "keyword")

    def _take(self, text: str) -> bool:
        found = self._has(text)
        if found:
            self._advance()
        return found

    def _expect(self, what: str) -> _Token:
        if self._next.kind == what or self._has(what):
            return self._advance()
        shown = self._next.text.strip() or "the end of the line"
        raise self.mistake(f"expected {what}, found {shown}", self._next.at)

    def _skip_lines(self) -> None:
        while self._next.kind == "newline":
            self._advance()

    def grammar(self, closed: bool = False) -> RegexText:
        """A grammar up to the end of the text, or up to `}`."""
        self._enter()
        out = RegexText()
        self._skip_lines()
        while self._next.kind != "end" and not (closed and self._has("}")):
            if self._next.kind == "name":
                self._define(out)
            else:
                self._statement(out)
            if self._next.kind not in ("newline", "end") and not (closed and self._has("}")):
                self._expect("newline")
            self._skip_lines()
        self._depth -= 1
        return out

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise LimitExceeded(f"The grammar nests deeper than {MOST_NESTED}; name inner parts as rules.")

    def _define(self, out: RegexText) -> None:
        token = self._advance()
        name = token.text.lstrip("!?")
        if self._take("{"):
            raise self.mistake("parametric rules and templates are not read", token.at)
        if self._take("."):
            self._expect("number")
            raise self.mistake("priorities are nothing in llguidance's dialect", token.at)
        attributes = self._attributes() if self._has("[") else {}
        self._expect(":")
        if name in out.definitions:
            raise self.mistake(f"{name} is defined more than once", token.at)
        out.definitions[name] = Definition(name, self._alternatives(), token.at, attributes)

    def _attributes(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        self._expect("[")
        while not self._has("]"):
            key = self._expect("name")
            if key.text in ("lazy", "capture") and not self._has("="):
                out[key.text] = True
            elif key.text in ("stop", "suffix", "capture", "stop_capture", "max_tokens", "temperature"):
                self._expect("=")
                number = key.text in ("max_tokens", "temperature")
                out[key.text] = float(self._expect("number").text) if number else self._value()
            else:
                raise self.mistake(f"there is no attribute {key.text}", key.at)
            if not self._take(","):
                break
        self._expect("]")
        return out

    def _statement(self, out: RegexText) -> None:
        token = self._expect("keyword")
        if token.text == "%ignore":
            out.ignored.append(self._alternatives())
        elif token.text == "%llguidance":
            value = self._json(token)
            options = json.loads(value)
            if not isinstance(options, dict):
                raise self.mistake("%llguidance needs an object", token.at)
            out.options.update(options)
        elif token.text == "%import":
            self._import(out)
        else:
            raise self.mistake(f"{token.text} is nothing in llguidance's dialect", token.at)

    def _import(self, out: RegexText) -> None:
        path = [self._expect("name")]
        while self._take("."):
            if self._has("("):
                break
            path.append(self._expect("name"))
        if path[0].text != "common":
            raise self.mistake("only `common` is imported from", path[0].at)
        if self._take("("):
            while not self._take(")"):
                name = self._expect("name").text
                out.imports[name] = name
                self._take(",")
            return
        name = path[-1].text
        out.imports[self._expect("name").text if self._take("->") else name] = name

    def _alternatives(self) -> RegexNode:
        self._enter()
        at = self._next.at
        parts = [self._conjunction()]
        while self._bar():
            parts.append(self._conjunction())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else RegexNode("or", tuple(parts), at)

    def _bar(self) -> bool:
        """Steps over `|`, also at the beginning of the next line."""
        if self._next.kind == "newline":
            at, token = self._at, self._next
            self._skip_lines()
            if not self._has("|"):
                self._at, self._next = at, token
                return False
        return self._take("|")

    def _conjunction(self) -> RegexNode:
        at = self._next.at
        parts = [self._sequence()]
        while self._take("&"):
            parts.append(self._sequence())
        if self._take("->"):
            self._expect("name")
        return parts[0] if len(parts) == 1 else RegexNode("and", tuple(parts), at)

    def _sequence(self) -> RegexNode:
        at, parts = self._next.at, []
        while self._next.kind not in ("newline", "end") and not any(
            map(self._has, ("|", "&", "->", ")", "]", "}"))
        ):
            parts.append(self._repeated())
        return parts[0] if len(parts) == 1 else RegexNode("seq", tuple(parts), at)

    def _repeated(self) -> RegexNode:
        node = self._atom()
        while self._next.kind == "mark" and self._next.text in ("?", "*", "+", "~", "{"):
            operator = self._next
            if operator.text == "~" and not re.match(r"\s*[+-]?\d", self.text[self._at :]):
                break
            self._advance()
            least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(operator.text, (0, None))
            if operator.text == "~":
                least = most = self._count()
                if self._take(".."):
                    most = self._count()
            elif operator.text == "{":
                least = 0 if self._has(",") else self._count()
                most = least
                if self._take(","):
                    most = None if self._has("}") else self._count()
                self._expect("}")
            if least < 0 or (most is not None and most < least):
                raise self.mistake("the counts of the repetition are negative or run backwards", operator.at)
            node = RegexNode("repeat", (node, least, most), operator.at)
        return node

    def _count(self) -> int:
        token = self._expect("number")
        if not re.fullmatch(r"[+-]?\d{1,9}", token.text):
            raise self.mistake("expected a whole number of at most 9 digits", token.at)
        return int(token.text)

    def _atom(self) -> RegexNode:
        at = self._next.at
        if self._take("~"):
            self._enter()
            node = RegexNode("not", (self._atom(),), at)
            self._depth -= 1
            return node
        for opening, closing in (("(", ")"), ("[", "]")):
            if self._take(opening):
                self._skip_lines()
                inner = self._alternatives()
                self._skip_lines()
                self._expect(closing)
                return inner if opening == "(" else RegexNode("repeat", (inner, 0, 1), at)
        return self._value()

    def _value(self) -> RegexNode:
        token = self._advance()
        at = token.at
        if token.kind == "string":
            return self._string(token)
        if token.kind == "regex":
            pattern, _, flags = token.text[1:].rpartition("/")
            if set(flags) - set("imsux"):
                raise self.mistake("flags of a regex are i, m, s, u and x", at)
            return RegexNode("regex", (pattern.replace("\\/", "/"), flags), at)
        if token.kind in ("name", "special", "reference"):
            if token.kind == "name" and self._has("{") and not re.match(r"\s*[\d,+-]", self.text[self._at :]):
                raise self.mistake("parametric rules and templates are not read", at)
            return RegexNode(token.kind, (token.text,), at)
        if token.text in ("%json", "%regex"):
            return RegexNode("json" if token.text == "%json" else "structured", (self._json(token),), at)
        if token.text == "%lark":
            self._expect("{")
            inner = self.grammar(closed=True)
            self._expect("}")
            return RegexNode("lark", (inner,), at)
        raise self.mistake(f"expected a value, found {token.text.strip() or 'the end of the line'}", at)

    def _string(self, token: _Token) -> RegexNode:
        flags = "i" if token.text.endswith("i") else ""
        value = self._text(token, token.text.removesuffix("i"))
        if not self._take(".."):
            return RegexNode("text", (value, flags), token.at)
        last = self._text(self._next, self._expect("string").text)
        if len(value) != 1 or len(last) != 1 or value > last or flags:
            raise self.mistake("a range needs two characters, the lesser first", token.at)
        return RegexNode("range", (value, last), token.at)

    def _text(self, token: _Token, written: str) -> str:
        try:
            value: str = json.loads(written)
        except ValueError:
            raise self.mistake("the string has an escape that JSON has not", token.at) from None
        return value

    def _json(self, keyword: _Token) -> str:
        """The JSON text behind a keyword."""
        start = keyword.at + len(keyword.text)
        try:
            end = raw_json(self.text, start, kind=InvalidGrammar)
        except (InvalidGrammar, LimitExceeded) as error:
            placed = self.mistake(f"{keyword.text} needs JSON: {error}".rstrip("."), keyword.at)
            raise type(error)(str(placed), line=placed.line, column=placed.column) from None
        self._at = end
        self._advance()
        return self.text[start:end].strip()
