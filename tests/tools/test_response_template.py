"""Response templates of transformers' tokenizers as formats: what their grammars write, it reads."""

from __future__ import annotations

import json
import re
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("jinja2")

import tokenform as tf
from tokenform.errors import ToolError
from tokenform.frontends.tools import (
    FORMATS,
    Format,
    ToolCallStream,
    find_format,
    parse_tool_calls,
    response_format,
    tool_shape,
    tools,
)
from tokenform.frontends.tools.literal_pattern import Group, spellings

from .layouts import TOOLS
from .test_detection import template_of
from .tree_writer import Writer, random_tools

parsing = pytest.importorskip(
    "transformers.utils.chat_parsing", reason="needs a transformers that reads response templates"
)

BOOK = {"place": "Zum Löwen", "guests": 4}
THOUGHT = {"open": "<think>", "close": "</think>"}
FUNCTION = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}


def template(**calls: Any) -> dict[str, Any]:
    """A template with this region of calls."""
    fields = {
        "reasoning_content": THOUGHT,
        "tool_calls": {"repeats": True, **calls},
        "content": {"close": ["<|im_end|>"]},
    }
    return {"defaults": {"role": "assistant"}, "start_anchor": "<|im_start|>assistant\n", "fields": fields}


TEMPLATES: dict[str, tuple[dict[str, Any], str]] = {
    "object": (
        template(
            open_pattern=r"\s*<tool_call>",
            close="</tool_call>",
            content="json",
            transform={"type": "function", "function": "{content}"},
        ),
        '<tool_call>\n{"name": "book_table", "arguments": {"place": "Zum Löwen", "guests": 4}}\n</tool_call>',
    ),
    "other_keys": (
        template(
            open="<|call|>",
            close=["<|end_call|>", "<|im_end|>"],
            content="json",
            transform={"function": {"name": "{content.tool}", "arguments": "{content.input}"}},
        ),
        '<|call|>{"tool": "book_table", "input": {"place": "Zum Löwen", "guests": 4}}<|end_call|>',
    ),
    "list": (
        template(
            open="<TOOLCALL>",
            close="</TOOLCALL>",
            repeats=False,
            content="json",
            transform={"function": {"name": "{name}", "arguments": "{arguments}"}},
            transform_each=True,
        ),
        '<TOOLCALL>[{"name": "book_table", "arguments": {"place": "Zum Löwen", "guests": 4}}]</TOOLCALL>',
    ),
    "headed": (
        template(
            open_pattern=r"<\|call_begin\|>functions\.(?P<name>\w+)(?::(?P<id>\d+))?<\|args\|>",
            close="<|call_end|>",
            content="json",
            transform=FUNCTION,
        ),
        '<|call_begin|>functions.book_table:0<|args|>{"place": "Zum Löwen", "guests": 4}<|call_end|>',
    ),
    "elements": (
        template(
            open_pattern=r"\s*<tool_call>\s*<function=(?P<name>[^>\n]+)>",
            close_pattern=r"</function>\s*</tool_call>",
            content="xml-inline",
            content_args={"tag_pattern": r"<parameter=(?P<key>[^>\n]+)>\s*(?P<value>.*?)\s*</parameter>"},
            transform=FUNCTION,
        ),
        "<tool_call>\n<function=book_table>\n<parameter=place>\nZum Löwen\n</parameter>\n"
        "<parameter=guests>\n4\n</parameter>\n</function>\n</tool_call>",
    ),
    "marked": (
        template(
            open_pattern=r"<\|tool_call>call:(?P<name>\w+)",
            close="<tool_call|>",
            content="json",
            content_args={"unquoted_keys": True, "string_delims": [['<|"|>', '<|"|>']]},
            transform=FUNCTION,
        ),
        '<|tool_call>call:book_table{place:<|"|>Zum Löwen<|"|>,guests:4}<tool_call|>',
    ),
}


