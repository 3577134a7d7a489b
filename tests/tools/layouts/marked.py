"""Formats with markers around JSON."""

from __future__ import annotations

from typing import Any

from .cases import (
    BOOK,
    DEEP,
    DOTTED,
    HB,
    HERMES,
    HP,
    KIMIS,
    NESTED_JSON,
    NOTE_N,
    NOTE_Q,
    OB,
    PING,
    PLAY,
    PLAY_JSON,
    QUOTED_JSON,
    TABLE_JSON,
    V3,
    V31,
    Layout,
)


def hermes() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "hermes", tier, output, calls, **more)

    return [
        at("two", "must", HB + "\n" + HP, BOOK, PLAY, choice="required"),
        at("quoted", "must", HERMES.format("note", QUOTED_JSON), NOTE_Q, choice="required"),
        at("nested", "must", HERMES.format("note", NESTED_JSON), NOTE_N, choice="required"),
        at("empty", "must", HERMES.format("ping", "{}"), PING, choice="required"),
        at("text", "must", "Gern.\n\n" + HB, BOOK, content="Gern.\n\n"),
        at("thought", "must", "<think>\nA table.\n</think>\n\n" + HB, BOOK, reasoning="A table."),
        at(
            "opened",
            "must",
            "A table.\n</think>\n\nGern.\n" + HB,
            BOOK,
            content="Gern.\n",
            reasoning="A table.",
        ),
        at("no_thought", "must", "</think>\n\n" + HB, BOOK, reasoning=""),
        at("empty_thought", "must", "<think>\n\n</think>\n\n" + HB, BOOK, reasoning=""),
        at("thought_only", "must", "<think>\nWell.\n</think>\n\nNo.", content="No.", reasoning="Well."),
        at("json_is_text", "must", '{"foo": "bar"}', content='{"foo": "bar"}'),
        at("name_like", "must", HERMES.format(DOTTED[0], '{"q": "waltz"}'), DOTTED, choice="required"),
        at("two_tight", "must", HB + HP, BOOK, PLAY),
        at("trailing_feed", "must", HB + "\n", BOOK),
        at("end_token", "must", HB + "<|im_end|>", BOOK),
        at("end_token_s", "must", HB + "\n</s>", BOOK),
        at(
            "compact",
            "must",
            '<tool_call>{"name":"book_table","arguments":' + TABLE_JSON + "}</tool_call>",
            BOOK,
        ),
        at(
            "spread",
            "read",
            '<tool_call>\n{"name": "play",\n"arguments":\n' + PLAY_JSON + "}\n</tool_call>\n",
            PLAY,
        ),
        at("blank_lines", "refuse", HB.replace("{", "{\n\n", 1), readable=True),
        at("spaces", "refuse", HB.replace("\n</tool_call>", "    </tool_call>"), readable=True),
        at("line_end", "refuse", HB.replace("\n</tool_call>", " \n</tool_call>"), readable=True),
        at("indented", "must", '<tool_call>\n{\n  "name": "ping",\n  "arguments": {}\n}\n</tool_call>', PING),
        at("arguments_first", "read", '<tool_call>\n{"arguments": {}, "name": "ping"}\n</tool_call>', PING),
        at("text_between", "must", HB + "\nAnd:\n" + HP, BOOK, PLAY, free=True),
        at("text_after", "must", HB + "\nDone.", BOOK, free=True),
        at(
            "escaped",
            "read",
            HERMES.format("play", '{"song": "\\u97f3\\ud83c\\udfb5"}'),
            ("play", {"song": "音🎵"}),
        ),
        at("with_id", "read", '<tool_call>\n{"id": 7, "name": "ping", "arguments": {}}\n</tool_call>', PING),
        at(
            "marker_inside",
            "read",
            HERMES.format("play", '{"song": "</tool_call>"}'),
            ("play", {"song": "</tool_call>"}),
        ),
        at("blank_before", "must", "\n" + HB, BOOK),
        at("unknown", "refuse", HERMES.format("stop", "{}")),
        at("wrong_type", "refuse", HERMES.format("book_table", '{"place": 4}')),
        at("missing", "refuse", HERMES.format("book_table", '{"guests": 4}'), choice="required"),
        at("not_json", "refuse", "<tool_call>\nbook_table\n</tool_call>"),
        at("no_end", "refuse", HB[:-12], choice="required", readable=True),
        at("no_end_auto", "refuse", "Gern. " + HB[:-12], readable=True),
        at("list", "refuse", "<tool_call>\n[" + OB + "]\n</tool_call>"),
        at("half_quotes", "refuse", HERMES.format("play", "{'song': 'x'}"), readable=True),
        at("extra", "refuse", HERMES.format("ping", '{"x": 1}'), choice="required", readable=True),
        at("text_only", "refuse", "Gern.", choice="required"),
        at("no_arguments", "refuse", '<tool_call>\n{"name": "ping"}\n</tool_call>', readable=True),
    ]


