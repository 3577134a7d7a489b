"""What the page asks for: a request's body as checked values.

Invariant: a field that is not known, of another type or too large is an `OptionError` that names it; nothing
in a request names code, a file or an address.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from tokenform.engine import Grammar, Limits
from tokenform.errors import OptionError, TokenformError
from tokenform.frontends import choice
from tokenform.frontends.grammar_text import grammar_of_text
from tokenform.frontends.json_text import read_json
from tokenform.frontends.tools import tools
from tokenform.server.messages import read_messages

BODY = 1 << 18
"""Most bytes of a body."""
SOURCE, TEXT, PROMPT = 1 << 16, 1 << 15, 1 << 13
"""Most characters of a constraint, a document, a prompt."""
SOURCES = 60
"""Most constraints that one request compares."""
LIMITS = Limits(work=20_000_000)
"""Of a call of the engine: a page that is typed into waits for it."""
SPELLINGS = {
    "order": ("declared", "any"),
    "whitespace": ("natural", "compact", "spaced", "indent", "any"),
    "numbers": ("natural", "shortest", "canonical", "any"),
    "strings": ("natural", "canonical", "any"),
}
CALLS = {"format": None, "tool_choice": ("auto", "required", "none")}
KEPT = 128
"""Grammars that are kept."""


@dataclass(frozen=True)
class Query:
    """A request.

    Attributes:
        kind, source, options: the constraint: "schema", "regex", "choices", "lark", "gbnf" or "tools", its
            text, and the options of `json_schema` or `tools`.
        text: the document so far.
        prompt: what the model reads before it.
        messages: the prompt is chat messages in JSON.
        settings: the rest, by name: numbers and names of samplers.
    """

    kind: str
    source: str
    options: tuple[tuple[str, str], ...]
    text: str = ""
    prompt: str = ""
    messages: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def grammar(self) -> Grammar:
        """The constraint; raises whatever is wrong with it."""
        return _grammar(self.kind, self.source, self.options)

    @property
    def told(self) -> Any:
        """The prompt as a generator takes it.

        Raises:
            OptionError, Refused: it is to be chat messages, and is none.
        """
        if not self.messages:
            return self.prompt
        listed = read_json(self.prompt, name="the prompt", kind=OptionError)
        if not isinstance(listed, list):
            raise OptionError("the prompt is a JSON array of chat messages here.")
        return read_messages(listed, "")

    def respelled(self) -> Grammar | None:
        """A schema's documents in any order and spelling; None for other constraints."""
        every = (("numbers", "any"), ("order", "any"), ("strings", "any"), ("whitespace", "any"))
        return _grammar(self.kind, self.source, every) if self.kind == "schema" else None

    def others(self) -> list[Query]:
        """The same about other sources; the setting `sources`."""
        sources = self.settings.get("sources", ())
        if not isinstance(sources, list) or len(sources) > SOURCES:
            raise OptionError(f"sources are a list of at most {SOURCES} texts.")
        if not all(isinstance(one, str) and len(one) <= SOURCE for one in sources):
            raise OptionError(f"each of the sources is a text of at most {SOURCE} characters.")
        return [replace(self, source=one) for one in sources]

    def number(self, name: str, default: float, least: float, most: float) -> float:
        """A setting that is a number."""
        value = self.settings.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise OptionError(f"{name} is {value!r}; give a number from {least:g} to {most:g}.")
        return value

    def count(self, name: str, default: int, most: int, least: int = 1) -> int:
        """A setting that is a whole number."""
        value = self.number(name, default, least, most)
        if value != int(value):
            raise OptionError(f"{name} is {value!r}; give a whole number.")
        return int(value)

    def name(self, name: str, default: str, known: Mapping[str, Any]) -> str:
        """A setting that is one of some names."""
        value = self.settings.get(name, default)
        if not isinstance(value, str) or value not in known:
            raise OptionError(f"{name} is {value!r}; choose one of {', '.join(known)}.")
        return value


def read(body: bytes, settings: tuple[str, ...] = ()) -> Query:
    """The request of a body.

    Args:
        settings: what it may say beside constraint, text, prompt and messages.
    Raises:
        OptionError: it says something else, or too much.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise OptionError("the body is no JSON.") from None
    if not isinstance(data, dict):
        raise OptionError("the body is a JSON object.")
    constraint = data.pop("constraint", None)
    if not isinstance(constraint, dict) or set(constraint) - {"kind", "source", "options"}:
        raise OptionError('"constraint" is an object of kind, source and options.')
    rest = {name: data.pop(name) for name in settings if data.get(name) is not None}
    text, prompt = _text(data, "text", TEXT), _text(data, "prompt", PROMPT)
    messages = data.pop("messages", False)
    if not isinstance(messages, bool):
        raise OptionError("'messages' is true or false.")
    if data:
        raise OptionError(f"there is no field {next(iter(data))!r} here.")
    kind = _text(constraint, "kind", 20)
    if kind not in KINDS:
        raise OptionError(f"kind is {kind!r}; choose one of {', '.join(KINDS)}.")
    source = _text(constraint, "source", SOURCE)
    return Query(kind, source, _options(kind, constraint.get("options") or {}), text, prompt, messages, rest)


def _text(data: dict[str, Any], name: str, most: int) -> str:
    value = data.pop(name, "")
    if not isinstance(value, str):
        raise OptionError(f"{name!r} is a text.")
    if len(value) > most:
        raise OptionError(f"{name!r} has {len(value)} characters; here it may have {most}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise OptionError(f"{name!r} has half a character (a lone surrogate).") from None
    return value


def _options(kind: str, options: Any) -> tuple[tuple[str, str], ...]:
    every: dict[str, Mapping[str, Any]] = {"schema": SPELLINGS, "tools": CALLS}
    known = every.get(kind, {})
    if not isinstance(options, dict):
        raise OptionError('"options" is an object.')
    for name, value in options.items():
        if name not in known:
            raise OptionError(f"there is no option {name!r} for {kind}.")
        if not isinstance(value, str) or (known[name] is not None and value not in known[name]):
            raise OptionError(f"{name} is {value!r}; choose one of {', '.join(known[name] or ('a name',))}.")
    return tuple(sorted(options.items()))


KINDS = ("schema", "regex", "choices", "lark", "gbnf", "tools")


@lru_cache(maxsize=KEPT)
def _grammar(kind: str, source: str, options: tuple[tuple[str, str], ...]) -> Grammar:
    if kind == "tools":
        return _tools(source, **dict(options))
    if kind == "choices":  # a text a line
        return choice([line for line in source.split("\n") if line])
    return grammar_of_text("json" if kind == "schema" else kind, source, **dict(options))


def _tools(source: str, **options: Any) -> Grammar:
    listed = read_json(source, name="the tools", kind=OptionError)
    if not isinstance(listed, list):
        raise OptionError("tools are a JSON array of definitions.")
    return tools(listed, **options)


def told(error: TokenformError) -> dict[str, Any]:
    """An error as the page shows it: what, and where."""
    place = {"pointer": error.pointer, "keyword": error.keyword, "line": error.line, "column": error.column}
    return {"kind": type(error).__name__, "message": str(error), **place}