def judged(name: str, text: str, definitions: Any) -> list[tuple[str, Any]]:
    """The calls as transformers reads them."""
    message = parsing.parse_response(text, TEMPLATES[name][0], prefix="", tools=definitions)
    return [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls", [])]


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_template_s_own_text(name: str) -> None:
    form, text = response_format(TEMPLATES[name][0]), TEMPLATES[name][1]
    vocab = tf.Vocabulary([*(bytes([b]) for b in range(256)), b""], eos=[256], special=[256])
    grammar = tools(TOOLS, format=form, tool_choice="required")
    assert grammar.compile(vocab).matches(text.encode())
    assert not grammar.compile(vocab).matches(text.replace("guests", "gusts").encode())
    for output in (text, f"<think>Hm.</think>Gern.\n{text}<|im_end|>"):
        (call,) = parse_tool_calls(output, TOOLS, format=form)
        assert (call.name, call.arguments) == ("book_table", BOOK)
        assert judged(name, output, TOOLS) == [("book_table", BOOK)]
        stream = ToolCallStream(TOOLS, format=form)
        for character in output:
            stream.feed(character)
        stream.close()
        assert [c.arguments for c in stream.result] == [BOOK]
    assert find_format(TEMPLATES[name][0]) == form


# What transformers reads otherwise: it strips text, ends a region at the first closer, and knows no spaces
# before keys in Gemma's notation, nor None; a string that spells a number is one where the schema takes both.
EDGES = {
    "object": r"</tool_call>(?!\s*<tool_call>|\s*\Z)",
    "other_keys": r"<\|(end_call|im_end)\|>(?!\s*<\|call\|>|\s*\Z)",
    "list": r"</TOOLCALL>(?!\s*\Z)",
    "headed": r"<\|call_end\|>(?!\s*<\|call_begin\|>|\s*\Z)",
    "elements": r"<parameter=[^>]*>\n?(\s|\n?</parameter>)|\s\n?</parameter>|None|True|False",
    "marked": r",\s|<tool_call\|>(?!\s*<\|tool_call>|\s*\Z)|None",
}


def compared(name: str, seeds: range) -> int:
    """How many calls of random texts of the grammar both read alike."""
    form, count = response_format(TEMPLATES[name][0]), 0
    for seed in seeds:
        rng = Random(f"response {name} {seed}")
        definitions = random_tools(rng)
        text = Writer(tool_shape(definitions, format=form, tool_choice="required", parallel=3), rng).text()
        got = [
            (c.name, c.arguments)
            for c in parse_tool_calls(text, definitions, format=form, reasoning="none", validate=False)
        ]
        arguments = [a for t in definitions for a in t["function"]["parameters"]["properties"].values()]
        untyped = name == "elements" and any(not isinstance(a.get("type"), str) for a in arguments)
        words = "|".join(map(re.escape, ("<think>", "</think>"))) + r'|"[-+.\de]*\d"'
        if untyped or re.search(EDGES[name], text) or re.search(words, text):
            continue
        assert judged(name, text, definitions) == got, text
        count += len(got)
    return count


@pytest.mark.parametrize("name", TEMPLATES)
def test_what_the_grammar_writes_transformers_reads(name: str) -> None:
    assert compared(name, range(60)) > 5


REFUSED = {
    "no calls": ({"fields": {"content": {}}}, "no field"),
    "text": (template(open="<a>", close="</a>", content="text"), "content 'text'"),
    "no opener": (template(close="</a>", content="json"), "no opener"),
    "lines": (template(open="<a>", close="</a>", content="kv-lines"), "kv-lines"),
    "free": (template(open_pattern=r"<a.*?>", close="</a>", content="json"), "row of literals"),
    "deep": (
        template(
            open="<a>",
            close="</a>",
            content="json",
            transform={"function": {"name": "{content.a.b}", "arguments": "{content.c}"}},
        ),
        "takes the name",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_layout_says_is_refused(name: str) -> None:
    given, why = REFUSED[name]
    with pytest.raises(ToolError, match=re.escape(why)):
        response_format(given)


def test_a_tokenizer_s_response_template_is_asked_after_its_chat_template() -> None:
    given = TEMPLATES["other_keys"][0]
    tokenizer = SimpleNamespace(
        chat_template="{{ messages }}",
        response_template=given,
        get_added_vocab=lambda: {"<|call|>": 7, "<|end_call|>": 8, "<|other|>": 9},
    )
    form = find_format(tokenizer)
    assert isinstance(form, Format) and form.name == "response_template"
    assert {"<|call|>", "<|end_call|>"} <= set(form.embedded) and "<|other|>" not in form.embedded
    tokenizer.chat_template = template_of(FORMATS["hermes"])
    assert find_format(tokenizer).name == "hermes"
    tokenizer.chat_template, tokenizer.response_template = "{{ messages }}", None
    with pytest.raises(ToolError):
        find_format(tokenizer)


def test_transformers_own_templates() -> None:
    serving = pytest.importorskip(
        "transformers.cli.serving.utils", reason="needs transformers' serving extra"
    )
    for given in serving._RESPONSE_TEMPLATE_FALLBACKS.values():
        form = response_format(given)
        assert form.reasoning[0] and json.dumps(given)
        assert tools(TOOLS, format=form)


@pytest.mark.parametrize(
    ("pattern", "rows"),
    [
        (r"\s*<a>", [["<a>"]]),
        (r"<a>(?P<name>[^>]+)>", [["<a>", Group("name", "[^>]+"), ">"]]),
        (r"<a>\s*<b>", [["<a>\n<b>"]]),
        (r"<(?:ab|c)>", [["<ab>"], ["<c>"]]),
        (r"<a>(?:\n)?", [["<a>\n"], ["<a>"]]),
        (r"<a>(?P<id>\d+(?:\)|[)]))x", [["<a>", Group("id", r"\d+(?:\)|[)])"), "x"]]),
        (r"<a.>", None),
        (r"<a>+", None),
        (r"(<a", None),
    ],
)
def test_spellings(pattern: str, rows: Any) -> None:
    assert spellings(pattern, 16) == rows
