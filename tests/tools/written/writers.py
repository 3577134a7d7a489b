"""Each format's template, as pieces: what they are, so that a fault can take one away or change it.

Nothing of the library is used here: the texts are those of the model families' templates.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Piece:
    """A part of a call.

    role: "open" or "close" of a call; "name"; "frame", what stands between; "args", all of them as one text;
        "key", "value" and "end" of one argument.
    """

    role: str
    text: str
    key: str = ""


Pieces = list[Piece]


@dataclass(frozen=True)
class Writer:
    """One format.

    Attributes:
        section: what stands around all calls.
        between: what stands between two calls.
        call: the pieces of a call; the number is its place among the calls.
        family: what its arguments are: "json", "python", "marked", "tagged" or "elements".
        guess: calls have no marker: what is no call is text.
        fence: what opens and closes a thought.
        ending: what comes between a thought and the calls.
        text: what opens and closes the answer's text.
    """

    call: Callable[[int, str, dict[str, Any]], Pieces]
    section: tuple[str, str] = ("", "")
    between: str = ""
    family: str = "json"
    guess: bool = False
    fence: tuple[str, str] = ("<think>\n", "\n</think>")
    ending: str = "\n\n"
    text: tuple[str, str] = ("", "")


def spelled(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def frame(
    opened: str, closed: str, name: str = "name", arguments: str = "arguments", number: str = ""
) -> Callable[[int, str, dict[str, Any]], Pieces]:
    """The call as a JSON object."""

    def pieces(at: int, called: str, given: dict[str, Any]) -> Pieces:
        head = number.format(at) + f'"{name}": "'
        return [
            Piece("open", opened),
            Piece("frame", "{" + head),
            Piece("name", called),
            Piece("frame", f'", "{arguments}": '),
            Piece("args", spelled(given)),
            Piece("frame", "}"),
            Piece("close", closed),
        ]

    return pieces


def headed(opened: str, middle: str, closed: str) -> Callable[[int, str, dict[str, Any]], Pieces]:
    """The name, and the arguments as a JSON object."""

    def pieces(at: int, called: str, given: dict[str, Any]) -> Pieces:
        return [
            Piece("open", opened),
            Piece("name", called),
            Piece("frame", middle.format(at)),
            Piece("args", spelled(given)),
            Piece("close", closed),
        ]

    return pieces


def pythonic(at: int, called: str, given: dict[str, Any]) -> Pieces:
    body = ", ".join(f"{key}={value!r}" for key, value in given.items())
    return [Piece("name", called), Piece("frame", "("), Piece("args", body), Piece("close", ")")]


def tagged(
    opened: str,
    middle: str,
    closed: str,
    key: str,
    end: str,
    raw: Callable[[Any], str] = lambda value: value if isinstance(value, str) else spelled(value),
) -> Callable[[int, str, dict[str, Any]], Pieces]:
    """An element for each argument; `key` may hold {string}: true or false, and {type}."""

    def pieces(at: int, called: str, given: dict[str, Any]) -> Pieces:
        made = [Piece("open", opened), Piece("name", called), Piece("frame", middle.format(at + 1))]
        for name, value in given.items():
            kind = {str: "string", bool: "boolean", list: "array", dict: "object", type(None): "null"}
            told = {"string": spelled(isinstance(value, str)), "type": kind.get(type(value), "number")}
            made += [
                Piece("key", key.format(key=name, **told), name),
                Piece("value", raw(value), name),
                Piece("end", end, name),
            ]
        return [*made, Piece("close", closed)]

    return pieces


def as_python(value: Any) -> str:
    return str(value) if isinstance(value, (bool, str)) else spelled(value)


def marked(
    opened: str, closed: str, mark: str, scalar: str = ""
) -> Callable[[int, str, dict[str, Any]], Pieces]:
    def text(value: Any) -> str:
        if isinstance(value, str):
            return mark + value + mark
        if isinstance(value, dict):
            return "{" + ",".join(f"{k}:{text(v)}" for k, v in sorted(value.items())) + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(text, value)) + "]"
        return scalar + spelled(value) + scalar

    def pieces(at: int, called: str, given: dict[str, Any]) -> Pieces:
        made = [Piece("open", opened), Piece("name", called), Piece("frame", "{")]
        for place, (key, value) in enumerate(sorted(given.items())):
            made += [Piece("key", ("," if place else "") + key + ":", key), Piece("value", text(value), key)]
        return [*made, Piece("frame", "}"), Piece("close", closed)]

    return pieces


def elements(
    opened: str, middle: str, closed: str, element: Callable[[str | None, Any], tuple[str, str, str]]
) -> Callable[[int, str, dict[str, Any]], Pieces]:
    """`element` gives an argument's opener, inside and closer."""

    def pieces(at: int, called: str, given: dict[str, Any]) -> Pieces:
        made = [Piece("open", opened.format(at)), Piece("name", called), Piece("frame", middle)]
        for key, value in given.items():
            roles = zip(("key", "value", "end"), element(key, value), strict=True)
            made += [Piece(role, text, key) for role, text in roles]
        return [*made, Piece("close", closed)]

    return pieces


