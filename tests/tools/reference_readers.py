"""Independent readers of well-formed outputs, each written from its format's documentation.

They share nothing with the library's reader: `json`, `ast` and regular expressions over the whole text, exact
layouts only.
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


_THINK = {
    "apertus": ("<|inner_prefix|>", "<|inner_suffix|>"),
    "command_r": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "mistral_v11": ("[THINK]", "[/THINK]"),
    "seed_oss": ("<seed:think>", "</seed:think>"),
}


def _without_reasoning(name: str, text: str) -> str:
    opened, closed = _THINK.get(name, ("<think>", "</think>"))
    if text.lstrip().startswith(opened):
        body = text.split(opened, 1)[1]
        return body.split(closed, 1)[-1]
    return text


_LISTS = {
    "nemotron": ("<TOOLCALL>", "name", "arguments"),
    "hunyuan": ("<tool_calls>", "name", "arguments"),
    "mistral_v3": ("[TOOL_CALLS]", "name", "arguments"),
    "granite": ("<|tool_call|>", "name", "arguments"),
    "phi4": ("functools", "name", "arguments"),
    "command_r": ("<|START_ACTION|>", "tool_name", "parameters"),
}


def _json_list(text: str, marker: str, name: str, arguments: str) -> Calls:
    if marker not in text:
        return []
    value, _ = _DECODER.raw_decode(text.split(marker, 1)[1])
    return [(call[name], call[arguments]) for call in value]


# A pattern that ends right before the object of arguments; its group is the name.
_HEADED = {
    "apertus": r'\{"(\w+)": (?=\{.*<\|tools_suffix\|>)',
    "mistral_v11": r"\[TOOL_CALLS\](\w+)(?:\[CALL_ID\]\w{9})?\[ARGS\]",
    "deepseek_v3": r"<｜tool▁call▁begin｜>function<｜tool▁sep｜>(\w+)\n```json\n",
    "deepseek_v31": r"<｜tool▁call▁begin｜>(\w+)<｜tool▁sep｜>",
    "kimi_k2": r"<\|tool_call_begin\|>functions\.(\w+):\d+<\|tool_call_argument_begin\|>",
    "gpt_oss": r"<\|channel\|>commentary to=functions\.(\w+) <\|constrain\|>json<\|message\|>",
}


def _headed(text: str, pattern: str) -> Calls:
    calls, at = [], 0
    while found := re.compile(pattern).search(text, at):
        value, at = _DECODER.raw_decode(text, found.end())
        calls.append((found.group(1), value))
    return calls


def _objects(text: str, marker: str, arguments: str = "arguments") -> Calls:
    calls, at = [], 0
    while (at := text.find(marker, at)) >= 0:
        value, at = _DECODER.raw_decode(text, at + len(marker))
        calls.append((value["name"], value[arguments]))
    return calls


def _lines(text: str, opened: str, closed: str) -> list[str]:
    """What stands between two markers, line by line."""
    if opened not in text:
        return []
    return text.split(opened, 1)[1].split(closed, 1)[0].strip("\n").split("\n")


def _llama_json(text: str) -> Calls:
    text, calls = text.lstrip("\n").removeprefix("<|python_tag|>"), []
    while text.startswith('{"name": "'):
        value, end = _DECODER.raw_decode(text)
        calls.append((value["name"], value["parameters"]))
        text = text[end:].removeprefix("; ")
    return calls


def _plain_json(text: str) -> Calls:
    if not re.match(r'\n*\[?\{"name": "', text):
        return []
    value = json.loads(text)
    return [(c["name"], c["arguments"]) for c in (value if isinstance(value, list) else [value])]


def _pythonic(text: str) -> Calls:
    text = text.lstrip("\n").removeprefix("<|python_tag|>")
    if not re.match(r"\[\w+\(", text):
        return []
    tree = ast.parse(text, mode="eval").body
    assert isinstance(tree, ast.List)
    return [_python_call(call) for call in tree.elts]


class _Words(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant({"true": True, "false": False, "null": None}[node.id])


def _python_call(call: ast.expr) -> tuple[str, dict[str, Any]]:
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    values = {str(k.arg): ast.fix_missing_locations(_Words().visit(k.value)) for k in call.keywords}
    return call.func.id, {key: ast.literal_eval(value) for key, value in values.items()}


def _lfm2(text: str) -> Calls:
    _, marker, after = text.partition("<|tool_call_start|>")
    return _pythonic(after.split("<|tool_call_end|>")[0]) if marker else []


_OTHERS = {
    "hermes": lambda text: _objects(text, "<tool_call>\n"),
    "granite_20b_fc": lambda text: _objects(text, "<function_call> "),
    "llama3_json": _llama_json,
    "llama3_pythonic": _pythonic,
    "llama4_pythonic": _pythonic,
    "json": _plain_json,
    "exaone": lambda text: _objects(text, "<tool_call>"),
    "internlm": lambda text: _objects(text, "<|action_start|><|plugin|>\n", "parameters"),
    "lfm2": _lfm2,
    "minimax_m1": lambda text: [
        (call["name"], call["arguments"])
        for call in map(json.loads, _lines(text, "<tool_calls>\n", "\n</tool_calls>"))
    ],
    "olmo3": lambda text: [
        _python_call(ast.parse(line, mode="eval").body)
        for line in _lines(text, "<function_calls>\n", "\n</function_calls>")
    ],
}

# One call with its name and body; one argument with its key, whether it is said to be a string, and its
# value.
_QWEN = (
    r"<(?P<tag>{0}tool_call)>\n<function=(?P<name>[^>]+)>\n(?P<body>.*?)</function>\n</(?P=tag)>",
    r"<parameter=(?P<key>[^>]+)>{1}(?P<value>.*?){1}</parameter>\n",
)
_DSML = (
    r'<｜DSML｜{0}invoke name="(?P<name>[^"]+)">\n(?P<body>.*?)</｜DSML｜{0}invoke>\n',
    r'<｜DSML｜{0}parameter name="(?P<key>[^"]+)" string="(?P<string>true|false)">'
    r"(?P<value>.*?)</｜DSML｜{0}parameter>\n",
)
_TAGS = {
    "qwen3_coder": tuple(p.format("", r"\n") for p in _QWEN),
    "mimo": tuple(p.format("", "") for p in _QWEN),
    "seed_oss": tuple(p.format("seed:", "") for p in _QWEN),
    "glm45": (
        r"<tool_call>(?P<name>\w+)\n(?P<body>.*?)</tool_call>",
        r"<arg_key>(?P<key>.*?)</arg_key>\n<arg_value>(?P<value>.*?)</arg_value>\n",
    ),
    "glm47": (
        r"<tool_call>(?P<name>\w+)(?P<body>.*?)</tool_call>",
        r"<arg_key>(?P<key>.*?)</arg_key><arg_value>(?P<value>.*?)</arg_value>",
    ),
    "ling": (
        r"<tool_call>(?P<name>\w+)(?P<body>.*?)</tool_call>",
        r"<arg_key>(?P<key>.*?)</arg_key>\n?<arg_value>(?P<value>.*?)</arg_value>\n?",
    ),
    "minimax": (
        r'<invoke name="(?P<name>[^"]+)">\n(?P<body>.*?)</invoke>\n',
        r'<parameter name="(?P<key>[^"]+)">(?P<value>.*?)</parameter>\n',
    ),
    "step3": (
        r'<steptml:invoke name="(?P<name>[^"]+)">\n?(?P<body>.*?)</steptml:invoke>',
        r'<steptml:parameter name="(?P<key>[^"]+)">(?P<value>.*?)</steptml:parameter>\n?',
    ),
    "deepseek_v32": tuple(p.format("") for p in _DSML),
    "deepseek_v4": tuple(p.format("") for p in _DSML),
    "deepseek_v41": tuple(p.format(" ") for p in _DSML),
}


def _tagged(name: str, text: str, schemas: dict[str, Any]) -> Calls:
    outer, inner = (re.compile(p, re.S) for p in _TAGS[name])
    calls = []
    for call in outer.finditer(text):
        arguments = {}
        properties = schemas[call["name"]]["properties"]
        assert inner.sub("", call["body"]).strip("\n") == ""
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
            {"True": True, "False": False, "None": None}[text]
            if text in ("True", "False", "None") and not stringy
            else json.loads(text)
        )
    except ValueError:
        return text
    fits = jsonschema.Draft202012Validator(schema).is_valid(value)
    return value if fits and not isinstance(value, str) else text