def deepseek_v3() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "deepseek_v3", tier, output, calls, **more)

    b, p = V3.format("book_table", TABLE_JSON), V3.format("play", PLAY_JSON)
    return [
        at("two", "must", DEEP.format(b + "\n" + p), BOOK, PLAY, choice="required"),
        at("empty", "must", DEEP.format(V3.format("ping", "{}")), PING, choice="required"),
        at("quoted", "must", DEEP.format(V3.format("note", QUOTED_JSON)), NOTE_Q),
        at("nested", "must", DEEP.format(V3.format("note", NESTED_JSON)), NOTE_N),
        at(
            "fence_inside",
            "must",
            DEEP.format(V3.format("note", '{"text": "```json\\n{}\\n```"}')),
            ("note", {"text": "```json\n{}\n```"}),
        ),
        at("text", "must", "Gern.\n" + DEEP.format(b), BOOK, content="Gern.\n"),
        at("thought", "must", "<think>\nA table.\n</think>\n\n" + DEEP.format(b), BOOK, reasoning="A table."),
        at(
            "opened",
            "must",
            "A table.\n</think>\n\nGern." + DEEP.format(b),
            BOOK,
            reasoning="A table.",
            content="Gern.",
        ),
        at("tight", "must", DEEP.format(b + p), BOOK, PLAY),
        at("no_feed_before_fence", "must", DEEP.format(b.replace("\n```<", "```<")), BOOK),
        at("end_token", "must", DEEP.format(b) + "<｜end▁of▁sentence｜>", BOOK),
        at("spread", "read", DEEP.format(V3.format("play", '{\n  "song": "x"\n}')), ("play", {"song": "x"})),
        at("outer_feeds", "must", "<｜tool▁calls▁begin｜>\n" + b + "\n<｜tool▁calls▁end｜>", BOOK),
        at("text_after", "must", DEEP.format(b) + " Done.", BOOK, free=True),
        at("in_thought", "must", "<think>Hm." + DEEP.format(b), BOOK, reasoning="Hm."),
        at("no_end", "refuse", DEEP.format(b)[:-22], readable=True),
        at("no_fence", "refuse", DEEP.format(b.replace("```json\n", ""))),
        at("no_type", "read", DEEP.format(b.replace("function<", "<")), BOOK),
        at("v31", "refuse", DEEP.format(V31.format("ping", "{}"))),
        at("unknown", "refuse", DEEP.format(V3.format("stop", "{}"))),
        at("no_call", "refuse", DEEP.format("")),
        at("name_only", "refuse", "Gern.<｜tool▁calls▁begin｜>book_table"),
    ]


def deepseek_v31() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "deepseek_v31", tier, output, calls, **more)

    b, p = V31.format("book_table", TABLE_JSON), V31.format("play", PLAY_JSON)
    return [
        at("two", "must", DEEP.format(b + p), BOOK, PLAY, choice="required"),
        at("empty", "must", DEEP.format(V31.format("ping", "{}")), PING, choice="required"),
        at("text", "must", "Gern." + DEEP.format(b), BOOK, content="Gern."),
        at(
            "opened",
            "must",
            "A table.</think>Gern." + DEEP.format(b),
            BOOK,
            reasoning="A table.",
            content="Gern.",
        ),
        at("no_thought", "must", "</think>Gern.", reasoning="", content="Gern."),
        at("dotted", "must", DEEP.format(V31.format(DOTTED[0], '{"q": "waltz"}')), DOTTED),
        at("compact", "read", DEEP.format(V31.format("play", '{"song":"x"}')), ("play", {"song": "x"})),
        at("suffix", "must", "Gern." + DEEP.format(b + p) + " Done.", BOOK, PLAY, free=True),
        at("feeds", "must", "<｜tool▁calls▁begin｜>\n" + b + "\n" + p + "\n<｜tool▁calls▁end｜>", BOOK, PLAY),
        at("end_token", "must", DEEP.format(b) + "<｜end▁of▁sentence｜>", BOOK),
        at("fenced", "refuse", DEEP.format(V3.format("ping", "{}"))),
        at("no_end", "refuse", DEEP.format(b)[:-22], readable=True),
        at("no_section", "refuse", b, readable=True),
        at("no_begin", "read", DEEP.format(b[19:]), BOOK),
        at("array", "refuse", DEEP.format(V31.format("ping", "[]"))),
    ]


