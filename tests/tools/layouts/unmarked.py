"""Formats whose calls are plain text."""

from __future__ import annotations

from typing import Any

from .cases import (
    BOOK,
    NESTED_JSON,
    NOTE_N,
    NOTE_Q,
    OB,
    OI,
    ON,
    OP,
    OQ,
    PING,
    PLAY,
    PLAY_JSON,
    QUOTED_JSON,
    TABLE_JSON,
    Layout,
)


def llama3_json() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "llama3_json", tier, output, calls, **more)

    def call(name: str, body: str) -> str:
        return f'{{"name": "{name}", "parameters": {body}}}'

    b, p, i = call("book_table", TABLE_JSON), call("play", PLAY_JSON), call("ping", "{}")
    return [
        at("one", "must", b, BOOK, choice="required"),
        at("two", "must", b + "; " + p, BOOK, PLAY, choice="required"),
        at("empty", "must", i, PING, choice="required"),
        at("quoted", "must", call("note", QUOTED_JSON), NOTE_Q, choice="required"),
        at("nested", "must", call("note", NESTED_JSON), NOTE_N, choice="required"),
        at(
            "deep",
            "must",
            call("note", '{"meta": {"a": {"b": {"c": {"d": "e"}}}}}'),
            ("note", {"meta": {"a": {"b": {"c": {"d": "e"}}}}}),
        ),
        at("auto", "must", b, BOOK),
        at("braces", "must", "Use {braces} and [brackets].", content="Use {braces} and [brackets]."),
        at("python_tag", "must", "<|python_tag|>" + b, BOOK),
        at("arguments_key", "read", OB, BOOK),
        at("no_blank", "must", b + ";" + p, BOOK, PLAY),
        at("blank_before", "must", b + " ; " + p, BOOK, PLAY),
        at("feed", "read", b + "\n" + p, BOOK, PLAY),
        at("semicolon_feed", "must", b + ";\n" + p, BOOK, PLAY),
        at("comma", "read", b + ", " + p, BOOK, PLAY),
        at("touching", "read", b + p, BOOK, PLAY),
        at("list", "must", f"[{b}, {p}]", BOOK, PLAY),
        at("compact", "read", '{"name":"play","parameters":{"song":"x"}}', ("play", {"song": "x"})),
        at("spread", "must", '\n{"name": "play",\n "parameters": {"song": "x"}}\n', ("play", {"song": "x"})),
        at(
            "inner_blanks",
            "read",
            '{ "name": "play", "parameters": {"song": "x" } }',
            ("play", {"song": "x"}),
        ),
        at(
            "typed",
            "must",
            '{"type": "function", "name": "play", "parameters": {"song": "x"}}',
            ("play", {"song": "x"}),
        ),
        at("tag_blank", "must", "<|python_tag|>\n" + b + "\n", BOOK),
        at("tags", "read", "<|python_tag|>" + b + "<|python_tag|>" + p, BOOK, PLAY),
        at("tags_feeds", "read", "\n<|python_tag|>\n" + b + "\n<|python_tag|>\n" + p + "\n", BOOK, PLAY),
        at("text_tag", "read", "Gern. <|python_tag|>" + b, BOOK, content="Gern. "),
        at("text_before", "must", "Gern. " + b, BOOK, content="Gern. "),
        at("text_after", "read", b + " Gern.", BOOK, free=True),
        at("text_around", "must", "Gern: " + b + "; " + p + " Ja?", BOOK, PLAY, free=True),
        at("brace_after", "read", b + " I used {book_table}.", BOOK, free=True),
        at("object_after", "read", b + ' With {"place": "x"}.', BOOK, free=True),
        at("end_token", "read", b + "<|eom_id|>", BOOK),
        at("end_turn", "read", b + "<|eot_id|>", BOOK),
        at("parameters_first", "must", '{"parameters": {}, "name": "ping"}', PING),
        at("invalid", "refuse", '{"name": "play", "parameters": {song}}', choice="required"),
        at("no_name", "refuse", '{"parameters": {}}', choice="required"),
        at("no_parameters", "refuse", '{"name": "ping"}', choice="required"),
        at("unknown", "refuse", call("stop", "{}"), choice="required"),
        at("unknown_auto", "refuse", '{"name": "stop", "parameters": {}}'),
        at("missing", "refuse", call("play", "{}"), choice="required"),
        at("wrong_type", "refuse", call("play", '{"song": 1}'), choice="required"),
        at("text", "refuse", "Gern.", choice="required"),
        at("cut", "refuse", b[:-1], choice="required"),
        at("other_object", "refuse", '{"foo": "bar"}', choice="required"),
    ]


