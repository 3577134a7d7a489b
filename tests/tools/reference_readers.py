"""Independent readers of well-formed outputs, each written from its format's documentation.

They share nothing with the library's reader: `json`, `ast` and regular expressions over the whole text, the
layouts of the templates only, with any whitespace at their joints.
"""

from __future__ import annotations

import ast
import json
import re
from contextlib import suppress
from typing import Any

import jsonschema

Calls = list[tuple[str, dict[str, Any]]]
_DECODER = json.JSONDecoder()


def read(name: str, text: str, tools: list[dict[str, Any]]) -> Calls:
    """The calls of a well-formed output."""
    schemas = {t["function"]["name"]: t["function"]["parameters"] for t in tools}
    text = _without_reasoning(name, text)
    closed = _THINK.get(name, ("<think>", "</think>"))[1]
    before, mark, after = text.partition(closed)
    if mark and name in _OPENED and not _has_calls(name, before, schemas):  # the prompt opened the block
        text = after
    return _read(name, text, schemas)


def _has_calls(name: str, text: str, schemas: Any) -> bool:
    try:
        return bool(_read(name, text, schemas))
    except (ValueError, AssertionError, SyntaxError, LookupError):
        return False


def _read(name: str, text: str, schemas: Any) -> Calls:
    if name in _LISTS:
        return _json_list(text, *_LISTS[name])
    if name in _HEADED:
        return _headed(text, _HEADED[name])
    if name in _TAGS:
        return _tagged(name, text, schemas)
    if name in _NESTED:
        return _NESTED[name](text, schemas)
    return _OTHERS[name](text)


# Formats whose prompts open the reasoning block.
_OPENED = ("nemotron", "exaone", "step3", "mimo", "seed_oss", "olmo3", "ling", "command_a", "minimax_m3")
_OPENED += ("deepseek_v4", "deepseek_v41", "apriel")
_THINK = {
    "apriel": ("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"),
    "apertus": ("<|inner_prefix|>", "<|inner_suffix|>"),
    "command_r": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "mistral_v11": ("[THINK]", "[/THINK]"),
    "command_a": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "gemma4": ("<|channel>", "<channel|>"),
    "kimi_k3": ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    "minimax_m3": ("<mm:think>", "</mm:think>"),
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
    "mistral_v3": (r"\[TOOL_CALLS\]", "name", "arguments"),
    "granite": (r"<\|?tool_call\|?>", "name", "arguments"),
    "phi4": ("functools", "name", "arguments"),
    "firefunction": ("functools", "name", "arguments"),
    "apriel": ("<tool_calls>", "name", "arguments"),
    "command_r": (r"<\|START_ACTION\|>", "tool_name", "parameters"),
}


def _json_list(text: str, marker: str, name: str, arguments: str) -> Calls:
    found = re.search(marker, text)
    if not found:
        return []
    value, _ = _DECODER.raw_decode(text[found.end() :].lstrip())
    return [(call[name], call[arguments]) for call in value]