def kimi_k2() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "kimi_k2", tier, output, calls, **more)

    def call(
        name: str, count: int, body: str, ident: str = "functions.{}:{}", blank: str = "", end: str = ""
    ) -> str:
        head = ident.format(name, count)
        return f"<|tool_call_begin|>{head}{blank}<|tool_call_argument_begin|>{body}{end}<|tool_call_end|>"

    b, p = call("book_table", 0, TABLE_JSON), call("play", 1, PLAY_JSON)
    return [
        at("two", "must", KIMIS.format(b + p), BOOK, PLAY, choice="required"),
        at(
            "thought_required",
            "must",
            "<think>A table.</think>" + KIMIS.format(b),
            BOOK,
            reasoning="A table.",
            choice="required",
        ),
        at("empty", "must", KIMIS.format(call("ping", 0, "{}")), PING, choice="required"),
        at("twelfth", "must", KIMIS.format(call("ping", 12, "{}")), PING, choice="required"),
        at(
            "html",
            "must",
            KIMIS.format(call("note", 0, '{"text": "<div>x</div>"}')),
            ("note", {"text": "<div>x</div>"}),
        ),
        at("dotted", "must", KIMIS.format(call(DOTTED[0], 0, '{"q": "waltz"}')), DOTTED),
        at("text", "must", "Gern. " + KIMIS.format(b), BOOK, content="Gern. "),
        at(
            "thought",
            "must",
            "<think>A table.</think>Gern." + KIMIS.format(b),
            BOOK,
            reasoning="A table.",
            content="Gern.",
        ),
        at("opened", "must", "A table.</think>" + KIMIS.format(b), BOOK, reasoning="A table."),
        at("empty_thought", "must", "<think></think>Gern.", reasoning="", content="Gern."),
        at("blank", "must", KIMIS.format(call("book_table", 0, TABLE_JSON, blank=" ")), BOOK),
        at("blank_behind", "must", KIMIS.format(call("book_table", 0, TABLE_JSON + " ", blank="\n")), BOOK),
        at(
            "blanks",
            "refuse",
            KIMIS.format(call("book_table", 0, TABLE_JSON + " ", blank=" \n")),
            BOOK,
            readable=True,
        ),
        at(
            "spread",
            "read",
            KIMIS.format(call("play", 0, '{\n  "song": "x"\n}', blank=" ")),
            ("play", {"song": "x"}),
        ),
        at("no_prefix", "read", KIMIS.format(call("book_table", 0, TABLE_JSON, ident="{}:{}")), BOOK),
        at("no_count", "read", KIMIS.format(call("book_table", 0, TABLE_JSON, ident="functions.{}")), BOOK),
        at(
            "feeds",
            "must",
            "<|tool_calls_section_begin|>\n" + b + "\n" + p + "\n<|tool_calls_section_end|>",
            BOOK,
            PLAY,
        ),
        at("singular", "read", KIMIS.format(b).replace("calls_section", "call_section"), BOOK),
        at("no_section", "read", b + p, BOOK, PLAY),
        at("in_thought", "must", "<think>Hm." + KIMIS.format(b), BOOK, reasoning="Hm."),
        at("end_token", "must", KIMIS.format(b) + "<|im_end|>", BOOK),
        at("suffix", "must", KIMIS.format(b) + "Done.", BOOK, free=True),
        at("invalid_json", "refuse", KIMIS.format(call("play", 0, '{"song": "x"'))),
        at("no_call_end", "refuse", KIMIS.format(b[:-17]), readable=True),
        at("unknown", "refuse", KIMIS.format(call("stop", 0, "{}"))),
        at("dot_id", "refuse", KIMIS.format(call("ping", 0, "{}", ident="functions.{}.{}"))),
        at("word_id", "refuse", KIMIS.format(call("ping", 0, "{}", ident="functions.{}:x{}"))),
        at(
            "no_argument_marker",
            "refuse",
            KIMIS.format("<|tool_call_begin|>functions.ping:0{}<|tool_call_end|>"),
        ),
        at("empty_section", "refuse", KIMIS.format("")),
        at("loose_marker", "refuse", "ping:0<|tool_call_argument_begin|>{}<|tool_call_end|>"),
    ]