def pythonic(form: str) -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, form, tier, output, calls, **more)

    b, p = "book_table(place='Zum Löwen', guests=4)", "play(song='Ode an die Freude', volume=0.5)"
    x = ("play", {"song": "x"})
    own = [
        at("start_tag", "must", f"<|python_start|>[{b}]<|python_end|>", BOOK),
        at("start_tag_two", "read", f"<|python_start|>[{b},{p}]", BOOK, PLAY),
        at("text_tag", "read", f"Gern. <|python_start|>[{b}]<|python_end|>", BOOK, content="Gern. "),
        at("tags_text_after", "read", f"<|python_start|>[{b}]<|python_end|> Done.", BOOK, free=True),
        at("tag_end", "read", f"[{b}]<|python_end|>", BOOK),
        at("end_token", "read", f"[{b}]<|eot|>", BOOK),
        at("extra_bracket_tagged", "refuse", f"<|python_start|>[{b})]<|python_end|>", choice="required"),
    ]
    if form == "llama3_pythonic":
        own = [
            at("python_tag", "must", f"<|python_tag|>[{b}]", BOOK),
            at("end_token", "read", f"[{b}]<|eot_id|>", BOOK),
        ]
    return [
        *own,
        at("one", "must", f"[{b}]", BOOK, choice="required"),
        at("two", "must", f"[{b}, {p}]", BOOK, PLAY, choice="required"),
        at("empty", "must", "[ping()]", PING, choice="required"),
        at(
            "escapes",
            "must",
            "[note(text='It\\'s \\\"so\\\"\\n\\\\')]",
            ("note", {"text": 'It\'s "so"\n\\'}),
            choice="required",
        ),
        at(
            "nested",
            "must",
            "[note(tags=['a', 'b'], meta={'x': {'y': [1, 2.5, None, True]}})]",
            NOTE_N,
            choice="required",
        ),
        at("words", "must", "[note(until=None)]", ("note", {"until": None}), choice="required"),
        at(
            "True",
            "must",
            "[book_table(place='x', terrace=True)]",
            ("book_table", {"place": "x", "terrace": True}),
            choice="required",
        ),
        at(
            "empty_values",
            "must",
            "[note(tags=[], meta={})]",
            ("note", {"tags": [], "meta": {}}),
            choice="required",
        ),
        at(
            "negative",
            "must",
            "[book_table(place='x', guests=-4)]",
            ("book_table", {"place": "x", "guests": -4}),
        ),
        at("unicode", "must", "[play(song='音楽 🎵')]", ("play", {"song": "音楽 🎵"}), choice="required"),
        at(
            "brackets_in_text",
            "must",
            "[play(song='a [b] (c), d=1')]",
            ("play", {"song": "a [b] (c), d=1"}),
            choice="required",
        ),
        at("double", "must", '[play(song="It\'s")]', ("play", {"song": "It's"}), choice="required"),
        at("plain", "must", "See [link](url) and [1].", content="See [link](url) and [1]."),
        at("tight", "read", f"[{b},{p}]".replace(", ", ","), BOOK, PLAY),
        at("loose", "read", f"[ {b} , {p} ]", BOOK, PLAY),
        at("spread", "read", f"[\n  {b},\n  {p}\n]", BOOK, PLAY),
        at(
            "spread_arguments",
            "read",
            "[play(\n    song='x',\n    volume=1,\n)]",
            ("play", {"song": "x", "volume": 1}),
        ),
        at("blanks_in_call", "read", "[play( song = 'x' )]", x),
        at("last_comma", "read", f"[{b},]", BOOK),
        at(
            "json_words",
            "read",
            "[book_table(place='x', terrace=true)]",
            ("book_table", {"place": "x", "terrace": True}),
        ),
        at(
            "double_keys",
            "read",
            '[note(meta={"a": True, "b": null})]',
            ("note", {"meta": {"a": True, "b": None}}),
        ),
        at("order", "read", "[book_table(guests=4, place='Zum Löwen')]", BOOK),
        at("hex", "read", "[play(song='\\u97f3\\x41')]", ("play", {"song": "音A"})),
        at("triple", "read", '[note(text="""a\nb""")]', ("note", {"text": "a\nb"})),
        at("tuple", "read", "[note(tags=('a', 'b'))]", ("note", {"tags": ["a", "b"]})),
        at("plus", "read", "[play(song='x', volume=+1.5)]", ("play", {"song": "x", "volume": 1.5})),
        at("exponent", "read", "[play(song='x', volume=1e3)]", ("play", {"song": "x", "volume": 1000.0})),
        at("text_before", "read", f"Gern: [{b}]", BOOK, content="Gern: "),
        at("text_after", "read", f"[{b}] Gern.", BOOK, free=True),
        at("two_lists", "read", f"[{b}] and [{p}]", BOOK, PLAY, free=True),
        at("blank_around", "read", f"\n [{b}]\n", BOOK),
        at("unknown", "refuse", "[stop()]", choice="required"),
        at("broken_quote", "refuse", "[play(song='x 'y')]", choice="required"),
        at("bytes", "refuse", "[play(song=b'x')]", choice="required"),
        at("infinite", "refuse", "[play(song='x', volume=1e999)]", choice="required"),
        at("extra_bracket", "refuse", "[ping())]", choice="required"),
        at("no_bracket", "refuse", b, choice="required"),
        at("cut", "refuse", "[play(song=", choice="required"),
        at("positional", "refuse", "[play('x')]", choice="required"),
        at("wrong_type", "refuse", "[play(song=1)]", choice="required"),
        at("missing", "refuse", "[play()]", choice="required"),
        at("twice", "refuse", "[play(song='x', song='y')]", choice="required"),
        at("variable", "refuse", "[play(song=x)]", choice="required"),
        at("empty_list", "refuse", "[]", choice="required"),
        at("text", "refuse", "Gern.", choice="required"),
        at("unknown_key", "refuse", "[ping(x=1)]", choice="required", readable=True),
    ]


