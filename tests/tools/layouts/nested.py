"""Formats with values of their own: marked strings, elements inside each other."""

from __future__ import annotations

from typing import Any

from .cases import BOOK, DOTTED, NESTED, NOTE_N, OB, PING, PLAY, QUOTED, Layout
from .elements import shared as elements

HOURS: dict[str, Any] = {"tags": [], "meta": {}}


def gemma(form: str, opened: str, mark: str, closed: str, think: tuple[str, str]) -> list[Layout]:
    """`opened` stands before the name."""

    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, form, tier, output, calls, **more)

    def call(name: str, body: str) -> str:
        return f"{opened}{name}{{{body.replace('`', mark)}}}{closed}"

    b = call("book_table", "place:`Zum Löwen`,guests:4")
    b_sorted = call("book_table", "guests:4,place:`Zum Löwen`")
    p = call("play", "song:`Ode an die Freude`,volume:0.5")
    nested = "tags:[`a`,`b`],meta:{x:{y:[1,2.5,null,true]}}"
    before, after = think
    return [
        at("two", "must", b + p, BOOK, PLAY, choice="required"),
        at("sorted", "must", b_sorted, BOOK, choice="required"),
        at("empty", "must", call("ping", ""), PING, choice="required"),
        at("quoted", "must", call("note", f"text:`{QUOTED['text']}`"), ("note", QUOTED)),
        at("nested", "must", call("note", nested), NOTE_N),
        at("braces", "must", call("note", "text:`a}, b:[c]{`"), ("note", {"text": "a}, b:[c]{"})),
        at(
            "nulls", "must", call("note", "until:null,owner:`Ada`"), ("note", {"until": None, "owner": "Ada"})
        ),
        at("enum", "must", call("note", "mood:`calm`"), ("note", {"mood": "calm"})),
        at("name_like", "must", call(DOTTED[0], "q:`waltz`"), DOTTED),
        at("text", "must", "Gern.\n" + b, BOOK, content="Gern.\n"),
        at("plain", "must", "f{a:1} < call:x", content="f{a:1} < call:x"),
        at("thought", "must", f"{before}A table.{after}" + b, BOOK, reasoning="A table."),
        at("thought_text", "must", f"{before}Well.{after}No.", content="No.", reasoning="Well."),
        at("empties", "must", call("note", "tags:[],meta:{}"), ("note", HOURS)),
        at("spaced", "read", call("book_table", " place: `Zum Löwen` ,\n guests: 4 "), BOOK),
        at("bare_text", "read", call("play", "song:waltz"), ("play", {"song": "waltz"})),
        at(
            "marked_number",
            "read",
            call("book_table", "place:`x`,guests:`4`"),
            ("book_table", {"place": "x", "guests": 4}),
        ),
        at(
            "marked_keys",
            "read",
            call("note", "meta:{`x`:{`y`:[1,2.5,null,true]}}"),
            ("note", {"meta": NESTED["meta"]}),
        ),
        at("number_as_text", "read", call("play", "song:`42`"), ("play", {"song": "42"})),
        at("text_after", "read", b + "\nDone.", BOOK, free=True),
        at("feed_between", "read", b + "\n" + p, BOOK, PLAY, free=True),
        at("unknown", "refuse", call("stop", "")),
        at("unknown_key", "refuse", call("ping", "x:1"), readable=True),
        at("missing", "refuse", call("book_table", "guests:4")),
        at("wrong_type", "refuse", call("book_table", "place:`x`,guests:`four`")),
        at("enum_wrong", "refuse", call("note", "mood:`angry`")),
        at("twice", "refuse", call("play", "song:`x`,song:`y`")),
        at("cut", "refuse", b[:-5], readable=True),
        at("open_string", "refuse", call("play", "song:`x")),
        at("json", "refuse", opened + OB + closed, choice="required"),
    ]


def gemma4() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "gemma4", tier, output, calls, **more)

    think = ("<|channel>thought\n", "<channel|>")
    ping = "<|tool_call>call:ping{}<tool_call|>"
    return [
        *gemma("gemma4", "<|tool_call>call:", '<|"|>', "<tool_call|>", think),
        at("no_call", "read", ping.replace("call:ping", ":ping"), PING),
        at("end_of_turn", "read", ping.replace("<tool_call|>", "<turn|>"), PING),
        at("response", "read", ping + "<|tool_response>", PING),
        at("in_thought", "read", "<|channel>thought\nHm." + ping, PING, reasoning="Hm."),
    ]


