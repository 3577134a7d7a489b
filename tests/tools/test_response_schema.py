# ruff: noqa: E501 (outputs are kept on one line)
"""Response schemas of transformers' tokenizers as formats: what their grammars write, transformers reads.

The judge, `chat_parsing_utils.recursive_parse`, came with transformers 5.0 and went after 5.12;
CHAT_PARSING_UTILS names a file of it where another version is installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
from functools import lru_cache
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("jinja2")

from tokenform.errors import ToolError
from tokenform.frontends.tools import find_format, parse_tool_calls, response_format, tool_shape
from tokenform.frontends.tools.literal_pattern import around

from .layouts import TOOLS
from .tree_writer import Writer, random_tools

NAMED = {"name": {"type": "string"}, "arguments": {"type": "object", "additionalProperties": {}}}


def schema(calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A schema whose calls are read like this."""
    properties = {"role": {"const": "assistant"}, "tool_calls": {"type": "array", **calls}}
    return {"type": "object", "properties": properties, **more}


def parsed(transform: str, **more: Any) -> dict[str, Any]:
    """Items that are JSON."""
    function = {"type": "object", "properties": NAMED}
    properties = {"type": {"const": "function"}, "function": function}
    parser = {"x-parser": "json", "x-parser-args": {"transform": transform}}
    return {"type": "object", **parser, "properties": properties, **more}


def headed(name: dict[str, Any], arguments: dict[str, Any], **function: Any) -> dict[str, Any]:
    """Items whose name and arguments are looked for."""
    inside = {"name": {"type": "string", **name}, "arguments": {"type": "object", **arguments}}
    return {
        "type": "object",
        "properties": {"function": {"type": "object", "properties": inside, **function}},
    }


LENIENT = {"additionalProperties": {"x-parser": "json", "x-parser-args": {"allow_non_json": True}}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "objects": schema(
        {
            "x-regex-iterator": r"<tool_call>\s*(.+?)\s*</tool_call>",
            "items": parsed("{type: 'function', function: @}"),
        }
    ),
    "other_keys": schema(
        {
            "x-regex-iterator": r"<\|call\|>(.*?)<\|end_call\|>",
            "items": parsed("{type: 'function', function: {name: tool, arguments: input}}"),
        }
    ),
    "list": schema(
        {
            "x-regex": r"<\|START_ACTION\|>(.*?)(?:<\|END_ACTION\|>|$)",
            "x-parser": "json",
            "x-parser-args": {
                "transform": "[*].{type: 'function', function: {name: tool_name, arguments: parameters}}"
            },
            "items": {"type": "any"},
        }
    ),
    "headed": schema(
        {
            "x-regex-iterator": r"<\|run\|>(.*?)<\|done\|>",
            "items": headed(
                {}, {"x-parser": "json"}, **{"x-regex": r"^to:(?P<name>\w+)\s*(?P<arguments>\{.*\})"}
            ),
        }
    ),
    "elements": schema(
        {
            "x-regex-iterator": r"<tool_call>\s*(.+?)\s*</tool_call>",
            "items": headed(
                {"x-regex": r"<function=([^\n>]+)>"},
                {
                    "x-regex-key-value": r"<parameter=(?P<key>[^>\n]+)>\n(?P<value>.*?)\n</parameter>",
                    "default": {},
                    **LENIENT,
                },
            ),
        }
    ),
    "keys_and_values": schema(
        {
            "x-regex-iterator": r"<tool_call>\s*(.+?)\s*</tool_call>",
            "items": headed(
                {"x-regex": r"^(\S+)"},
                {
                    "x-regex-key-value": r"<arg_key>(?P<key>[^<]+)</arg_key>\s*\n<arg_value>(?P<value>.*?)"
                    r"</arg_value>",
                    "default": {},
                    **LENIENT,
                },
            ),
        }
    ),
}
# What the judge reads otherwise: it ends a call at the first closer, strips values, and takes a raw value for
# JSON where it can be.
EDGES = {
    "objects": r"</tool_call>(?!\s*<tool_call>|\s*\Z)",
    "other_keys": r"<\|end_call\|>(?!\s*<\|call\|>|\s*\Z)",
    "list": r"<\|END_ACTION\|>(?!\s*\Z)",
    "headed": r"<\|done\|>(?!\s*<\|run\|>|\s*\Z)|<\|run\|>\s",
    "elements": r"</function>(?!\s*</tool_call>)|<parameter=[^>]*>(?!\n\S)|(?<!\S\n)</parameter>|True|False|None",
    "keys_and_values": r"</arg_key>(?!\n)|<arg_value>\s|\s</arg_value>|</tool_call>(?!\s*<tool_call>|\s*\Z)",
}


@lru_cache(maxsize=1)
def judge() -> Any:
    """The function that reads an output by a schema; the test is skipped where there is none."""
    pytest.importorskip("jmespath")
    try:
        from transformers.utils.chat_parsing_utils import recursive_parse

        return recursive_parse
    except ImportError:
        path = os.environ.get("CHAT_PARSING_UTILS", "")
    if not os.path.exists(path):
        pytest.skip("needs transformers 5.0 to 5.12, or CHAT_PARSING_UTILS with the path of its module")
    spec = importlib.util.spec_from_file_location("transformers.utils.chat_parsing_utils", path)
    assert spec and spec.loader
    import transformers.utils

    if not hasattr(transformers.utils, "is_jmespath_available"):  # gone with the module
        transformers.utils.is_jmespath_available = lambda: True
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.recursive_parse