def json_plain() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "json", tier, output, calls, **more)

    two = f"[{OB}, {OP}]"
    return [
        at("one", "must", OB, BOOK, choice="required"),
        at("two", "must", two, BOOK, PLAY, choice="required"),
        at("list_of_one", "must", f"[{OB}]", BOOK, choice="required"),
        at("empty", "must", OI, PING, choice="required"),
        at("quoted", "must", OQ, NOTE_Q, choice="required"),
        at("nested", "must", ON, NOTE_N, choice="required"),
        at("plain", "must", 'See {"a": 1} and [1].', content='See {"a": 1} and [1].'),
        at("thought", "must", f"<think>A table.</think>{two}", BOOK, PLAY, reasoning="A table."),
        at("compact", "read", '[{"name":"play","arguments":{"song":"x"}}]', ("play", {"song": "x"})),
        at(
            "parameters", "read", '{ "name": "play", "parameters": { "song": "x" } }', ("play", {"song": "x"})
        ),
        at(
            "parameters_list",
            "read",
            '[{ "name": "play", "parameters": { "song": "x" } }]',
            ("play", {"song": "x"}),
        ),
        at("spread", "must", f"[\n  {OB},\n  {OP}\n]", BOOK, PLAY),
        at("arguments_first", "must", '[{"arguments": {}, "name": "ping"}]', PING),
        at("fenced", "must", f"```json\n{two}\n```", BOOK, PLAY),
        at("text_fenced", "must", f"Gern.\n```json\n{two}\n```", BOOK, PLAY, content="Gern.\n"),
        at("fenced_one", "must", f"```json\n{OB}\n```", BOOK),
        at("fenced_plain", "must", f"```\n{two}\n```", BOOK, PLAY),
        at("tool_calls", "must", f"Gern.[TOOL_CALLS]{two}", BOOK, PLAY, content="Gern."),
        at("tool_call", "must", f"Gern.<tool_call>{two}</tool_call>", BOOK, PLAY, content="Gern."),
        at("tool_call_one", "must", f"<tool_call>{OB}</tool_call>", BOOK),
        at("toolcall", "must", f"<TOOLCALL>{two}</TOOLCALL>", BOOK, PLAY),
        at("tool_calls_tag", "must", f"<tool_calls>[\n{OB}\n]</tool_calls>", BOOK),
        at("text_before", "must", f"Gern. {two}", BOOK, PLAY, content="Gern. "),
        at("text_after", "read", f"{two} Done.", BOOK, PLAY, free=True),
        at("other_object", "refuse", '{"foo": "bar"}', choice="required"),
        at("text", "refuse", "not even json", choice="required"),
        at("unknown", "refuse", '{"name": "stop", "arguments": {}}', choice="required"),
        at(
            "text_arguments",
            "refuse",
            '{"name": "ping", "arguments": "{}"}',
            choice="required",
            readable=True,
        ),
        at("cut", "refuse", two[:-1], choice="required", readable=True),
        at("empty_list", "refuse", "[]", choice="required"),
        at("two_objects", "refuse", OB + OP, choice="required", readable=True),
    ]
