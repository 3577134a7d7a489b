"""XGrammar's EBNF, read into the tree of llguidance's dialect.

Purpose: GBNF with macros (`Regex`, `Substring`, `TagDispatch`, `Token`, `ExcludeToken`, `TokenTagDispatch`),
attributes of rules (`name[lazy] ::=`), dots in names, lookaheads.
Invariant: a mistake is an `InvalidGrammar` with line and column; what is read keeps its place.
Source: docs/defining_structures/ebnf_grammar.md of mlc-ai/xgrammar, and version 0.2.8.
"""

from __future__ import annotations

import re
from typing import Any

from tokenform.frontends import forms
from tokenform.frontends.forms import Language
from tokenform.frontends.llguidance_words import TIMES, Definition, RegexNode, RegexText, Token, Words

_TOKENS = re.compile(
    r"""(?P<skip>\#[^\n]*|\s+)
    |(?P<string>"(?:\\.|[^"\\\n])*")
    |(?P<class>\[(?:\\.|[^\]\\\n])*\])
    |(?P<name>[A-Za-z_][A-Za-z0-9_.\-]*)
    |(?P<number>\d+(?:\.\d+)?)
    |(?P<mark>::=|\(=|[,()\[\]{}|=+*?])""",
    re.VERBOSE,
)
_HEAD = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*\s*(?:\[[^\]\n]*\]\s*)?::=")
_ATTRIBUTES = re.compile(r"(\w+)\s*(?:=\s*([^,\s]+))?\s*(?:,|\Z)")
_SIGN = re.compile(
    r"""(?:"(?:\\.|[^"\\\n])*"|\#[^\n]*|\[(?!\^\])(?:\\.|[^\]\\\n])*\](?!\s*::=))
    |(?P<sign>\b(?:Regex|Substring|TagDispatch|Token|ExcludeToken|TokenTagDispatch)\s*\(|\(=|\[\^\]
    |(?<=[\w\-])\s*\[[^\]\n]*\]\s*::=|\w\.\w)""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]+)|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.)|\Z)", re.DOTALL)
_PLAIN = dict(zip("nrtbfav0e\"\\/'?", "\n\r\t\b\f\a\v\0\x1b\"\\/'?", strict=True))
_IN_CLASSES = _PLAIN | {char: char for char in "^$\\.*+?()[]{}|/-"}
_COUNT = re.compile(r"\{\s*(\d{1,9})\s*(?:(,)\s*(\d{1,9})?\s*)?\}")


def is_ebnf(text: str) -> bool:
    """Whether the text has something that XGrammar reads and llama.cpp does not."""
    return any(found.lastgroup == "sign" for found in _SIGN.finditer(text))


class EbnfReader(Words):
    """One text and how far it was read."""

    words = _TOKENS

    def grammar(self) -> RegexText:
        """The whole text."""
        out = RegexText()
        while self.next.kind != "end":
            if not self._at_head():
                raise self.unexpected("a rule (name ::=)")
            token = self.advance()
            attributes = self._attributes()
            self.expect("::=")
            if token.text in out.definitions:
                raise self.mistake(f"{token.text} is defined more than once", token.at)
            body = self.alternatives()
            if self.take("(="):  # what XGrammar is told of the text behind, and does not hold it to
                self.alternatives()
                self.expect(")")
            out.definitions[token.text] = Definition(token.text, body, token.at, attributes)
        return out

    # ---- tokens ------------------------------------------------------------------------------------------

    def _at_head(self) -> bool:
        at = self.next.at
        begins = not self.text[self.text.rfind("\n", 0, at) + 1 : at].strip()
        return self.next.kind == "name" and begins and _HEAD.match(self.text, at) is not None

    def _attributes(self) -> dict[str, Any]:
        if self.next.kind != "class":
            return {}
        token, out = self.advance(), {}
        for key, value in _ATTRIBUTES.findall(token.text[1:-1].strip()):
            if key not in ("lazy", "capture", "temperature", "max_tokens", "max_chars"):
                raise self.mistake(f"there is no attribute {key}", token.at)
            number = key in ("temperature", "max_tokens", "max_chars")
            if number and not re.fullmatch(r"\d+" if key != "temperature" else r"\d+(\.\d*)?", value):
                raise self.mistake(f"{key} is a number", token.at)
            out[key] = float(value) if number else value != "false"
        return out

    # ---- expressions -------------------------------------------------------------------------------------

    def ends(self) -> bool:
        return self.next.kind == "end" or any(map(self.has, ("|", ")", "(="))) or self._at_head()

    def repeated(self) -> RegexNode:
        node, operator = self._element(), self.next
        least, most = TIMES.get(operator.text, (-1, None))
        if operator.kind != "mark":
            return node
        if operator.text == "{":
            found = _COUNT.match(self.text, operator.at)
            if found is None:
                raise self.mistake("a repetition is written {m}, {m,} or {m,n}", operator.at)
            least = int(found[1])
            most = int(found[3]) if found[3] else None if found[2] else least
            if most is not None and most < least:
                raise self.mistake("the counts of the repetition run backwards", operator.at)
            self._at = found.end()
        elif least < 0:
            return node
        self.advance()
        return RegexNode("repeat", (node, least, most), operator.at)

    def _element(self) -> RegexNode:
        token = self.advance()
        if token.kind == "string":
            return RegexNode("text", (self._string(token), ""), token.at)
        if token.kind == "class":
            return RegexNode("language", (self._class(token),), token.at)
        if token.kind == "name":
            made = _MACROS.get(token.text) if self.has("(") else None
            return made(self, token) if made else RegexNode("name", (token.text,), token.at)
        if token.kind == "mark" and token.text == "(":
            node = self.alternatives()
            self.expect(")")
            return node
        raise self.mistake(f"expected a part of a rule, found {token.text or 'the end'}", token.at)

    def _string(self, token: Token) -> str:
        return "".join(map(chr, self._points(token.text[1:-1], token.at + 1, _PLAIN, [])))

    def _class(self, token: Token) -> Language:
        body = token.text[1:-1]
        negated = body.startswith("^")
        dashes: list[int] = []  # places of `-` that are not escaped
        points = self._points(body[negated:], token.at + 1 + negated, _IN_CLASSES, dashes)
        ranges, i = [], 0
        while i < len(points):
            if i + 2 < len(points) and i + 1 in dashes:
                if points[i + 2] < points[i]:
                    raise self.mistake("a range of the class runs backwards", token.at)
                ranges.append((points[i], points[i + 2]))
                i += 3
            else:
                ranges.append((points[i], points[i]))
                i += 1
        if not ranges and not negated:
            raise self.mistake("the class is empty, and has no character", token.at)
        if not ranges:
            return {"regex": "(?s:.)", "dialect": "python"}
        shown = "".join(rf"\U{low:08x}-\U{high:08x}" for low, high in ranges)
        return {"regex": f"[{'^' if negated else ''}{shown}]", "dialect": "python"}

    def _points(self, text: str, at: int, known: dict[str, str], dashes: list[int]) -> list[int]:
        """Code points of a text with escapes."""
        out: list[int] = []
        end = 0
        while end < len(text):
            found = _ESCAPE.match(text, end) if text[end] == "\\" else None
            if found is None:
                if text[end] == "-":
                    dashes.append(len(out))
                out.append(ord(text[end]))
                end += 1
                continue
            digits = found[1] or found[2] or found[3]
            point = int(digits, 16) if digits else ord(known.get(found[4] or "", "\uffff"))
            if (not digits and (found[4] or "") not in known) or point > 0x10FFFF or 0xD800 <= point < 0xE000:
                raise self.mistake(f"there is no escape {found.group()}", at + end)
            out.append(point)
            end = found.end()
        return out

    # ---- macros ------------------------------------------------------------------------------------------

    def _arguments(self, nested: bool = False) -> tuple[list[Any], dict[str, Any]]:
        """What stands in the parentheses of a macro: a `Token` each, or a list of them.

        nested: it is such a list, in which neither lists nor names with values stand.
        """
        self.expect("(")
        placed: list[Any] = []
        named: dict[str, Any] = {}
        while not self.take(")"):
            if self.has("(") and not nested:
                placed.append(self._arguments(True)[0])
            else:
                token = self.advance()
                if token.kind not in ("string", "name", "number"):
                    raise self.mistake(f"{token.text or 'the end'} is no argument", token.at)
                if token.kind == "name" and not nested and self.take("="):
                    named[token.text] = self._arguments(True)[0] if self.has("(") else self.advance()
                else:
                    placed.append(token)
            if not self.take(",") and not self.has(")"):
                raise self.unexpected("',' or ')'")
        return placed, named

    def _macro(self, at: Token, kind: str, flags: dict[str, str]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a macro, all of one kind ("pair" for those in parentheses)."""
        placed, named = self._arguments()
        for one in placed:
            if ("pair" if isinstance(one, list) else one.kind) != kind:
                raise self.mistake(f"arguments of {at.text} are each a {kind}", at.at)
        for key, value in named.items():
            expected = flags.get(key)
            listed = isinstance(value, list)
            if expected is None or (expected == "flag") == listed:
                raise self.mistake(f"{at.text} has no {key} like that", at.at)
            if expected == "flag" and value.text not in ("true", "false"):
                raise self.mistake(f"{key} is true or false", at.at)
            if listed and any(one.kind != expected for one in value):
                raise self.mistake(f"{key} of {at.text} are each a {expected}", at.at)
        return placed, named

    def _regex(self, at: Token) -> RegexNode:
        placed, named = self._macro(at, "string", {"json_string": "flag"})
        if len(placed) != 1:
            raise self.mistake("Regex has one pattern", at.at)
        pattern = self._string(placed[0])
        self.check_pattern(pattern, "auto", placed[0].at)
        language: Language = {"regex": f"^(?s:{pattern})$", "dialect": "auto"}
        if "json_string" in named and named["json_string"].text == "true":
            plain: Language = {"regex": r'[^"\\\x00-\x1f]*', "dialect": "python"}
            language = {"and": [language, plain]}
        return RegexNode("language", (language,), at.at)

    def _substring(self, at: Token) -> RegexNode:
        placed, _ = self._macro(at, "string", {})
        chunks = [self._string(one) for one in placed]
        return RegexNode("language", ({"spans": [chunk for chunk in chunks if chunk]},), at.at)

    def _tokens(self, at: Token) -> RegexNode:
        placed, _ = self._macro(at, "number", {})
        if not placed:
            raise self.mistake(f"{at.text} needs numbers of tokens", at.at)
        shown = ",".join(one.text for one in placed)
        return RegexNode("special", (f"<[{'^' if at.text == 'ExcludeToken' else ''}{shown}]>",), at.at)

    def _dispatch(self, at: Token) -> RegexNode:
        kind = "number" if at.text == "TokenTagDispatch" else "string"
        placed, named = self._macro(at, "pair", {"loop_after_dispatch": "flag", "excludes": kind})
        if any([token.kind for token in pair] != [kind, "name"] for pair in placed):
            raise self.mistake(f"{at.text} has pairs of a {kind} and a rule", at.at)
        excludes = named.get("excludes", [])
        read = (lambda token: token.text) if kind == "number" else self._string
        triggers = {read(pair[0]): RegexNode("name", (pair[1].text,), pair[1].at) for pair in placed}
        if "" in triggers:
            raise self.mistake("a trigger is empty", at.at)
        loop = named["loop_after_dispatch"].text == "true" if "loop_after_dispatch" in named else True
        made = _by_token if kind == "number" else _by_text
        free, begins = made(triggers, [read(token) for token in excludes], at.at)
        calls = [RegexNode("seq", (begins[one], rule), at.at) for one, rule in triggers.items()]
        call = RegexNode("or", tuple(calls), at.at)
        if loop:
            return RegexNode("seq", (RegexNode("repeat", (call, 0, None), at.at), free), at.at)
        return RegexNode("or", (call, free), at.at)


def _by_text(
    triggers: dict[str, RegexNode], excludes: list[str], at: int
) -> tuple[RegexNode, dict[str, RegexNode]]:
    """Free text without a trigger, and free text up to each: to its first end, or past that of a shorter one;
    where several end at one place, the longest was read."""
    ends = forms.joined("or", [{"language": forms.literal(text)} for text in [*triggers, *excludes]])
    anything: Language = {"any": True}
    begins = {}
    for text in triggers:
        shorter = min((one for one in triggers if text.startswith(one)), key=len)
        longer = [one for one in triggers if one != shorter and one.endswith(shorter)]
        first: Language = {
            "and": [
                {"until": [anything, ends]},
                {"concat": [anything, forms.literal(shorter)]},
                *({"not": {"concat": [anything, forms.literal(one)]}} for one in longer),
            ]
        }
        rest = text[len(shorter) :]
        begins[text] = RegexNode(
            "language", ({"concat": [first, forms.literal(rest)]} if rest else first,), at
        )
    never = {"concat": [anything, ends, anything]}
    return RegexNode("language", ({"not": never},), at), begins


def _by_token(
    triggers: dict[str, RegexNode], excludes: list[str], at: int
) -> tuple[RegexNode, dict[str, RegexNode]]:
    listed = ",".join([*triggers, *excludes])
    others = RegexNode("repeat", (RegexNode("special", (f"<[^{listed}]>",), at), 0, None), at)
    return others, {
        one: RegexNode("seq", (others, RegexNode("special", (f"<[{one}]>",), at)), at) for one in triggers
    }


_MACROS = {
    "Regex": EbnfReader._regex,
    "Substring": EbnfReader._substring,
    "Token": EbnfReader._tokens,
    "ExcludeToken": EbnfReader._tokens,
    "TagDispatch": EbnfReader._dispatch,
    "TokenTagDispatch": EbnfReader._dispatch,
}
