"""Structural tags: free text with constrained parts, as serving engines ask for tool calls.

Invariant: `any_text` and the text between triggered tags hold no end of the tag around them, and no trigger;
what stands between tokens or dispatched formats may hold such texts (`excludes` is for that).  What can't be
kept exactly is refused by its name and place, a JSON Pointer into the tag.
Differences from XGrammar, whose format this is: free text holds no control tokens but those that the tag
names, and not the text of a token that ends its tag; a token may end an `any_tokens` in its middle; names
of arguments are any text, booleans of the Qwen style `True` and `False` too; budgets (`max_chars`,
`max_tokens`) are kept in free text alone, and parts have no temperature: such tags are refused; documents
in any order have no key twice and all that are required; objects may have members that their schema does
not name, unless it forbids them; whitespace that no `max_whitespace_cnt` bounds is what writers put there,
24 characters at most between arguments; lengths, patterns and formats of strings hold beside `excludes`,
too.
Complexity: a tag among others that was read before costs a look (`structural_cache.py`).
Source: XGrammar 0.2.8, `structural_tag.py`; vLLM's older form, `{"structures": [...], "triggers": [...]}`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from tokenform import _core
from tokenform.errors import InvalidGrammar, InvalidRegex, TokenformError
from tokenform.frontends import forms
from tokenform.frontends.ebnf_reader import is_ebnf
from tokenform.frontends.garbage import collected_later
from tokenform.frontends.gbnf import gbnf
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.json_text import read_json
from tokenform.frontends.patterns import regex
from tokenform.frontends.schemas import json_schema, warn_unknown
from tokenform.frontends.structural_cache import LEVELS, cached_tags, tag_context
from tokenform.frontends.structural_documents import document
from tokenform.frontends.structural_texts import Texts, list_in, number_in, str_in, strings_in, wrong
from tokenform.frontends.tools.compiled import known_options, shape_form
from tokenform.frontends.tools.linked import branched_form
from tokenform.frontends.tools.shape import (
    Choice,
    Given,
    Node,
    Repeat,
    Seq,
    Shape,
    choice,
    sequence,
)

_DEEP = 64
_NOT_EXACT = "can't be kept exactly"


def structural_tag(
    tag: Mapping[str, Any] | str,
    *,
    special: Iterable[str] = (),
    token_text: Callable[[int], str | None] | None = None,
    json_options: Mapping[str, str] | None = None,
) -> Grammar:
    """The texts of a structural tag.

    Args:
        tag: `{"type": "structural_tag", "format": {...}}`, or the older `{"structures", "triggers"}`; a
            mapping or JSON text.
        special: texts of control tokens; where one occurs in a literal, that token stands there.
        token_text: the text of a token that a tag names by its number; None: there are no such names.
        json_options: `order`, `whitespace`, `numbers`, `strings` of `json_schema`.
    Raises:
        InvalidGrammar: the tag is wrong, or holds what can't be kept; `pointer` is the place.
        TokenformError: what `json_schema`, `regex` and `gbnf` raise for what is inside, at its place.

    >>> import tokenform as tf
    >>> number = {"type": "json_schema", "json_schema": {"type": "integer"}}
    >>> call = {"begin": "<f>", "content": number, "end": "</f>"}
    >>> tag = {"format": {"type": "triggered_tags", "triggers": ["<f>"], "tags": [call]}}
    >>> vocabulary = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256])
    >>> automaton = tf.tool_formats.structural_tag(tag).compile(vocabulary)
    >>> automaton.matches(b"It is <f>42</f>, then."), automaton.matches(b"It is <f>many</f>")
    (True, False)
    """
    options = known_options(json_options)
    texts = Texts(tuple(special), token_text)
    # what is made on the way is gone before collections go on
    with collected_later():
        if isinstance(tag, str):
            spec = read_json(tag, name="the structural tag", kind=InvalidGrammar)
        else:
            _check_json(tag)
            spec = tag
        core = _put_together(texts, options, spec)
    warn_unknown(core.notes)
    return Grammar(core, source="structural tag")


def _put_together(texts: Texts, options: Mapping[str, str], spec: Any) -> _core.Grammar:
    """The core's grammar, from cached tags; where that fails, from all tags read anew."""
    reader = _TagReader(texts, options, keeps=True)
    with contextlib.suppress(TokenformError):
        form, lists = branched_form(Shape(reader.root(spec), reader.rules), options)
        return forms.compiled(form, "structural tag", lists)
    reader = _TagReader(texts, options)
    form = shape_form(Shape(reader.root(spec), reader.rules), options)
    try:
        return forms.compiled(form, "structural tag")
    except TokenformError:
        reader.blame()
        raise


