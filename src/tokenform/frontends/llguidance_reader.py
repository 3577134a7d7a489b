"""llguidance's dialect of Lark's language, read into a tree.

Purpose: the text of a grammar as llguidance reads it: `&` and `~` between terminals, `{m,n}`, `<|token|>`,
`<[ids]>`, `%json`, `%regex`, nested `%lark`, `@name`, attributes in brackets, rules with a
parameter, names with `-`.
Invariant: a mistake is an `InvalidGrammar` with line and column; what is read keeps its place.
Source: docs/syntax.md of guidance-ai/llguidance.  Wider in one point: a line may break inside parentheses.
Rejected: rewriting it as Lark's own language (its reader knows neither tokens nor `&`).
"""

from __future__ import annotations

import json
import re
from typing import Any

from tokenform.errors import InvalidGrammar, LimitExceeded
from tokenform.frontends.json_text import raw_json
from tokenform.frontends.lark_errors import SKIPPED
from tokenform.frontends.llguidance_parameters import read_condition, read_parameter
from tokenform.frontends.llguidance_words import TIMES, Definition, RegexNode, RegexText, Token, Words

_SIGN = re.compile(
    rf"""{SKIPPED}|\#[^\n]*
    |(?P<sign>%(?:llguidance|regex|lark|if)\b|\w::|<[^<>\s]+>|@[A-Za-z0-9_\-]+|&
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


class LlguidanceReader(Words):
    """One text and how far it was read."""

    def _skip_lines(self) -> None:
        while self.next.kind == "newline":
            self.advance()

    def grammar(self, closed: bool = False) -> RegexText:
        """A grammar up to the end of the text, or up to `}`."""
        self.enter()
        out = RegexText()
        self._skip_lines()
        while self.next.kind != "end" and not (closed and self.has("}")):
            if self.next.kind == "name":
                self._define(out)
            else:
                self._statement(out)
            if self.next.kind not in ("newline", "end") and not (closed and self.has("}")):
                self.expect("newline")
            self._skip_lines()
        self.leave()
        return out

    def _define(self, out: RegexText) -> None:
        token = self.advance()
        name = token.text.lstrip("!?")
        if self.take("{"):
            raise self.mistake(
                "templates are not read; write rules out, or with a parameter (name::_)", token.at
            )
        parametric = self.take("::")
        if parametric:
            self.expect("_")
        if self.take("."):
            self.expect("number")
            raise self.mistake("priorities are nothing in llguidance's dialect", token.at)
        attributes = self._attributes() if self.has("[") else {}
        self.expect(":")
        if name in out.definitions:
            raise self.mistake(f"{name} is defined more than once", token.at)
        body = self.alternatives()
        out.definitions[name] = Definition(name, body, token.at, attributes, parametric)

    def _attributes(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        self.expect("[")
        while not self.has("]"):
            key = self.expect("name")
            if key.text in ("lazy", "capture") and not self.has("="):
                out[key.text] = True
            elif key.text in ("stop", "suffix", "capture", "stop_capture", "max_tokens", "temperature"):
                self.expect("=")
                number = key.text in ("max_tokens", "temperature")
                out[key.text] = float(self.expect("number").text) if number else self._value()
            else:
                raise self.mistake(f"there is no attribute {key.text}", key.at)
            if not self.take(","):
                break
        self.expect("]")
        return out

    def _statement(self, out: RegexText) -> None:
        token = self.expect("keyword")
        if token.text == "%ignore":
            out.ignored.append(self.alternatives())
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
        path = [self.expect("name")]
        while self.take("."):
            if self.has("("):
                break
            path.append(self.expect("name"))
        if path[0].text != "common":
            raise self.mistake("only `common` is imported from", path[0].at)
        if self.take("("):
            while not self.take(")"):
                name = self.expect("name").text
                out.imports[name] = name
                self.take(",")
            return
        name = path[-1].text
        out.imports[self.expect("name").text if self.take("->") else name] = name

    def bar(self) -> bool:
        """Steps over `|`, also at the beginning of the next line."""
        if self.next.kind == "newline":
            at, token = self._at, self.next
            self._skip_lines()
            if not self.has("|"):
                self._at, self.next = at, token
                return False
        return self.take("|")

    def alternative(self) -> RegexNode:
        at = self.next.at
        node = self.several("and", self.sequence, lambda: self.take("&"))
        if self.take("->"):
            self.expect("name")
        return RegexNode("if", (node, read_condition(self)), at) if self.take("%if") else node

    def ends(self) -> bool:
        signs = ("|", "&", "->", "%if", ")", "]", "}")
        return self.next.kind in ("newline", "end") or any(map(self.has, signs))

    def repeated(self) -> RegexNode:
        node = self._atom()
        while self.next.kind == "mark" and self.next.text in ("?", "*", "+", "~", "{"):
            operator = self.next
            if operator.text == "~" and not re.match(r"\s*[+-]?\d", self.text[self._at :]):
                break
            self.advance()
            least, most = TIMES.get(operator.text, (0, None))
            if operator.text == "~":
                least = most = self._count()
                if self.take(".."):
                    most = self._count()
            elif operator.text == "{":
                least = 0 if self.has(",") else self._count()
                most = least
                if self.take(","):
                    most = None if self.has("}") else self._count()
                self.expect("}")
            if least < 0 or (most is not None and most < least):
                raise self.mistake("the counts of the repetition are negative or run backwards", operator.at)
            node = RegexNode("repeat", (node, least, most), operator.at)
        return node

    def _count(self) -> int:
        token = self.expect("number")
        if not re.fullmatch(r"[+-]?\d{1,9}", token.text):
            raise self.mistake("expected a whole number of at most 9 digits", token.at)
        return int(token.text)

    def _atom(self) -> RegexNode:
        at = self.next.at
        if self.take("~"):
            self.enter()
            node = RegexNode("not", (self._atom(),), at)
            self.leave()
            return node
        for opening, closing in (("(", ")"), ("[", "]")):
            if self.take(opening):
                self._skip_lines()
                inner = self.alternatives()
                self._skip_lines()
                self.expect(closing)
                return inner if opening == "(" else RegexNode("repeat", (inner, 0, 1), at)
        return self._value()

    def _value(self) -> RegexNode:
        token = self.advance()
        at = token.at
        if token.kind == "string":
            return self._string(token)
        if token.kind == "regex":
            pattern, _, flags = token.text[1:].rpartition("/")
            if set(flags) - set("imsux"):
                raise self.mistake("flags of a regex are i, m, s, u and x", at)
            pattern = pattern.replace("\\/", "/")
            kept, end = flags.replace("u", ""), "\n" if "x" in flags else ""
            self.check_pattern(f"(?{kept}){pattern}" if kept else pattern, "rust", at)
            self.check_pattern(f"(?{kept}:{pattern}{end})", "rust", at)  # as it is read
            return RegexNode("regex", (pattern, flags), at)
        if token.kind in ("name", "special", "reference"):
            if token.kind == "name" and self.has("{") and not re.match(r"\s*[\d,+-]", self.text[self._at :]):
                raise self.mistake(
                    "templates are not read; write rules out, or with a parameter (name::_)", at
                )
            if token.kind == "name" and self.take("::"):
                return RegexNode("call", (token.text, read_parameter(self)), at)
            return RegexNode(token.kind, (token.text,), at)
        if token.text in ("%json", "%regex"):
            return RegexNode("json" if token.text == "%json" else "structured", (self._json(token),), at)
        if token.text == "%lark":
            self.expect("{")
            inner = self.grammar(closed=True)
            self.expect("}")
            return RegexNode("lark", (inner,), at)
        raise self.mistake(f"expected a value, found {token.text.strip() or 'the end of the line'}", at)

    def _string(self, token: Token) -> RegexNode:
        flags = "i" if token.text.endswith("i") else ""
        value = self._text(token, token.text.removesuffix("i"))
        if not self.take(".."):
            return RegexNode("text", (value, flags), token.at)
        last = self._text(self.next, self.expect("string").text)
        if len(value) != 1 or len(last) != 1 or value > last or flags:
            raise self.mistake("a range needs two characters, the lesser first", token.at)
        return RegexNode("range", (value, last), token.at)

    def _text(self, token: Token, written: str) -> str:
        try:
            value: str = json.loads(written)
        except ValueError:
            raise self.mistake("the string has an escape that JSON has not", token.at) from None
        return value

    def _json(self, keyword: Token) -> str:
        """The JSON text behind a keyword."""
        start = keyword.at + len(keyword.text)
        try:
            end = raw_json(self.text, start, kind=InvalidGrammar)
        except (InvalidGrammar, LimitExceeded) as error:
            message = f"{keyword.text} needs JSON: {error}".rstrip(".")
            raise self.mistake(message, keyword.at, type(error)) from None
        self._at = end
        self.advance()
        return self.text[start:end].strip()
