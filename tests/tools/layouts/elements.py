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
        at("cut", "refuse", block(b)[:-5], readable=True),
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


def hunyuan_v3() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "hunyuan_v3", tier, output, calls, **more)

    def arg(key: str, value: str, _: bool) -> str:
        return f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n"

    def call(name: str, body: str) -> str:
        return f"<tool_call>{name}<tool_sep>\n{body}</tool_call>\n"

    def block(*calls: str) -> str:
        return f"<tool_calls>\n{''.join(calls)}</tool_calls>"

    text = block(call("play", arg("song", "x", True)))
    return [
        *shared("hunyuan_v3", arg, call, block),
        at("tight", "must", text.replace("\n", ""), ("play", {"song": "x"}), choice="required"),
        at("no_sep", "must", text.replace("<tool_sep>", ""), ("play", {"song": "x"}), choice="required"),
        at("end_token", "read", text + "<|eos|>", ("play", {"song": "x"})),
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


def kimi_k3() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "kimi_k3", tier, output, calls, **more)

    def fence(name: str, inside: str) -> str:
        return f"<|open|>{name}<|sep|>{inside}<|close|>{name.split()[0]}<|sep|>"

    def arg(key: str, value: str, kind: str) -> str:
        return fence(f'argument key="{key}" type="{kind}"', value)

    def call(name: str, *body: str, index: int = 1) -> str:
        return fence(f'call tool="{name}" index="{index}"', "".join(body))

    def tools(*calls: str) -> str:
        return fence("tools", "".join(calls))

    b = call("book_table", arg("place", "Zum Löwen", "string"), arg("guests", "4", "number"))
    p = call("play", arg("song", "Ode an die Freude", "string"), arg("volume", "0.5", "number"), index=2)
    values = (arg("tags", '["a", "b"]', "array"), arg("meta", '{"x": {"y": [1, 2.5, null, true]}}', "object"))
    thought, answer = fence("think", "A table."), fence("response", "Gern.")
    nulls = (arg("until", "null", "null"), arg("owner", "Ada", "string"))
    whole = call("play", '<|open|>json type="object"<|sep|>{"song": "x"}<|close|>json<|sep|>')
    spaced = tools(call("play", arg("song", "x", "string"))).replace("<|sep|>", " <|sep|>")
    spaced = spaced.replace("<|open|>", "<|open|> ").replace("<|close|>", "<|close|> ")
    return [
        at("two", "must", tools(b, p), BOOK, PLAY, choice="required"),
        at("empty", "must", tools(call("ping")), PING, choice="required"),
        at("quoted", "must", tools(call("note", arg("text", QUOTED["text"], "string"))), ("note", QUOTED)),
        at("values", "must", tools(call("note", *values)), NOTE_N),
        at("nullable", "must", tools(call("note", *nulls)), ("note", {"until": None, "owner": "Ada"})),
        at(
            "null_owner", "must", tools(call("note", arg("owner", "null", "null"))), ("note", {"owner": None})
        ),
        at(
            "null_text",
            "must",
            tools(call("note", arg("owner", "null", "string"))),
            ("note", {"owner": "null"}),
        ),
        at(
            "true",
            "must",
            tools(call("book_table", arg("place", "x", "string"), arg("terrace", "true", "boolean"))),
            ("book_table", {"place": "x", "terrace": True}),
        ),
        at(
            "turn",
            "must",
            thought + answer + tools(b) + "<|close|>message<|sep|>",
            BOOK,
            content="Gern.",
            reasoning="A table.",
        ),
        at(
            "opened",
            "must",
            thought.partition("<|sep|>")[2] + fence("response", "") + tools(b),
            BOOK,
            reasoning="A table.",
            choice="required",
        ),
        at("answer_opened", "must", answer.partition("<|sep|>")[2] + tools(b), BOOK, content="Gern."),
        at("answer", "must", answer, content="Gern."),
        at("plain", "must", "Gern.", content="Gern."),
        at(
            "no_type", "read", tools(call("play", fence('argument key="song"', "x"))), ("play", {"song": "x"})
        ),
        at(
            "integer",
            "read",
            tools(call("book_table", arg("place", "x", "string"), arg("guests", "4", "integer"))),
            ("book_table", {"place": "x", "guests": 4}),
        ),
        at("json", "read", tools(whole), ("play", {"song": "x"})),
        at("spaced", "read", "Gern. " + spaced, ("play", {"song": "x"}), content="Gern. "),
        at("end_token", "read", tools(b) + "<|close|>message<|sep|><|end_of_msg|>", BOOK),
        at("in_thought", "read", "<|open|>think<|sep|>Hm." + tools(call("ping")), PING, reasoning="Hm."),
        at("unknown", "refuse", tools(call("stop"))),
        at("missing", "refuse", tools(call("play"))),
        at("wrong_type", "refuse", tools(call("play", arg("song", "1", "number"))), readable=True),
        at("twice", "refuse", tools(call("play", arg("song", "x", "string"), arg("song", "y", "string")))),
        at("cut", "refuse", tools(b)[:-9], readable=True),
        at("no_tools", "refuse", answer, content="Gern.", choice="required"),
        at("no_index", "refuse", tools(b).replace(' index="1"', "")),
        at("hermes", "refuse", "<tool_call>\n" + OB + "\n</tool_call>", choice="required", readable=True),
    ]