def _check_json(spec: Any) -> None:
    """Raise unless the tag can be written as JSON; its parts are, and errors show them."""
    try:
        if _core.json_text(spec) is None:
            json.dumps(spec, default=dict)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidGrammar(f"the structural tag can't be written as JSON: {error}.", pointer="") from None


class _Ends(NamedTuple):
    """The ends of the tag around a format: texts, and texts of tokens."""

    texts: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()

    @property
    def both(self) -> tuple[str, ...]:
        return self.texts + self.tokens


_NO_ENDS = _Ends()


class _TagReader:
    """The formats of a tag as nodes.

    keeps: tags that were read before are not read again.  scope: what the names of rules begin with.
    """

    def __init__(
        self,
        texts: Texts,
        options: Mapping[str, str],
        *,
        keeps: bool = False,
        scope: str = "",
    ) -> None:
        self.rules: dict[str, Node] = {}
        self._texts, self._options = texts, options
        self._scope, self._keeps = scope, keeps
        self._parts: list[tuple[str, Callable[[], Any]]] = []  # what has errors of its own, by its place

    def root(self, spec: Any) -> Node:
        if not isinstance(spec, Mapping):
            raise wrong("a structural tag is a mapping", "")
        if "structures" in spec or "triggers" in spec:
            return self._older(spec)
        if "format" not in spec:
            raise wrong('a structural tag has a "format", or "structures" and "triggers"', "")
        return self.format(spec["format"], "/format", _NO_ENDS, 0)

    def blame(self) -> None:
        """Raises the error of the first part that has one by itself, with its place."""
        for place, make in self._parts:
            try:
                make()
            except TokenformError as error:
                raise type(error)(
                    f"{error} (in the structural tag at {place!r})",
                    pointer=place + (error.pointer or ""),
                    keyword=error.keyword,
                    line=error.line,
                    column=error.column,
                ) from None

    def _older(self, spec: Mapping[str, Any]) -> Node:
        tags = []
        for number, one in enumerate(list_in(spec, "structures", "")):
            place = f"/structures/{number}"
            if not isinstance(one, Mapping) or "schema" not in one:
                raise wrong('a structure has "begin", "schema" and "end"', place)
            content = {"type": "json_schema", "json_schema": one["schema"]}
            tags.append({"begin": one.get("begin"), "content": content, "end": one.get("end")})
        whole = {"type": "triggered_tags", "triggers": spec.get("triggers"), "tags": tags}
        return self.format(whole, "", _NO_ENDS, 0)

    def format(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        if depth > _DEEP:
            raise wrong(f"formats nest deeper than {_DEEP}", place)
        if not isinstance(spec, Mapping):
            raise wrong("a format is a mapping", place)
        kind = spec.get("type", "tag" if "begin" in spec else None)
        reader = _FORMATS.get(kind) if isinstance(kind, str) else None
        if reader is None:
            raise wrong(f"a format of type {kind!r} is not known; there are {', '.join(_FORMATS)}", place)
        for name, instead in _INSTEAD.items():
            if spec.get(name) is not None and name not in _BUDGETS.get(kind, ()):
                raise wrong(f"{name} of {kind} {_NOT_EXACT}; {instead}", place)
        return reader(self, spec, place, ends, depth)

    # ---- what has no parts

    def const(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        return self._texts.literal(str_in(spec, "value", place))

    def json(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        if "json_schema" not in spec:
            raise wrong('a "json_schema" is missing', place)
        schema = spec["json_schema"]
        self._parts.append((f"{place}/json_schema", lambda: json_schema(schema)))
        without = strings_in(spec, "excludes", place)
        return document(spec, place, without, self._options, self.rules, self._texts.literal, self._scope)

    def regex(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        pattern = str_in(spec, "pattern", place)
        self._parts.append((f"{place}/pattern", lambda: regex(pattern, dialect="auto")))
        try:
            regex(pattern, dialect="auto")  # alone: a group that ends in it is not the one around it
        except InvalidRegex:
            self.blame()
        except TokenformError:
            pass  # that of the whole text says so
        # as XGrammar reads it: `\d` is a digit of ASCII, `.` is any character, a line break too
        return Given({"language": {"regex": f"^(?s:{pattern})$", "dialect": "auto"}})

    def grammar(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        text = str_in(spec, "grammar", place)
        self._parts.append((f"{place}/grammar", lambda: gbnf(text)))
        if not is_ebnf(text):
            return Given({"gbnf": text, "start": "root"})
        try:
            return Given(gbnf(text).form)
        except TokenformError:
            self.blame()
            raise

    def any_text(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        excluded = strings_in(spec, "excludes", place)
        return self._free((*excluded, *ends.both), spec, place)

    def _free(
        self, never: Iterable[str], budget: Mapping[str, Any] = MappingProxyType({}), place: str = ""
    ) -> Node:
        """Text without any of these and without control tokens, of so many characters and tokens at most."""
        characters, tokens = (number_in(budget, name, place) for name in ("max_chars", "max_tokens"))
        texts = dict.fromkeys(text for text in (*never, *self._texts.special) if text)
        length = "*" if characters is None else f"{{0,{characters}}}"
        language: forms.Language = {"regex": f"(?s).{length}", "dialect": "python"}
        language = {"and": [language, *({"not": forms.containing(forms.literal(text))} for text in texts)]}
        if tokens == 0:
            return Seq(())
        return Given({"language": language} if tokens is None else forms.counted(language, tokens))

    def token(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        return self._texts.literal(self._texts.named(spec.get("token"), place))

    def any_tokens(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        never = (*self._texts.tokens(spec, "exclude_tokens", place), *ends.tokens)
        return self._free(never, spec, place)

    def exclude_token(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        listed = spec.get("exclude_tokens") or []
        self._texts.tokens(spec, "exclude_tokens", place)
        return Given({"but": [*listed, *ends.tokens]})

    # ---- what has parts

    def sequence(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        elements = list_in(spec, "elements", place)
        return sequence(
            *(self.format(one, f"{place}/elements/{at}", ends, depth + 1) for at, one in enumerate(elements))
        )

    def either(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        elements = list_in(spec, "elements", place)
        if not elements:
            raise wrong("or has no elements", place)
        return choice(
            [self.format(one, f"{place}/elements/{at}", ends, depth + 1) for at, one in enumerate(elements)]
        )

    def repeated(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        least, most = _TIMES.get(spec["type"], (spec.get("min"), spec.get("max")))
        most = None if most == -1 else most
        if not isinstance(least, int) or not (most is None or isinstance(most, int)) or least < 0:
            raise wrong('repeat has "min" and "max" (-1: without bound)', place)
        if most is not None and most < least:
            raise wrong(f"between {least} and {most} times is never", place)
        content = self.format(spec.get("content"), f"{place}/content", ends, depth + 1)
        return Repeat(content, least, most)

    def tag(self, spec: Any, place: str, ends: _Ends, depth: int, prefix: str = "") -> Node:
        """prefix: what of its text was written before."""
        begin = self._texts.text(spec.get("begin"), f"{place}/begin").removeprefix(prefix)
        end = spec.get("end")
        texts = [self._texts.text(one, f"{place}/end") for one in (end if isinstance(end, list) else [end])]
        if not texts:
            raise wrong("a tag has an end", place)
        if isinstance(end, Mapping):
            within = _Ends(tokens=tuple(texts))
        else:
            within = ends if "" in texts else _Ends(tuple(texts))
        content = self.format(spec.get("content"), f"{place}/content", within, depth + 1)
        return sequence(
            self._texts.literal(begin), content, choice([self._texts.literal(text) for text in texts])
        )

    def triggered(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        by_token = spec["type"] == "token_triggered_tags"
        if by_token:
            triggers = self._texts.tokens(spec, "trigger_tokens", place)
            excluded = self._texts.tokens(spec, "exclude_tokens", place)
        else:
            triggers, excluded = strings_in(spec, "triggers", place), strings_in(spec, "excludes", place)
        tags: dict[str, list[tuple[Any, str]]] = {}
        for number, one in enumerate(list_in(spec, "tags", place)):
            where = f"{place}/tags/{number}"
            begin = self._texts.text(one.get("begin") if isinstance(one, Mapping) else None, f"{where}/begin")
            leads = [trigger for trigger in triggers if begin.startswith(trigger)]
            if len(leads) != 1:
                raise wrong(f"{begin!r} begins with exactly one trigger of {list(triggers)}", where)
            tags.setdefault(leads[0], []).append((one, where))
        one_of = self._tags(tags, _Ends((*triggers, *ends.texts), ends.tokens), depth + 1)
        never = (*excluded, *(ends.tokens if by_token else ends.both))
        return self._free_text_and_tags(one_of, triggers, never, spec, place)

    def _tags(self, by_prefix: Mapping[str, list[tuple[Any, str]]], ends: _Ends, depth: int) -> list[Node]:
        """Tags, each with its place, by the texts that lead to them; cached tags are one node."""
        options: list[Node] = []
        for prefix, tags in by_prefix.items():
            if self._keeps and depth + LEVELS < _DEEP:
                read = partial(_read_alone, self._texts.special, self._options, prefix)
                found = cached_tags(tag_context(self._texts.special, prefix, self._options), tags, read)
                if branches := [one for one in found if one is not None]:
                    options.append(sequence(self._texts.literal(prefix), Choice(tuple(branches))))
                for one in branches:
                    self.rules.update(one.follows.rules)
                tags = [tag for tag, one in zip(tags, found, strict=True) if one is None]
            options += [self.tag(one, where, ends, depth) for one, where in tags]
        return options

    def dispatch(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        by_token = spec["type"] == "token_dispatch"
        rules = list_in(spec, "rules", place)
        triggers, tags = [], []
        for number, rule in enumerate(rules):
            where = f"{place}/rules/{number}"
            if not isinstance(rule, Sequence) or isinstance(rule, str) or len(rule) != 2:
                raise wrong("a rule is a pattern and a format", where)
            triggers.append(self._texts.named(rule[0], where) if by_token else rule[0])
            if not isinstance(triggers[-1], str) or not triggers[-1]:
                raise wrong("the pattern of a rule is a text", where)
        for number, rule in enumerate(rules):
            content = self.format(rule[1], f"{place}/rules/{number}/1", ends, depth + 1)
            tags.append(sequence(self._texts.literal(triggers[number]), content))
        name = "exclude_tokens" if by_token else "excludes"
        excluded = self._texts.tokens(spec, name, place) if by_token else strings_in(spec, name, place)
        once = {"stop_after_first": not spec.get("loop", True)}
        return self._free_text_and_tags(tags, tuple(triggers), excluded, once, place)

    def _free_text_and_tags(
        self,
        tags: list[Node],
        triggers: tuple[str, ...],
        excluded: tuple[str, ...],
        spec: Mapping[str, Any],
        place: str,
    ) -> Node:
        """Free text with tags where triggers are; one that must be there begins the text."""
        if not tags or not triggers:
            raise wrong("there are neither tags nor triggers", place)
        text = self._free((*triggers, *excluded))
        one = choice(tags)
        again = Repeat(Seq((text, one)), 0, None)
        if spec.get("at_least_one"):
            return one if spec.get("stop_after_first") else Seq((one, again, text))
        if spec.get("stop_after_first"):
            return Choice((Seq((text, one)), text))
        return Seq((again, text))

    def separated(self, spec: Any, place: str, ends: _Ends, depth: int) -> Node:
        separator = str_in(spec, "separator", place)
        follow = _Ends((separator, *ends.texts), ends.tokens)
        led: dict[str, list[tuple[Any, str]]] = {}
        for number, one in enumerate(list_in(spec, "tags", place)):
            where = f"{place}/tags/{number}"
            if not isinstance(one, Mapping):
                raise wrong("a format is a mapping", where)
            begin = self._texts.text(one.get("begin"), f"{where}/begin")
            led.setdefault(self._texts.opening_token(begin), []).append((one, where))
        if not led:
            raise wrong("there are no tags", place)
        tags = self._tags(led, follow, depth + 1)
        least = 1 if spec.get("at_least_one") else 0
        most = 1 if spec.get("stop_after_first") else None
        return Repeat(choice(tags), least, most, self._texts.literal(separator) if separator else None)


def _read_alone(
    special: tuple[str, ...], options: Mapping[str, str], prefix: str, tag: Any, place: str, scope: str
) -> tuple[Node, Mapping[str, Node]] | None:
    """A tag behind the text that leads to it, and the rules that it names; None: it begins with that alone,
    or with a control token that begins within it.
    """
    texts, begin = Texts(special), tag["begin"]
    if not isinstance(begin, str) or len(begin) <= len(prefix) or texts.cuts(begin, len(prefix)):
        return None
    reader = _TagReader(texts, options, scope=scope)
    return reader.tag(tag, place, _NO_ENDS, 0, prefix), reader.rules


_TIMES = {"optional": (0, 1), "plus": (1, None), "star": (0, None)}

_FORMATS: dict[str, Callable[[_TagReader, Any, str, _Ends, int], Node]] = {
    "const_string": _TagReader.const,
    "json_schema": _TagReader.json,
    "qwen_xml_parameter": lambda self, spec, *rest: self.json({**spec, "style": "qwen_xml"}, *rest),
    "regex": _TagReader.regex,
    "grammar": _TagReader.grammar,
    "any_text": _TagReader.any_text,
    "token": _TagReader.token,
    "any_tokens": _TagReader.any_tokens,
    "exclude_token": _TagReader.exclude_token,
    "sequence": _TagReader.sequence,
    "or": _TagReader.either,
    "optional": _TagReader.repeated,
    "plus": _TagReader.repeated,
    "star": _TagReader.repeated,
    "repeat": _TagReader.repeated,
    "tag": _TagReader.tag,
    "triggered_tags": _TagReader.triggered,
    "token_triggered_tags": _TagReader.triggered,
    "dispatch": _TagReader.dispatch,
    "token_dispatch": _TagReader.dispatch,
    "tags_with_separator": _TagReader.separated,
}


_BUDGETS = {"any_text": ("max_chars", "max_tokens"), "any_tokens": ("max_tokens",)}
# What is to be used in place of what is asked for.
_INSTEAD = {
    "max_chars": "use it in an any_text",
    "max_tokens": "use it in an any_text, or the request's",
    "temperature": "use the request's",
}
