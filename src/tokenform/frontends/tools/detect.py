"""The format that a caller means: by its name, by a tokenizer, by a response template.

Purpose: a chat template is given a conversation with calls, and what it writes of them is held against the
formats.
Invariant: a format is named only if its grammar takes what the template wrote, whole, and it reads back as
the calls that were given; nothing is guessed.
Complexity: a few renderings, and a grammar for each format whose opener occurs in them; kept for a template.
Rejected: marks that stand in the template's text (DeepSeek V4 bears those of V3.2, and writes another
layout); the model's name (fine-tunes keep names and change templates).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from tokenform.errors import TokenformError, ToolError
from tokenform.frontends.byte_vocabulary import byte_vocabulary
from tokenform.frontends.tools.formats import FORMATS, named
from tokenform.frontends.tools.layout import Format
from tokenform.frontends.tools.making import TurnOptions, grammar_of_tools
from tokenform.frontends.tools.reader import read_turn
from tokenform.frontends.tools.response_template import response_format
from tokenform.frontends.tools.templates import Template
from tokenform.frontends.tools.tool import Tool

_TOOL = Tool(
    "probe_tool",
    "Probes.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "A city."}, "count": {"type": "integer"}},
        "required": ["city", "count"],
    },
)
_ARGUMENTS: tuple[dict[str, Any], ...] = ({"city": "Qx Zy", "count": 3}, {"city": "Vw", "count": 41})
_CONTENT = "Zq content"


def find_format(name: Any) -> Format:
    """The format of this name, of a tokenizer, or of its `response_template` or `response_schema`.

    Of a tokenizer the chat template is asked first, then its response template.
    Raises:
        ToolError: there is no such format (the message has the names), or the templates show none.
    """
    if isinstance(name, Mapping):
        return response_format(name)
    if isinstance(name, str | Format) or not hasattr(name, "chat_template"):
        return named(name)
    try:
        return detect_format(name)
    except ToolError:
        templates = (getattr(name, key, None) for key in ("response_template", "response_schema"))
        template = next((said for said in templates if isinstance(said, Mapping)), None)
        if template is None:
            raise
        added: Mapping[str, int] = getattr(name, "get_added_vocab", dict)()
        return response_format(template, added)


def detect_format(tokenizer: Any) -> Format:
    """The format of a tokenizer's chat template, or of a template's text.

    Args:
        tokenizer: an object with `chat_template` (a text, or texts by name), or the template's text.
    Raises:
        ToolError: no template, or one that writes calls as no known format does; the message has the formats
            that come nearest.
    """
    template = Template.of(tokenizer)
    return _detected(template.text, tuple(sorted(template.tokens.items())))


@lru_cache(maxsize=64)
def _detected(text: str, tokens: tuple[tuple[str, str], ...]) -> Format:
    template = Template(text, dict(tokens))
    fault = "it leaves calls out" + _nearest([form for form in FORMATS.values() if _marked(form, text)])
    for calls, beginnings in _renderings(template):
        for written in beginnings:
            found = [form for form in FORMATS.values() if _writes(form, written, calls)]
            if found:
                return max(found, key=lambda form: (_likeness(form, written), _ends(form, text)))
        written = beginnings[-1]
        near = sorted(
            (form for form in FORMATS.values() if _openers(form, written)),
            key=lambda form: -_likeness(form, written),
        )
        shown = written if len(written) <= 160 else written[:157] + "..."
        fault = f"it writes calls as {shown!r}" + _nearest(near)
    raise ToolError(f"the chat template shows no known tool format: {fault}; name one with format=")


def _nearest(forms: list[Format]) -> str:
    return f"; the nearest are {', '.join(form.name for form in forms[:3])}" if forms else ""


def _marked(form: Format, text: str) -> bool:
    """Whether a template's text bears the format's marks (a line feed is spelled as itself or as \\n)."""
    text = text.replace("\n", "\\n")
    bears = bool(form.template) and all(mark in text for mark in form.template)
    return bears and not any(mark in text for mark in form.template_without)


def _renderings(template: Template) -> Iterator[tuple[list[dict[str, Any]], list[str]]]:
    """What the template writes of two calls, and of one, as an assistant's turn; see `_beginnings`."""
    user = {"role": "user", "content": "Hi"}
    shown = [_TOOL.to_openai()]
    try:
        plain = template.render([user, {"role": "assistant", "content": _CONTENT}], shown)
    except ToolError:
        plain = ""
    seen: set[str] = set()
    for count in (2, 1):
        arguments = list(_ARGUMENTS[:count])
        for message in _messages(arguments):
            try:
                text = template.render([user, message], shown)
            except ToolError:
                continue
            if text.count(_TOOL.name) > plain.count(_TOOL.name) and all(
                str(a["city"]) in text for a in arguments
            ):
                if text not in seen:
                    yield arguments, _beginnings(text, plain)
                seen.add(text)


def _messages(arguments: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The calls as templates want them: arguments as a mapping or as JSON, content empty or none at all."""
    for name in ("call0000{}", f"functions.{_TOOL.name}:{{}}"):
        for content in ("", None):
            for spell in (dict, json.dumps):
                calls = [
                    {
                        "id": name.format(index),
                        "type": "function",
                        "function": {"name": _TOOL.name, "arguments": spell(given)},
                    }
                    for index, given in enumerate(arguments)
                ]
                yield {"role": "assistant", "content": content, "tool_calls": calls}


def _beginnings(text: str, plain: str) -> list[str]:
    """What differs from a turn without calls, and the same from where the marker begins that it begins in."""
    size = min(len(text), len(plain))
    common = next((i for i in range(size) if text[i] != plain[i]), size)
    marker = max(text.rfind(end, 0, common) for end in ">\n]") + 1
    return [text[place:] for place in dict.fromkeys((common, marker))]


def _writes(form: Format, written: str, calls: list[dict[str, Any]]) -> bool:
    """Whether the format's grammar takes the calls as they are written, up to what ends the turn."""
    if not _openers(form, written):
        return False
    spelling = dict.fromkeys(("order", "whitespace", "numbers", "strings"), "any")
    try:
        grammar, _ = grammar_of_tools([_TOOL], TurnOptions(form, "required", spelling=spelling))
        automaton = grammar.core.compile(byte_vocabulary())
        data = written.encode()
        end = _longest(automaton, data)
        if end is None or any(str(a["city"]).encode() in data[end:] for a in calls):
            return False
        read = read_turn(data[:end].decode(), [_TOOL], format=form)
    except (TokenformError, UnicodeError):
        return False
    return [call.arguments for call in read] == calls


def _longest(automaton: Any, data: bytes) -> int | None:
    """Where the longest beginning of the bytes ends that the automaton accepts."""
    state, end = automaton.start, None
    for index, byte in enumerate(data):
        if not automaton.allows(state, byte):
            break
        state = automaton.advance(state, byte)
        if automaton.is_accepting(state):
            end = index + 1
    return end


def _openers(form: Format, written: str) -> bool:
    """Whether something in the text looks like a call of the format."""
    if form.channels:
        return "<|channel|>" in written
    return any(form.opener(wire) in written for wire in (form.wire, *form.also))


def _ends(form: Format, template: str) -> int:
    """How many of the format's marks that end a turn the template knows."""
    return sum(mark in template for mark in form.dropped)


def _likeness(form: Format, written: str) -> float:
    """The part of the format's literals that stand in the text as they are, whitespace included."""
    literals = [*filter(None, (*form.wire.literals, form.wire.between))]
    found = sum(len(text) for text in literals if text in written)
    return found / max(sum(map(len, literals)), 1)
