"""A tokenizer's `response_schema` as a format.

Purpose: tokenizers made for transformers 5.0 to 5.12 say how a turn is read as a JSON Schema with patterns
(`x-regex`, `x-regex-iterator`, `x-regex-key-value`) and parsers (`x-parser`).  What they look for around a
call, its name and its arguments is the layout of a format.
Invariant: the layout is the schema's, or that of the one format here whose markers are those that the schema
looks for: such a schema searches for some of the markers and does not say what stands between them.  What
neither says is refused.
Complexity: linear in the schema.  Its regular expressions are taken apart, never run (they backtrack).
Source: transformers 5.12, `utils/chat_parsing_utils.py`.
Rejected: running the schema over outputs of each format here (a pattern in it could hang the reader).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.formats import FORMATS
from tokenform.frontends.tools.judge import fault
from tokenform.frontends.tools.layout import (
    Format,
    JsonArguments,
    JsonCall,
    MarkedArguments,
    Name,
    Part,
    Tagged,
    Wire,
)
from tokenform.frontends.tools.literal_pattern import around

REASONING = ("reasoning_content", "reasoning", "thinking")
_SUBSTITUTED = re.compile(r'"(\w+)":$')
# What is read of a node; its other keys are the schema's own.
_SHAPE = """{"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
  "x-regex": {"type": "string"}, "x-regex-iterator": {"type": "string"},
  "x-regex-key-value": {"type": "string"}, "x-parser": {"type": "string"},
  "x-parser-args": {"type": "object"},
  "x-regex-substitutions": {"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 2}},
  "items": {"$ref": "#/$defs/node"},
  "properties": {"type": "object", "additionalProperties": {"$ref": "#/$defs/node"}}}}}}"""


def check_shape(given: Any, shape: str, what: str) -> None:
    """Raise unless what a tokenizer says has the shape, a schema's text, that is read below.

    Raises:
        ToolError: with the place.
    """
    found = fault(given, shape)
    if found:
        raise ToolError(f"the {what} can't be read, at {found[0] or '/'}: {found[1]}", pointer=found[0])


def schema_format(schema: Mapping[str, Any]) -> Format:
    """The format of a `response_schema`.

    Raises:
        ToolError: the schema has no calls, or does not tell how they are laid out; the message says why.
    """
    check_shape(schema, _SHAPE, "response schema")
    whole, properties = str(schema.get("x-regex", "")), schema.get("properties")
    field = properties.get("tool_calls") if isinstance(properties, Mapping) else None
    if not isinstance(properties, Mapping) or not isinstance(field, Mapping):
        raise ToolError("the response schema has no property 'tool_calls': it says nothing of tool calls")
    if "to=functions" in str(field.get("x-regex-iterator", "")).replace("\\", ""):
        return FORMATS["gpt_oss"]
    edges = _edges(whole, field)
    wire = _wire(field, *edges)
    if isinstance(wire, Format):
        return wire
    thoughts = next((_fence(whole, properties[n], n) for n in REASONING if n in properties), None)
    fences = tuple(filter(None, _fence(whole, properties.get("content", {}), "content") or ()))
    return Format(
        name="response_schema",
        models="any model whose tokenizer has a response schema",
        wire=wire,
        embedded=tuple(dict.fromkeys(t for t in (*edges, *fences) if re.fullmatch(r"<\S+>", t))),
        reasoning=thoughts if thoughts and all(thoughts) else ("<think>", "</think>"),
        prompt_opens=True,
        dropped=(*fences, "<|im_end|>", "<|endoftext|>"),
    )


def _edges(whole: str, field: Mapping[str, Any]) -> tuple[str, str]:
    """What stands around a call, or a list of calls."""
    for pattern, group in (
        (field.get("x-regex-iterator"), None),
        (field.get("x-regex"), None),
        (whole, "tool_calls"),
    ):
        found = around(str(pattern), group) if pattern else None
        if found and (found[0] or found[1]):
            return found
    if '{"name"' in str(field.get("x-regex-iterator", "")):
        return "", ""
    raise _refused("its patterns have no literal before the calls")


def _wire(field: Mapping[str, Any], before: str, after: str) -> Wire | Format:
    """The layout of the calls, or the format here that it is."""
    items = field.get("items", {})
    parser, transform = _parsed(field)
    if parser == "json" and "[*]" in transform:
        name, arguments = _renamed(transform, "name"), _renamed(transform, "arguments")
        return Wire(call=(JsonCall(name, arguments),), section=(before + "[", "]" + after), between=", ")
    if parser != "json":
        parser, transform = _parsed(items)
    if parser == "json":
        name, arguments = _renamed(transform, "name"), _renamed(transform, "arguments")
        for pattern, _ in items.get("x-regex-substitutions", []):
            turned = _SUBSTITUTED.search(str(pattern))
            arguments = turned.group(1) if turned else arguments
        if not before:  # calls without a marker
            return FORMATS["llama3_json" if arguments == "parameters" else "json"]
        return Wire(call=(before, JsonCall(name, arguments), *filter(None, (after,))), between="\n")
    function = items.get("properties", {}).get("function", items)
    inside = function.get("properties", {}) if isinstance(function, Mapping) else {}
    if not {"name", "arguments"} <= set(inside):
        raise _refused("its items have no function with a name and arguments")
    return _headed(function, inside, before, after)


def _headed(function: Mapping[str, Any], inside: Mapping[str, Any], before: str, after: str) -> Wire | Format:
    """A call with its name before the arguments."""
    arguments = inside["arguments"]
    pairs = arguments.get("x-regex-key-value")
    if pairs:
        return _with_elements(str(pairs), before)
    head = around(str(function.get("x-regex", "")), "name")
    if head is None:
        raise _refused("nothing tells where the name stands")
    parser = arguments.get("x-parser")
    if parser not in ("json", "gemma4-tool-call"):
        raise _refused(f"its arguments are read by {parser!r}")
    body: Part = JsonArguments() if parser == "json" else MarkedArguments('<|"|>', '<|"|>')
    parts = (before + head[0], Name(), head[1], body, after)
    return Wire(call=tuple(p for p in parts if p), between="\n" if parser == "json" else "")


def _with_elements(pattern: str, opener: str) -> Format:
    """The format here whose arguments are these elements: the schema does not say what follows the last."""
    key, value = around(pattern, "key"), around(pattern, "value")
    if key is None or value is None:
        raise _refused("x-regex-key-value has no groups 'key' and 'value'")
    lines = "\\n" in pattern or "\n" in pattern
    found: list[tuple[bool, Format]] = []
    for form in FORMATS.values():
        for part in form.wire.call:
            if not isinstance(part, Tagged) or opener not in (form.opener(form.wire), ""):
                continue
            markers = ["".join(text.split()) for text in (part.before, part.middle, part.after)]
            if markers == [key[0], key[1], value[1]]:
                found.append((("\n" in part.middle) == lines, form))
    if not found:
        raise _refused(f"it does not say what follows the last argument, and no format has {pattern!r}")
    return max(found, key=lambda one: (one[0], not one[1].prompt_opens))[1]


def _parsed(node: Any) -> tuple[str, str]:
    """Which parser reads the node, and what is made of what it reads."""
    if not isinstance(node, Mapping):
        return "", ""
    return str(node.get("x-parser", "")), str(node.get("x-parser-args", {}).get("transform", ""))


def _renamed(transform: str, key: str) -> str:
    """The key that a transform takes the function's `key` from."""
    found = re.search(rf"\b{key}: *(\w+)", transform)
    return found.group(1) if found else key


def _fence(whole: str, field: Any, name: str) -> tuple[str, str] | None:
    """What stands around a text."""
    own = field.get("x-regex") if isinstance(field, Mapping) else None
    return around(str(own), None) if own else around(whole, name)


def _refused(why: str) -> ToolError:
    return ToolError(
        f"the response schema can't be read as a tool format: {why}; name a format with format=, or write one"
        " (tf.tools.Format)"
    )
