"""Formats of 2025 and 2026 that mark every argument up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .cases import BOOK, NOTE_N, OB, PING, PLAY, QUOTED, Layout

# Writes one argument: its key, its value, and whether that is a string.
Argument = Callable[[str, str, bool], str]
Write = Callable[[str, str], str]
Block = Callable[..., str]
HTML = "<p>a < b</p></x"


def shared(
    form: str, arg: Argument, call: Write, block: Block, think: tuple[str, str] = ("<think>", "</think>")
) -> list[Layout]:
    """What holds for every format: `call` writes one, `block` several with the markers around them."""

    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, form, tier, output, calls, **more)

    def note(key: str, value: str, string: bool) -> str:
        return block(call("note", arg(key, value, string)))

    place, guests = arg("place", "Zum Löwen", True), arg("guests", "4", False)
    song = arg("song", "Ode an die Freude", True)
    b, p = call("book_table", place + guests), call("play", song + arg("volume", "0.5", False))
    values = arg("tags", '["a", "b"]', False) + arg("meta", '{"x": {"y": [1, 2.5, null, true]}}', False)
    nulls = arg("until", "null", False) + arg("owner", "Ada", True)
    opened, closed = think
    x = arg("song", "x", True)
    return [
        at("two", "must", block(b, p), BOOK, PLAY, choice="required"),
        at("auto", "must", block(b), BOOK),
        at("empty", "must", block(call("ping", "")), PING, choice="required"),
        at("quoted", "must", note("text", QUOTED["text"], True), ("note", QUOTED)),
        at("html", "must", note("text", HTML, True), ("note", {"text": HTML})),
        at("number_in_text", "must", note("text", "007", True), ("note", {"text": "007"})),
        at("json_in_text", "must", note("text", '{"a": 1}', True), ("note", {"text": '{"a": 1}'})),
        at("empty_value", "must", note("text", "", True), ("note", {"text": ""})),
        at("lines", "must", note("text", "a\n\n  b", True), ("note", {"text": "a\n\n  b"})),
        at("values", "must", block(call("note", values)), NOTE_N, choice="required"),
        at("nullable", "must", block(call("note", nulls)), ("note", {"until": None, "owner": "Ada"})),
        at("enum", "must", note("mood", "calm", True), ("note", {"mood": "calm"})),
        at("text", "must", "Gern.\n\n" + block(b), BOOK, free=True),
        at("plain", "must", "1 < 2 <b>", content="1 < 2 <b>"),
        at("thought", "must", f"{opened}A table.{closed}" + block(b), BOOK, reasoning="A table."),
        at(
            "thought_feeds",
            "must",
            f"{opened}\nA table.\n{closed}\n\n" + block(b),
            BOOK,
            reasoning="A table.",
            choice="required",
        ),
        at("opened", "must", f"A table.{closed}" + block(b), BOOK, reasoning="A table."),
        at("order", "read", block(call("book_table", guests + place)), BOOK),
        at("text_after", "read", block(b) + "\nDone.", BOOK, free=True),
        at("feed_after", "read", block(b) + "\n", BOOK),
        at("in_thought", "read", f"{opened}Hm." + block(call("ping", "")), PING, reasoning="Hm."),
        at("unknown", "refuse", block(call("stop", ""))),
        at("prefix_name", "refuse", block(call("pl", x))),
        at("unknown_key", "refuse", block(call("ping", x)), readable=True),
        at("missing", "refuse", block(call("book_table", guests))),
        at("wrong_type", "refuse", block(call("book_table", place + arg("guests", "four", False)))),
        at("enum_wrong", "refuse", note("mood", "angry", True)),
        at("twice", "refuse", block(call("play", x + x))),
        at("cut", "refuse", block(b)[:-5]),
        at("json_body", "refuse", "<tool_call>\n" + OB + "\n</tool_call>", choice="required", readable=True),
    ]


def dsml(form: str, section: str, space: str) -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, form, tier, output, calls, **more)

    d = "｜DSML｜" + space

    def arg(key: str, value: str, string: bool) -> str:
        return f'<{d}parameter name="{key}" string="{str(string).lower()}">{value}</{d}parameter>\n'

    def call(name: str, body: str) -> str:
        return f'<{d}invoke name="{name}">\n{body}</{d}invoke>\n'

    def block(*calls: str) -> str:
        return f"\n\n<{d}{section}>\n{''.join(calls)}</{d}{section}>"

    song = arg("song", "x", True)
    x = ("play", {"song": "x"})
    return [
        *shared(form, arg, call, block),
        at("empty_line", "read", block(call("ping", "\n")), PING),
        at("null_text", "must", block(call("note", arg("owner", "null", True))), ("note", {"owner": "null"})),
        at("null_owner", "must", block(call("note", arg("owner", "null", False))), ("note", {"owner": None})),
        at("tight", "read", block(call("play", song)).replace("\n", ""), x),
        at("no_mark", "read", block(call("play", song.replace(' string="true"', ""))), x),
        at("json", "read", block(call("play", '{"song": "x"}\n')), x),
        at("end_token", "read", block(call("play", song)) + "<｜end▁of▁sentence｜>", x),
        at("no_marker", "refuse", block(call("ping", "")).replace("｜DSML｜", ""), choice="required"),
    ]


def deepseek_v4() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "deepseek_v4", tier, output, calls, **more)

    d = "｜DSML｜"
    ping, closed = f'<{d}invoke name="ping">\n</{d}invoke>', f'<{d}invoke name="ping"/>'
    return [
        *dsml("deepseek_v4", "tool_calls", ""),
        at("closes_itself", "read", f"<{d}tool_calls>\n{closed}\n</{d}tool_calls>", PING),
        at("toolcalls", "read", f"<{d}toolcalls>\n{ping}\n</{d}tool_calls>", PING),
        at("tool", "read", f"Gern. <{d}tool>\n{ping}\n</{d}tool_calls>", PING, content="Gern. "),
        at("bare", "read", f"Gern. {ping}", PING, content="Gern. "),
    ]


def qwen_like(form: str, prefix: str, think: tuple[str, str], end: str) -> list[Layout]:
    """`prefix`: what stands in the names of the tokens."""

    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, form, tier, output, calls, **more)

    def arg(key: str, value: str, _: bool) -> str:
        return f"<parameter={key}>{value}</parameter>\n"

    def call(name: str, body: str) -> str:
        return f"<{prefix}tool_call>\n<function={name}>\n{body}</function>\n</{prefix}tool_call>"

    def block(*calls: str) -> str:
        return "\n".join(calls)

    place = arg("place", "x", True)
    terrace = ("book_table", {"place": "x", "terrace": True})
    return [
        *shared(form, arg, call, block, think),
        at("True", "must", call("book_table", place + arg("terrace", "True", False)), terrace),
        at("true", "must", call("book_table", place + arg("terrace", "true", False)), terrace),
        at("None", "read", call("note", arg("until", "None", False)), ("note", {"until": None})),
        at("tight", "read", call("book_table", place).replace("\n", ""), ("book_table", {"place": "x"})),
        at("adjoining", "read", call("ping", "") * 2, PING, PING),
        at("end_token", "read", call("ping", "") + end, PING),
    ]


def step3() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "step3", tier, output, calls, **more)

    def arg(key: str, value: str, _: bool) -> str:
        return f'<steptml:parameter name="{key}">{value}</steptml:parameter>\n'

    def call(name: str, body: str) -> str:
        invoke = f'<steptml:invoke name="{name}">\n{body}</steptml:invoke>'
        return f"<｜tool_call_begin｜>function<｜tool_sep｜>{invoke}<｜tool_call_end｜>\n"

    def block(*calls: str) -> str:
        return f"<｜tool_calls_begin｜>\n{''.join(calls)}<｜tool_calls_end｜>"

    tight = block(call("play", arg("song", "x", True))).replace("\n", "")
    other = block(call("ping", "")).replace("function", "code")
    return [
        *shared("step3", arg, call, block),
        at("tight", "read", tight, ("play", {"song": "x"})),
        at("other_kind", "refuse", other),
    ]


def ling() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "ling", tier, output, calls, **more)

    def arg(key: str, value: str, _: bool) -> str:
        return f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n"

    def call(name: str, body: str) -> str:
        return f"<tool_call>{name}\n{body}</tool_call>"

    tight = call("play", arg("song", "x", True)).replace("\n", "")
    return [
        *shared("ling", arg, call, lambda *calls: "\n".join(calls)),
        at("tight", "read", tight, ("play", {"song": "x"})),
        at("empty_tight", "read", "<tool_call>ping</tool_call>", PING),
        at("hermes", "read", "<tool_call>\n" + OB + "\n</tool_call>", BOOK),
        at("end_token", "read", tight + "<|role_end|>", ("play", {"song": "x"})),
    ]