def judged(name: str, text: str) -> list[tuple[str, Any]]:
    message = judge()(text, SCHEMAS[name])
    return [
        (c["function"]["name"], c["function"].get("arguments", {})) for c in message.get("tool_calls") or []
    ]


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_the_grammar_writes_transformers_reads(name: str) -> None:
    form, count = response_format(SCHEMAS[name]), 0
    for seed in range(600 if name == "elements" else 120):
        rng = Random(f"schema {name} {seed}")
        definitions = random_tools(rng)
        text = Writer(
            tool_shape(definitions, format=form, tool_choice="required", reasoning="none"), rng
        ).text()
        got = [
            (c.name, c.arguments) for c in parse_tool_calls(text, definitions, format=form, reasoning="none")
        ]
        kinds = [
            a.get("type") for t in definitions for a in t["function"]["parameters"]["properties"].values()
        ]
        bare = len(re.findall("<function=", text)) > len(re.findall(r"<tool_call>\s*<function=", text))
        raw = name in ("elements", "keys_and_values")
        if (
            bare
            or re.search(EDGES[name], text)
            or (raw and not set(map(str, kinds)) <= {"integer", "boolean", "object"})
        ):
            continue
        assert judged(name, text) == got, text
        count += len(got)
    assert count > 3


BOOK = ("book_table", {"place": "Zum Löwen", "guests": 4})
OBJECT = '{"place": "Zum Löwen", "guests": 4}'
TEXTS = {
    "objects": f'<tool_call>\n{{"name": "book_table", "arguments": {OBJECT}}}\n</tool_call>',
    "other_keys": f'<|call|>{{"tool": "book_table", "input": {OBJECT}}}<|end_call|>',
    "list": f'<|START_ACTION|>[{{"tool_name": "book_table", "parameters": {OBJECT}}}]<|END_ACTION|>',
    "headed": f"<|run|>to:book_table {OBJECT}<|done|>",
    "elements": "<tool_call>\n<function=book_table>\n<parameter=place>\nZum Löwen\n</parameter>\n<parameter=guests>"
    "\n4\n</parameter>\n</function>\n</tool_call>",
    "keys_and_values": "<tool_call>book_table\n<arg_key>place</arg_key>\n<arg_value>Zum Löwen</arg_value>\n"
    "<arg_key>guests</arg_key>\n<arg_value>4</arg_value>\n</tool_call>",
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_call_is_read(name: str) -> None:
    form = response_format(SCHEMAS[name])
    (call,) = parse_tool_calls(f"<think>Hm.</think>{TEXTS[name]}", TOOLS, format=form)
    assert (call.name, call.arguments) == BOOK


@pytest.mark.parametrize("name", SCHEMAS)
def test_transformers_reads_the_same(name: str) -> None:
    assert judged(name, TEXTS[name]) == [BOOK]


def test_known_layouts_are_the_formats_here() -> None:
    assert response_format(SCHEMAS["elements"]).name == "qwen3_coder"
    assert response_format(SCHEMAS["keys_and_values"]).name == "glm45"
    harmony = {
        "x-regex-iterator": r"(to=functions\.\S+<\|channel\|>commentary json<\|message\|>.*?<\|call\|>)"
    }
    assert response_format(schema(harmony)).name == "gpt_oss"
    bare = {
        "x-regex-iterator": r'(\{"name":\s*".+?",\s*"parameters":\s*.+\})',
        "items": parsed(
            "{type: 'function', function: @}",
            **{"x-regex-substitutions": [[r'^(\{"name":\s*"[^"]+",\s*)"parameters":', r'\1"arguments":']]},
        ),
    }
    assert response_format(schema(bare)).name == "llama3_json"


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ({"x-regex-iterator": "(.*)", "items": parsed("@")}, "no literal"),
        ({"x-regex-iterator": "(", "items": parsed("@")}, "no literal"),
        ({"x-regex-iterator": "<a>(.*?)</a>", "items": {}}, "no function"),
        ({"x-regex-iterator": "<a>(.*?)</a>", "items": headed({}, {"x-parser": "json"})}, "where the name"),
        (
            {
                "x-regex-iterator": "<a>(.*?)</a>",
                "items": headed({}, {"x-regex-key-value": "<(?P<key>.)>(?P<value>.)</b>"}),
            },
            "no format has",
        ),
        (
            {
                "x-regex-iterator": "<a>(.*?)</a>",
                "items": headed({}, {"x-parser": "yaml"}, **{"x-regex": "(?P<name>.):(?P<arguments>.)"}),
            },
            "'yaml'",
        ),
    ],
)
def test_what_does_not_tell_the_layout_is_refused(calls: dict[str, Any], why: str) -> None:
    with pytest.raises(ToolError, match=re.escape(why)):
        response_format(schema(calls))


def test_patterns_are_never_run() -> None:
    hang = r"<a>((x+x+)+y)</a>"
    form = response_format(schema({"x-regex-iterator": hang, "items": parsed("{function: @}")}))
    assert not parse_tool_calls("<a" + "x" * 5000, TOOLS, format=form)


def test_a_tokenizer_s_schema_is_asked_last() -> None:
    tokenizer = SimpleNamespace(chat_template="{{ messages }}", response_schema=SCHEMAS["headed"])
    assert find_format(tokenizer).wire.call[0] == "<|run|>to:" and json.dumps(SCHEMAS)


@pytest.mark.parametrize(
    ("pattern", "name", "sides"),
    [
        (r"^(?:<a>(?P<x>.+?)</a>)?\s*(?:<e>|$)", "x", ("<a>", "</a>")),
        (r"<a>\s*(.*?)\n?(?:<b>|$)", None, ("<a>", "<b>")),
        (r"a(b)", "x", None),
        (r"ab", None, None),
        (r"(", None, None),
    ],
)
def test_around(pattern: str, name: str | None, sides: Any) -> None:
    assert around(pattern, name) == sides
