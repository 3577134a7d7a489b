"""Independent readers of well-formed outputs, each written from its format's documentation.

They share nothing with the library's reader: `json`, `ast` and regular expressions over the whole text, the
layouts of the templates only, with any whitespace at their joints.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import jsonschema

Calls = list[tuple[str, dict[str, Any]]]
_DECODER = json.JSONDecoder()


def read(name: str, text: str, tools: list[dict[str, Any]]) -> Calls:
    """The calls of a well-formed output."""
    schemas = {t["function"]["name"]: t["function"]["parameters"] for t in tools}
    text = _without_reasoning(name, text)
    if name in _LISTS:
        return _json_list(text, *_LISTS[name])
    if name in _HEADED:
        return _headed(text, _HEADED[name])
    if name in _TAGS:
        return _tagged(name, text, schemas)
    return _OTHERS[name](text)


_THINK = {"command_r": ("<|START_THINKING|>", "<|END_THINKING|>"), "mistral_v11": ("[THINK]", "[/THINK]")}


def _without_reasoning(name: str, text: str) -> str:
    opened, closed = _THINK.get(name, ("<think>", "</think>"))
    if text.lstrip().startswith(opened):
        body = text.split(opened, 1)[1]
        return body.split(closed, 1)[-1]
    return text


_LISTS = {
    "mistral_v3": ("[TOOL_CALLS]", "name", "arguments"),
    "granite": ("<|tool_call|>", "name", "arguments"),
    "phi4": ("functools", "name", "arguments"),
    "command_r": ("<|START_ACTION|>", "tool_name", "parameters"),
}


def _json_list(text: str, marker: str, name: str, arguments: str) -> Calls:
    if marker not in text:
        return []
    value, _ = _DECODER.raw_decode(text.split(marker, 1)[1].lstrip())
    return [(call[name], call[arguments]) for call in value]


# A pattern that ends right before the object of arguments; its group is the name.
_HEADED = {
    "mistral_v11": r"\[TOOL_CALLS\]\s*(\w+)\s*(?:\[CALL_ID\]\s*\w{9}\s*)?(?:\[ARGS\]\s*)?",
    "deepseek_v3": r"<｜tool▁call▁begin｜>\s*function\s*<｜tool▁sep｜>(\w+)\s*```json\s*",
    "deepseek_v31": r"<｜tool▁call▁begin｜>(\w+)<｜tool▁sep｜>\s*",
    "kimi_k2": r"<\|tool_call_begin\|>\s*functions\.(\w+):\d+\s*<\|tool_call_argument_begin\|>\s*",
    "gpt_oss": r"to=functions\.(\w+)(?: ?<\|channel\|>\w+)?(?: ?(?:<\|constrain\|>)?json)?<\|message\|>\s*",
}


def _headed(text: str, pattern: str) -> Calls:
    calls, at = [], 0
    while found := re.compile(pattern).search(text, at):
        value, at = _DECODER.raw_decode(text, found.end())
        calls.append((found.group(1), value))
    return calls


def _objects(text: str, marker: str) -> Calls:
    calls, at = [], 0
    while (at := text.find(marker, at)) >= 0:
        value, at = _DECODER.raw_decode(text, re.compile(r"\s*").match(text, at + len(marker)).end())
        calls.append((value["name"], value["arguments"]))
    return calls


def _llama_json(text: str) -> Calls:
    text, calls = text.lstrip().removeprefix("<|python_tag|>").lstrip(), []
    while re.match(r'\{\s*"name"\s*:\s*"', text):
        value, end = _DECODER.raw_decode(text)
        calls.append((value["name"], value["parameters"]))
        text = text[end:].lstrip().removeprefix(";").lstrip()
    return calls


def _plain_json(text: str) -> Calls:
    if not re.match(r'\s*(\[\s*)?\{\s*"name"\s*:\s*"', text):
        return []
    value = json.loads(text)
    return [(c["name"], c["arguments"]) for c in (value if isinstance(value, list) else [value])]


def _pythonic(text: str) -> Calls:
    text = text.strip().removeprefix("<|python_tag|>").lstrip()
    if not re.match(r"\[\s*\w+\(", text):
        return []
    tree = ast.parse(text, mode="eval").body
    assert isinstance(tree, ast.List)
    calls = []
    for call in tree.elts:
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        calls.append((call.func.id, {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}))
    return calls


_OTHERS = {
    "hermes": lambda text: _objects(text, "<tool_call>"),
    "granite_20b_fc": lambda text: _objects(text, "<function_call>"),
    "llama3_json": _llama_json,
    "llama3_pythonic": _pythonic,
    "llama4_pythonic": _pythonic,
    "json": _plain_json,
}

# One call with its name and body; one argument with its key, whether it is said to be a string, and its
# value.
_TAGS = {
    "qwen3_coder": (
        r"<tool_call>\s*<function=(?P<name>[^>]+)>\s*(?P<body>.*?)</function>\s*</tool_call>",
        r"<parameter=(?P<key>[^>]+)>\n?(?P<value>.*?)\n?</parameter>\s*",
    ),
    **dict.fromkeys(
        ("glm45", "glm47"),
        (
            r"<tool_call>(?P<name>\w+)\s*(?P<body>.*?)</tool_call>",
            r"<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>\s*",
        ),
    ),
    "minimax": (
        r'<invoke name="(?P<name>[^"]+)">\s*(?P<body>.*?)</invoke>\s*',
        r'<parameter name="(?P<key>[^"]+)">(?P<value>.*?)</parameter>\s*',
    ),
    "deepseek_v32": (
        r'<｜DSML｜invoke name="(?P<name>[^"]+)">\s*(?P<body>.*?)</｜DSML｜invoke>\s*',
        r'<｜DSML｜parameter name="(?P<key>[^"]+)" string="(?P<string>true|false)">'
        r"(?P<value>.*?)</｜DSML｜parameter>\s*",
    ),
}


def _tagged(name: str, text: str, schemas: dict[str, Any]) -> Calls:
    outer, inner = (re.compile(p, re.S) for p in _TAGS[name])
    calls = []
    for call in outer.finditer(text):
        arguments = {}
        properties = schemas[call["name"]]["properties"]
        assert inner.sub("", call["body"]) == ""
        for argument in inner.finditer(call["body"]):
            said = argument.groupdict().get("string")
            arguments[argument["key"]] = _typed(argument["value"], properties[argument["key"]], said)
        calls.append((call["name"], arguments))
    return calls


def _typed(text: str, schema: Any, said: str | None) -> Any:
    """JSON where it is said to be, or fits and is no string; else the text."""
    if said is not None:
        return text if said == "true" else json.loads(text)
    if schema.get("type") == "string":
        return text
    stringy = jsonschema.Draft202012Validator(schema).is_valid(text)
    try:
        value = (
            {"True": True, "False": False, "None": None}[text.strip()]
            if text.strip() in ("True", "False", "None") and not stringy
            else json.loads(text)
        )
    except ValueError:
        return text
    fits = jsonschema.Draft202012Validator(schema).is_valid(value)
    return value if fits and not isinstance(value, str) else text