_M3 = "]<]minimax[>["


def minimax_m3(key: str | None, value: Any) -> tuple[str, str, str]:
    name = key or "item"
    return f"{_M3}<{name}>", _inside(minimax_m3, value, spelled), f"{_M3}</{name}>"


def command_a(key: str | None, value: Any) -> tuple[str, str, str]:
    kind = {str: "raw", dict: "dict", list: "list"}.get(type(value), "json")
    name = f' name="{key}"' if key else ""
    return f'<cofl:value{name} type="{kind}">', _inside(command_a, value, spelled), "</cofl:value>"


def _inside(
    element: Callable[[str | None, Any], tuple[str, str, str]], value: Any, scalar: Callable[[Any], str]
) -> str:
    if isinstance(value, dict):
        return "".join("".join(element(k, v)) for k, v in value.items())
    if isinstance(value, list):
        return "".join("".join(element(None, v)) for v in value)
    return value if isinstance(value, str) else scalar(value)


def dsml(section: str, space: str = "") -> Writer:
    mark = f"｜DSML｜{space}"
    key = f'<{mark}parameter name="{{key}}" string="{{string}}">'
    call = tagged(f'<{mark}invoke name="', '">\n', f"</{mark}invoke>\n", key, f"</{mark}parameter>\n")
    around = (f"\n\n<{mark}{section}>\n", f"</{mark}{section}>")
    return Writer(call, around, family="tagged", fence=("<think>", "</think>"), ending="")


def qwen(prefix: str, fence: str, inner: str, raw: Any = as_python) -> Writer:
    return Writer(
        tagged(
            f"<{prefix}tool_call>\n<function=", ">\n", f"</function>\n</{prefix}tool_call>",
            f"<parameter={{key}}>{inner}", f"{inner}</parameter>\n", raw,
        ),
        between="\n", family="tagged", fence=(f"<{fence}>\n", f"\n</{fence}>"),
    )  # fmt: skip


def glm(feed: str, section: tuple[str, str] = ("", ""), after: str = "", sep: str = "") -> Writer:
    key = f"<arg_key>{{key}}</arg_key>{feed}<arg_value>"
    call = tagged("<tool_call>", sep + feed, "</tool_call>" + after, key, f"</arg_value>{feed}")
    return Writer(call, section, between="" if after else feed, family="tagged", ending="\n")


