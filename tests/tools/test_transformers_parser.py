"""Transformers' own parser for Qwen's calls reads what the grammar writes.

Its hermes template ends a call at the first closing tag, it makes a number of a text where the schema takes
both, and its Qwen 3.5 template strips values and wants the tag around a function: random outputs with a
closing tag in a string, a text that reads as a number, whitespace at a value's edge, or a bare function are
left out.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tokenform.frontends.tools import parse_tool_calls

from .hosts import needs
from .test_random_walks import walk

# Whitespace at a value's edge, which it strips.
EDGES = r"<parameter=[^>]*>\n(\s|\n?</parameter>)|\s\n</parameter>"

# It takes a text for a number, where the schema takes both.
TURNED = r'"\s*:\s*"(?:-?[0-9.]+|true|false|null)"|[\[,]\s*"(?:-?[0-9.]+|true|false|null)"'


def parsed(text: str, model: str, tools: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """The calls as transformers reads them."""
    serving = needs("transformers.cli.serving.utils")
    parse_response = needs("transformers.utils.chat_parsing.response_parser").parse_response
    template = next(t for models, t in serving._RESPONSE_TEMPLATE_FALLBACKS.items() if model in models)
    message = parse_response(text, template, prefix="<|im_start|>assistant\n", tools=tools)
    calls = [call["function"] for call in message.get("tool_calls", [])]
    return [
        (c["name"], json.loads(c["arguments"]) if isinstance(c["arguments"], str) else c["arguments"])
        for c in calls
    ]


def check(name: str, model: str, left_out: str, *, typed: bool = False) -> None:
    """typed: compare only where every argument has one type (it reads an untyped value as text)."""
    compared = 0
    for seed in range(160):
        definitions, text, _ = walk(name, seed, "required")
        calls = [(c.name, c.arguments) for c in parse_tool_calls(text, definitions, format=name)]
        arguments = [a for t in definitions for a in t["function"]["parameters"]["properties"].values()]
        bare = len(re.findall("<function=", text)) > len(re.findall(r"<tool_call>\s*<function=", text))
        if (
            bare
            or re.search(left_out, text)
            or (typed and any(not isinstance(a.get("type"), str) for a in arguments))
        ):
            continue
        assert parsed(text, model, definitions) == calls, text
        compared += len(calls)
    assert compared > 20


def test_hermes() -> None:
    check("hermes", "qwen3", rf"</tool_call>(?!\s*<tool_call>|\s*\Z)|{TURNED}")


def test_qwen3_coder() -> None:
    check("qwen3_coder", "qwen3_5", EDGES, typed=True)