def functiongemma() -> list[Layout]:
    opened, closed = "<start_function_call>call:", "<end_function_call>"
    ping = f"{opened}ping{{}}{closed}"
    return [
        *gemma("functiongemma", opened, "<escape>", closed, ("<think>", "</think>")),
        Layout("response", "functiongemma", "read", ping + "<start_function_response>", (PING,)),
    ]


def minimax_m3() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "minimax_m3", tier, output, calls, **more)

    ns = "]<]minimax[>["

    def arg(key: str, value: str, _: bool) -> str:
        value = {
            '["a", "b"]': f"{ns}<item>a{ns}</item>{ns}<item>b{ns}</item>",
        }.get(value, value)
        return f"{ns}<{key}>{value}{ns}</{key}>"

    def call(name: str, body: str) -> str:
        return f'{ns}<invoke name="{name}">{body}{ns}</invoke>\n'

    def block(*calls: str) -> str:
        return f"{ns}<tool_call>\n{''.join(calls)}{ns}</tool_call>"

    deep = f"{ns}<x>{ns}<y>{ns}<item>1{ns}</item>{ns}<item>b{ns}</item>{ns}</y>{ns}</x>"
    meta = ("note", {"meta": {"x": {"y": ["1", "b"]}}})
    spread = block(call("play", f"\n  {ns}<song>x{ns}</song>\n"))
    return [
        *elements("minimax_m3", arg, call, block, ("<mm:think>", "</mm:think>")),
        at("nested", "read", block(call("note", arg("meta", deep, False))), meta),
        at("spread", "must", spread, ("play", {"song": "x"})),
        at("tight", "must", block(call("ping", "")).replace("\n", ""), PING),
        at("empty_list", "must", block(call("note", arg("tags", "", False))), ("note", {"tags": []})),
        at("empty_object", "read", block(call("note", arg("meta", "", False))), ("note", {"meta": {}})),
        at("other_end", "refuse", block(call("play", f"{ns}<song>x{ns}</tune>"))),
        at("no_mark", "refuse", block(call("play", f"{ns}<song>x</song>"))),
        at("end_token", "read", block(call("ping", "")) + "[e~[", PING),
    ]


def command_a() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "command_a", tier, output, calls, **more)

    def arg(key: str, value: str, string: bool) -> str:
        if key == "meta" and value.startswith("{"):
            inside = "".join(
                f'<cofl:value type="json">{v}</cofl:value>' for v in ("1", "2.5", "null", "true")
            )
            inside = f'<cofl:value name="y" type="list">{inside}</cofl:value>'
            inside = f'<cofl:value name="x" type="dict">{inside}</cofl:value>'
            return f'<cofl:value name="meta" type="dict">{inside}</cofl:value>'
        if value == '["a", "b"]':
            inside = "".join(f'<cofl:value type="raw">{v}</cofl:value>' for v in "ab")
            return f'<cofl:value name="{key}" type="list">{inside}</cofl:value>'
        return f'<cofl:value name="{key}" type="{"raw" if string else "json"}">{value}</cofl:value>'

    def call(name: str, body: str) -> str:
        return f'<cofl:tool_call id="0" name="{name}">{body}</cofl:tool_call>'

    def block(*calls: str) -> str:
        return f"<cofl:tool_calls>{''.join(calls)}</cofl:tool_calls>"

    think = ("<|START_THINKING|>", "<|END_THINKING|>")
    older = (
        '<cofl:tool_param name="place" string="true">Zum Löwen</cofl:tool_param>'
        '<cofl:tool_param name="guests" string="false">4</cofl:tool_param>'
    )
    answer = "<|START_TEXT|>Gern.<|END_TEXT|>"
    return [
        *elements("command_a", arg, call, block, think),
        at("feeds", "must", block("\n" + call("ping", "") + "\n"), PING),
        at("answer", "must", f"{think[0]}Hm.{think[1]}{answer}", content="Gern.", reasoning="Hm."),
        at("older", "read", block(call("book_table", older)), BOOK),
        at("end_token", "read", block(call("ping", "")) + "<|END_OF_TURN_TOKEN|>", PING),
        at("text_number", "read", block(call("play", arg("song", "42", True))), ("play", {"song": "42"})),
        at("no_id", "read", block(call("ping", "").replace(' id="0"', "")), PING),
        at("other_kind", "refuse", block(call("play", arg("song", "x", True).replace("raw", "text")))),
    ]