def kimi_k3() -> Writer:
    call = tagged(
        '<|open|>call tool="', '" index="{}"<|sep|>', "<|close|>call<|sep|>",
        '<|open|>argument key="{key}" type="{type}"<|sep|>', "<|close|>argument<|sep|>",
    )  # fmt: skip
    section = ("<|open|>tools<|sep|>", "<|close|>tools<|sep|>")
    return Writer(
        call, section, family="tagged", fence=("<|open|>think<|sep|>", "<|close|>think<|sep|>"), ending="",
        text=("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
    )  # fmt: skip


_DEEP = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_R = {"fence": ("<think>", "</think>"), "ending": ""}
_START = {"fence": ("<|START_THINKING|>", "<|END_THINKING|>"), "ending": ""}

WRITERS: dict[str, Writer] = {
    "hermes": Writer(frame("<tool_call>\n", "\n</tool_call>"), between="\n"),
    "exaone": Writer(frame("<tool_call>", "</tool_call>"), between="\n"),
    "minimax_m1": Writer(frame("", ""), ("<tool_calls>\n", "\n</tool_calls>"), "\n"),
    "hunyuan": Writer(frame("", ""), ("<tool_calls>[", "]</tool_calls>"), ", "),
    "nemotron": Writer(frame("", ""), ("<TOOLCALL>[", "]</TOOLCALL>"), ", "),
    "mistral_v3": Writer(frame("", ""), ("[TOOL_CALLS][", "]"), ", "),
    "granite": Writer(frame("", ""), ("<|tool_call|>[", "]"), ", "),
    "phi4": Writer(frame("", ""), ("functools[", "]"), ", "),
    "firefunction": Writer(frame("", ""), ("functools[", "]"), ", "),
    "apriel": Writer(
        frame("", ""), ("<tool_calls>[", "]</tool_calls>"), ", ",
        fence=("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"),
    ),
    "functionary": Writer(headed("<function=", ">", "</function>")),
    "gigachat": Writer(frame("<|function_call|>", "")),
    "command_r": Writer(
        frame("", "", "tool_name", "parameters", '"tool_call_id": "{}", '),
        ("<|START_ACTION|>[\n    ", "\n]<|END_ACTION|>"), ",\n    ", **_START,
        text=("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ),
    "granite_20b_fc": Writer(frame("<function_call> ", ""), between=" "),
    "internlm": Writer(frame("<|action_start|><|plugin|>\n", "<|action_end|>", arguments="parameters")),
    "llama3_json": Writer(frame("", "", arguments="parameters"), between="; ", guess=True),
    "json": Writer(frame("", ""), ("[", "]"), ", ", guess=True),
    "deepseek_v3": Writer(
        headed("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n", "\n```<｜tool▁call▁end｜>"),
        _DEEP, "\n", **_R,
    ),
    "deepseek_v31": Writer(
        headed("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"), _DEEP, **_R
    ),
    "kimi_k2": Writer(
        headed("<|tool_call_begin|>functions.", ":{}<|tool_call_argument_begin|>", "<|tool_call_end|>"),
        ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"), **_R,
    ),
    "mistral_v11": Writer(headed("[TOOL_CALLS]", "[ARGS]", ""), fence=("[THINK]", "[/THINK]"), ending=""),
    "apertus": Writer(
        headed('{"', '": ', "}"), ("<|tools_prefix|>[", "]<|tools_suffix|>"), ", ",
        fence=("<|inner_prefix|>", "<|inner_suffix|>"), ending="",
    ),
    "lfm2": Writer(pythonic, ("<|tool_call_start|>[", "]<|tool_call_end|>"), ", ", "python"),
    "olmo3": Writer(pythonic, ("<function_calls>\n", "\n</function_calls>"), "\n", "python"),
    "llama3_pythonic": Writer(pythonic, ("[", "]"), ", ", "python", guess=True),
    "llama4_pythonic": Writer(pythonic, ("[", "]"), ", ", "python", guess=True),
    "qwen3_coder": qwen("", "think", "\n"),
    "seed_oss": qwen("seed:", "seed:think", "\n"),
    "mimo": qwen("", "think", ""),
    "glm45": glm("\n"),
    "ling": glm("\n"),
    "glm47": glm(""),
    "spark": glm(""),
    "hunyuan_v3": glm("\n", ("<tool_calls>\n", "</tool_calls>"), "\n", "<tool_sep>"),
    "minicpm5": Writer(
        tagged('<function name="', '">', "</function>", '<param name="{key}">', "</param>"), family="tagged",
    ),
    "minimax": Writer(
        tagged('<invoke name="', '">\n', "</invoke>\n", '<parameter name="{key}">', "</parameter>\n"),
        ("<minimax:tool_call>\n", "</minimax:tool_call>"), family="tagged",
    ),
    "step3": Writer(
        tagged(
            '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="', '">\n',
            "</steptml:invoke><｜tool_call_end｜>\n", '<steptml:parameter name="{key}">',
            "</steptml:parameter>\n",
        ),
        ("<｜tool_calls_begin｜>\n", "<｜tool_calls_end｜>"), family="tagged",
    ),
    "deepseek_v32": dsml("function_calls"),
    "deepseek_v4": dsml("tool_calls"),
    "deepseek_v41": dsml("calls", " "),
    "kimi_k3": kimi_k3(),
    "gemma4": Writer(
        marked("<|tool_call>call:", "<tool_call|>", '<|"|>'), family="marked",
        fence=("<|channel>thought\n", "<channel|>"), ending="",
    ),
    "functiongemma": Writer(
        marked("<start_function_call>call:", "<end_function_call>", "<escape>"), family="marked"
    ),
    "minimax_m3": Writer(
        elements(f'{_M3}<invoke name="', '">', f"{_M3}</invoke>\n", minimax_m3),
        (f"{_M3}<tool_call>\n", f"{_M3}</tool_call>"), family="elements",
        fence=("<mm:think>", "</mm:think>"), ending="",
    ),
    "command_a": Writer(
        elements('<cofl:tool_call id="{}" name="', '">', "</cofl:tool_call>", command_a),
        ("<cofl:tool_calls>", "</cofl:tool_calls>"), family="elements", **_START,
        text=("<|START_TEXT|>", "<|END_TEXT|>"),
    ),
    "gpt_oss": Writer(
        headed(
            "<|start|>assistant<|channel|>commentary to=functions.", " <|constrain|>json<|message|>",
            "<|call|>",
        ),
        fence=("<|channel|>analysis<|message|>", "<|end|>"), ending="",
        text=("<|channel|>final<|message|>", "<|end|>"),
    ),
}  # fmt: skip
"""The formats by name.  (A turn of gpt-oss begins behind its first `<|start|>assistant`, see `rows.py`.)"""