# A pattern that ends right before the object of arguments; its group is the name.
_HEADED = {
    "functionary": r"<function=(\w+)>\s*",
    "mistral_v11": r"\[TOOL_CALLS\]\s*(\w+)\s*(?:\[CALL_ID\]\s*\w{9}\s*)?(?:\[ARGS\]\s*)?",
    "deepseek_v3": r"<｜tool▁call▁begin｜>\s*function\s*<｜tool▁sep｜>(\w+)\s*```json\s*",
    "deepseek_v31": r"<｜tool▁call▁begin｜>(\w+)<｜tool▁sep｜>\s*",
    "kimi_k2": r"<\|tool_call_begin\|>\s*(?:functions\.)?(\w+):\d+\s*<\|tool_call_argument_begin\|>\s*",
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
        calls.append((value["name"], value["arguments"] if "arguments" in value else value["parameters"]))
    return calls


def _row(text: str, closed: str) -> Calls:
    """Objects side by side."""
    calls: Calls = []
    while (text := text.lstrip()) and not text.startswith(closed):
        value, end = _DECODER.raw_decode(text)
        calls.append((value["name"], value["arguments"]))
        text = text[end:]
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
    value, _ = _DECODER.raw_decode(text.lstrip())
    return [(c["name"], c["arguments"]) for c in (value if isinstance(value, list) else [value])]


def _pythonic(text: str) -> Calls:
    text = text.strip().removeprefix("<|python_tag|>").lstrip()
    text = text.partition("<|python_start|>")[2].lstrip() or text
    if not re.match(r"\[\s*\w+\(", text):
        return []
    tree = _python(text)
    assert isinstance(tree, ast.List)
    return [_python_call(call) for call in tree.elts]


def _python(text: str) -> ast.expr:
    """The list that the text begins with."""
    for end in (found.end() for found in re.finditer(r"\]", text)):
        try:
            return ast.parse(text[:end], mode="eval").body
        except SyntaxError:
            continue
    raise AssertionError("no list")


class _Words(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant({"true": True, "false": False, "null": None}[node.id])


def _python_call(call: ast.expr) -> tuple[str, dict[str, Any]]:
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    values = {str(k.arg): ast.fix_missing_locations(_Words().visit(k.value)) for k in call.keywords}
    return call.func.id, {key: ast.literal_eval(value) for key, value in values.items()}


def _python_row(text: str) -> Calls:
    """Calls side by side: each ends at the first bracket up to which it is an expression."""
    calls = []
    while text:
        for end in (m.end() for m in re.finditer(r"\)", text)):
            with suppress(SyntaxError):
                calls.append(_python_call(ast.parse(text[:end], mode="eval").body))
                text = text[end:].lstrip()
                break
        else:
            raise ValueError(f"no call: {text!r}")
    return calls


def _between(text: str, opened: str, closed: str) -> str:
    return text.partition(opened)[2].partition(closed)[0]


def _lfm2(text: str) -> Calls:
    inside = text.partition("<|tool_call_start|>")[2]
    if re.match(r"\s*\[\s*\{", inside):
        return [(call["name"], call["arguments"]) for call in _DECODER.raw_decode(inside.lstrip())[0]]
    return _pythonic(inside.partition("<|tool_call_end|>")[0])


_OTHERS = {
    "hermes": lambda text: _objects(text, "<tool_call>"),
    "granite_20b_fc": lambda text: _objects(text, "<function_call>"),
    "llama3_json": _llama_json,
    "llama3_pythonic": _pythonic,
    "llama4_pythonic": _pythonic,
    "json": _plain_json,
    "apertus": lambda text: [
        next(iter(call.items()))
        for call in _DECODER.raw_decode(text.partition("<|tools_prefix|>")[2].lstrip() or "[]")[0]
    ],
    "gigachat": lambda text: _objects(
        text.replace("<|message_sep|>\n\nfunction call<|role_sep|>\n", "<|function_call|>"),
        "<|function_call|>",
    ),
    "exaone": lambda text: _objects(text, "<tool_call>"),
    "internlm": lambda text: _objects(text, "<|plugin|>"),
    "lfm2": _lfm2,
    "olmo3": lambda text: _python_row(_between(text, "<function_calls>", "</function_calls>").strip()),
    "minimax_m1": lambda text: _row(text.partition("<tool_calls>")[2], "</tool_calls>"),
}

# One call with its name and body; one argument with its key, whether it is said to be a string, and its
# value.
_QWEN = (
    r"(?:<{0}tool_call>\s*)?<function=(?P<name>[^>]+)>\s*(?P<body>.*?)</function>",
    r"<parameter=(?P<key>[^>]+)>{1}(?P<value>.*?){1}</parameter>\s*",
)
_DSML = (
    r'<｜DSML｜{0}invoke name="(?P<name>[^"]+)"(?:/>|>\s*(?P<body>.*?)</｜DSML｜{0}invoke>)\s*',
    r'<｜DSML｜{0}parameter name="(?P<key>[^"]+)" string="(?P<string>true|false)">'
    r"(?P<value>.*?)</｜DSML｜{0}parameter>\s*",
)
_TAGS = {
    "qwen3_coder": tuple(p.format("", r"\n?") for p in _QWEN),
    "mimo": tuple(p.format("", "") for p in _QWEN),
    "seed_oss": tuple(p.format("seed:", r"\n?") for p in _QWEN),
    **dict.fromkeys(
        ("glm45", "glm47", "ling", "spark"),
        (
            r"<tool_call>(?P<name>\w+)\s*(?P<body>.*?)</tool_call>",
            r"<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>\s*",
        ),
    ),
    "hunyuan_v3": (
        r"<tool_call>(?P<name>\w+)\s*(?:<tool_sep>)?\s*(?P<body>.*?)</tool_call>",
        r"<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>\s*",
    ),
    "minimax": (
        r'<invoke name="(?P<name>[^"]+)">\s*(?P<body>.*?)</invoke>\s*',
        r'<parameter name="(?P<key>[^"]+)">(?P<value>.*?)</parameter>\s*',
    ),
    "minicpm5": (
        r'<function name="(?P<name>[^"]+)">\s*(?P<body>.*?)</function>\s*',
        r'<param name="(?P<key>[^"]+)">(?P<value>.*?)</param>\s*',
    ),
    "step3": (
        r'<steptml:invoke name="(?P<name>[^"]+)">\s*(?P<body>.*?)</steptml:invoke>',
        r'<steptml:parameter name="(?P<key>[^"]+)">(?P<value>.*?)</steptml:parameter>\s*',
    ),
    "kimi_k3": (
        r'<\|open\|>call tool="(?P<name>[^"]+)" index="\d+"<\|sep\|>\s*(?P<body>.*?)<\|close\|>call<\|sep\|>',
        r'<\|open\|>argument key="(?P<key>[^"]+)" type="(?P<string>\w+)"<\|sep\|>'
        r"(?P<value>.*?)<\|close\|>argument<\|sep\|>\s*",
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
        properties, body = schemas[call["name"]]["properties"], call["body"] or ""
        if body.lstrip().startswith("{"):  # all arguments as one object
            calls.append((call["name"], json.loads(body)))
            continue
        assert inner.sub("", body).strip() == ""
        for argument in inner.finditer(body):
            said = argument.groupdict().get("string")
            arguments[argument["key"]] = _typed(argument["value"], properties[argument["key"]], said)
        calls.append((call["name"], arguments))
    return calls


def _typed(text: str, schema: Any, said: str | None) -> Any:
    """JSON where it is said to be, or fits and is no string; else the text."""
    if said is not None:
        return text if said in ("true", "string") else json.loads(text)
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


def _gemma(opened: str, mark: str, closed: str) -> Any:
    """Gemma's calls: strings between marks, keys without quotes."""
    quote, ends = re.escape(mark), (closed, "<turn|>")
    token = re.compile(rf"\s*(?:{quote}(?P<text>.*?){quote}\s*|[{{}}\[\]:,]\s*|[^{{}}\[\]:,]+)", re.S)

    def read_calls(text: str, schemas: Any) -> Calls:
        calls: Calls = []
        while begun := re.search(rf"{re.escape(opened)}\s*(?:call)?:", text):
            name, _, text = text[begun.end() :].partition("{")
            written, depth, at = "{", 1, 0
            while depth:
                found = token.match(text, at)
                assert found
                at, piece = found.end(), found.group().strip()
                if found["text"] is not None:
                    piece = json.dumps(found["text"])
                elif text[at : at + 1] == ":" and piece not in ("", "{", "["):
                    piece = json.dumps(piece)
                depth += (piece == "{") - (piece == "}")
                written += "null" if piece == "None" else piece
            text = text[at:].lstrip()
            assert text.startswith(ends)
            calls.append((name.strip(), _unmarked(json.loads(written), schemas[name.strip()])))
        return calls

    return read_calls


def _unmarked(value: Any, schema: Any) -> Any:
    """The value with strings that the schema does not take as the JSON that they hold."""
    said = schema if isinstance(schema, dict) else {}
    if isinstance(value, str):
        valid = jsonschema.Draft202012Validator(schema).is_valid(value)
        return value if valid else json.loads("null" if value == "None" else value)
    if isinstance(value, list):
        return [_unmarked(item, said.get("items", True)) for item in value]
    if isinstance(value, dict):
        inside = said.get("properties", {})
        return {
            k: _unmarked(v, inside.get(k, said.get("additionalProperties", True))) for k, v in value.items()
        }
    return value


def _children(text: str, tag: re.Pattern[str]) -> list[tuple[re.Match[str], str]]:
    """The elements right below: what opens each, and what stands in it."""
    found, depth, opened = [], 0, None
    for mark in tag.finditer(text):
        if mark["end"]:
            depth -= 1
            if depth == 0 and opened is not None:
                found.append((opened, text[opened.end() : mark.start()]))
        else:
            opened = mark if depth == 0 else opened
            depth += 1
    return found


_PARAM = re.compile(
    r'<cofl:tool_param name="(?P<name>[^"]*)" string="(?P<string>\w+)">(?P<value>.*?)</cofl:tool_param>', re.S
)
_M3 = re.compile(r"\]<\]minimax\[>\[<(?P<end>/?)(?P<name>[^<>]+)>")
_COFL = re.compile(r'<(?P<end>/?)cofl:value(?: name="(?P<name>[^"]*)")?(?: type="(?P<type>\w+)")?>')


def _m3(text: str, schemas: Any) -> Calls:
    pattern = r'\]<\]minimax\[>\[<invoke name="([^"]+)">(.*?)\]<\]minimax\[>\[</invoke>'
    return [
        (
            name,
            {
                c["name"]: _m3_value(b, schemas[name]["properties"][c["name"]])
                for c, b in _children(body, _M3)
            },
        )
        for name, body in re.findall(pattern, text, re.S)
    ]


def _m3_value(body: str, schema: Any) -> Any:
    below = _children(body, _M3)
    kinds = schema.get("type", []) if isinstance(schema, dict) else []
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if below and "array" in kinds and below[0][0]["name"] == "item":
        return [_m3_value(b, schema.get("items", True)) for _, b in below]
    if below:
        properties = schema.get("properties", {})
        return {c["name"]: _m3_value(b, properties.get(c["name"], True)) for c, b in below}
    if not isinstance(schema, dict) or not schema:
        return {"true": True, "false": False, "null": None}.get(body.strip(), body)
    if not body.strip() and kinds in (["array"], ["object"]):
        return [] if kinds == ["array"] else {}
    return _typed(body, schema, None)


def _cofl(text: str, _: Any) -> Calls:
    pattern = r'<cofl:tool_call id="[^"]*" name="([^"]+)">(.*?)</cofl:tool_call>'
    return [
        (
            name,
            {c["name"]: _cofl_value(c, b) for c, b in _children(body, _COFL)}
            | {p["name"]: _typed(p["value"], {}, p["string"]) for p in _PARAM.finditer(body)},
        )
        for name, body in re.findall(pattern, text, re.S)
    ]


def _cofl_value(opened: re.Match[str], body: str) -> Any:
    kind = opened["type"]
    if kind in ("dict", "list"):
        below = [(c["name"], _cofl_value(c, b)) for c, b in _children(body, _COFL)]
        return dict(below) if kind == "dict" else [value for _, value in below]
    return body if kind == "raw" else json.loads(body)


_NESTED = {
    "gemma4": _gemma("<|tool_call>", '<|"|>', "<tool_call|>"),
    "functiongemma": _gemma("<start_function_call>", "<escape>", "<end_function_call>"),
    "minimax_m3": _m3,
    "command_a": _cofl,
}
