"""Formats that mark every argument up."""

from __future__ import annotations

from typing import Any

from .cases import BOOK, NOTE_N, NOTE_Q, OB, PING, PLAY, QUOTED, Layout


def qwen3_coder() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "qwen3_coder", tier, output, calls, **more)

    def call(name: str, body: str) -> str:
        return f"<tool_call>\n<function={name}>\n{body}</function>\n</tool_call>"

    def arg(key: str, value: str) -> str:
        return f"<parameter={key}>\n{value}\n</parameter>\n"

    book = call("book_table", arg("place", "Zum Löwen") + arg("guests", "4"))
    play = call("play", arg("song", "Ode an die Freude") + arg("volume", "0.5"))
    code = 'def f():\n    print("<a & b>")\n\nf()'
    bare = "<function=play>\n<parameter=song>\nx\n</parameter>\n</function>"
    return [
        at("two", "must", book + "\n" + play, BOOK, PLAY, choice="required"),
        at("empty", "must", call("ping", ""), PING, choice="required"),
        at("feed_after", "must", book + "\n", BOOK, choice="required"),
        at("adjoining", "must", book + play, BOOK, PLAY, choice="required"),
        at("code", "must", call("note", arg("text", code)), ("note", {"text": code})),
        at("indented_value", "must", call("note", arg("text", "    x")), ("note", {"text": "    x"})),
        at("feed_at_end", "must", call("note", arg("text", "x\n")), ("note", {"text": "x\n"})),
        at("empty_value", "must", call("note", arg("text", "")), ("note", {"text": ""})),
        at("json_in_text", "must", call("note", arg("text", '{"a": 1}')), ("note", {"text": '{"a": 1}'})),
        at("number_in_text", "must", call("note", arg("text", "5")), ("note", {"text": "5"})),
        at(
            "values",
            "must",
            call("note", arg("tags", '["a", "b"]') + arg("meta", '{"x": {"y": [1, 2.5, null, true]}}')),
            NOTE_N,
        ),
        at(
            "nullable",
            "must",
            call("note", arg("until", "null") + arg("owner", "null")),
            ("note", {"until": None, "owner": None}),
        ),
        at(
            "nullable_set",
            "must",
            call("note", arg("until", "3") + arg("owner", "Ada")),
            ("note", {"until": 3, "owner": "Ada"}),
        ),
        at("enum", "must", call("note", arg("mood", "calm")), ("note", {"mood": "calm"})),
        at(
            "true",
            "must",
            call("book_table", arg("place", "x") + arg("terrace", "true")),
            ("book_table", {"place": "x", "terrace": True}),
        ),
        at(
            "True",
            "must",
            call("book_table", arg("place", "x") + arg("terrace", "True")),
            ("book_table", {"place": "x", "terrace": True}),
        ),
        at("text", "must", "Gern.\n" + book, BOOK, content="Gern.\n"),
        at(
            "opened",
            "must",
            "A table.\n</think>\n\nGern.\n" + book,
            BOOK,
            content="Gern.\n",
            reasoning="A table.",
        ),
        at("thought", "must", "<think>\nA table.\n</think>\n\n" + book, BOOK, reasoning="A table."),
        at(
            "one_line",
            "must",
            "<tool_call><function=play><parameter=song>x</parameter></function></tool_call>",
            ("play", {"song": "x"}),
        ),
        at("bare", "must", "Gern.\n\n" + bare, ("play", {"song": "x"}), content="Gern.\n\n"),
        at("bare_two", "must", bare + "\n" + bare + "\n", ("play", {"song": "x"}), ("play", {"song": "x"})),
        at("order", "read", call("book_table", arg("guests", "4") + arg("place", "Zum Löwen")), BOOK),
        at(
            "False",
            "must",
            call("book_table", arg("place", "x") + arg("terrace", "false")),
            ("book_table", {"place": "x", "terrace": False}),
        ),
        at(
            "FALSE",
            "read",
            call("book_table", arg("place", "x") + arg("terrace", "FALSE")),
            ("book_table", {"place": "x", "terrace": False}),
        ),
        at("None", "must", call("note", arg("until", "None")), ("note", {"until": None})),
        at(
            "json_spread",
            "read",
            call("note", arg("meta", '{"a": 1,\n "b": 2}')),
            ("note", {"meta": {"a": 1, "b": 2}}),
        ),
        at(
            "spaces",
            "must",
            call("book_table", "  <parameter=place>\n  x\n  </parameter>\n"),
            ("book_table", {"place": "  x\n  "}),
        ),
        at("no_feed_after_name", "must", "<tool_call>\n<function=ping></function>\n</tool_call>", PING),
        at("no_end", "refuse", book[:-12], readable=True),
        at("unknown", "refuse", call("stop", "")),
        at("unknown_key", "refuse", call("ping", arg("x", "1")), readable=True),
        at("missing", "refuse", call("book_table", arg("guests", "4"))),
        at("wrong_type", "refuse", call("book_table", arg("place", "x") + arg("guests", "four"))),
        at("twice", "refuse", call("play", arg("song", "x") * 2)),
        at("enum_wrong", "refuse", call("note", arg("mood", "angry"))),
        at("no_function_end", "refuse", book.replace("</function>\n", "")),
        at("json_body", "refuse", "<tool_call>\n" + OB + "\n</tool_call>", choice="required"),
    ]


def glm(form: str, feed: str) -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, form, tier, output, calls, **more)

    def arg(key: str, value: str) -> str:
        return f"<arg_key>{key}</arg_key>{feed}<arg_value>{value}</arg_value>{feed}"

    def call(name: str, body: str) -> str:
        return f"<tool_call>{name}{feed}{body}</tool_call>"

    book = call("book_table", arg("place", "Zum Löwen") + arg("guests", "4"))
    play = call("play", arg("song", "Ode an die Freude") + arg("volume", "0.5"))
    tight = "<tool_call>play<arg_key>song</arg_key><arg_value>x</arg_value></tool_call>"
    wide = "<tool_call>play\n  <arg_key>song</arg_key>\n  <arg_value>x</arg_value>\n  </tool_call>"
    x = ("play", {"song": "x"})
    return [
        at("two", "must", book + feed + play, BOOK, PLAY, choice="required"),
        at("empty", "must", call("ping", ""), PING, choice="required"),
        at("quoted", "must", call("note", arg("text", QUOTED["text"])), NOTE_Q),
        at("html", "must", call("note", arg("text", "<b>a < b</b>")), ("note", {"text": "<b>a < b</b>"})),
        at("number_in_text", "must", call("note", arg("text", "007")), ("note", {"text": "007"})),
        at("json_in_text", "must", call("note", arg("text", '["a"]')), ("note", {"text": '["a"]'})),
        at("empty_value", "must", call("note", arg("text", "")), ("note", {"text": ""})),
        at(
            "values",
            "must",
            call("note", arg("tags", '["a", "b"]') + arg("meta", '{"x": {"y": [1, 2.5, null, true]}}')),
            NOTE_N,
        ),
        at("nullable", "must", call("note", arg("until", "null")), ("note", {"until": None})),
        at(
            "true",
            "must",
            call("book_table", arg("place", "x") + arg("terrace", "true")),
            ("book_table", {"place": "x", "terrace": True}),
        ),
        at("text", "must", "Gern.\n" + book, BOOK, content="Gern.\n"),
        at("thought", "must", "<think>A table.</think>\n" + book, BOOK, reasoning="A table."),
        at(
            "thought_feed",
            "must",
            "\n<think>A table.</think>\nGern.\n" + book,
            BOOK,
            reasoning="A table.",
            content="Gern.\n",
        ),
        at("opened", "must", "A table.</think>" + book, BOOK, reasoning="A table."),
        at("no_thought", "must", "</think>" + book, BOOK, reasoning=""),
        at("empty_thought", "must", "\n<think></think>\nGern.", content="Gern.", reasoning=""),
        at("tight", "read", tight, x),
        at("tight_two", "read", tight + tight, x, x),
        at("wide", "read", wide + "\n\n" + wide, x, x),
        at(
            "feeds",
            "read",
            "<tool_call>play\n<arg_key>song</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
            x,
        ),
        at("empty_tight", "read", "<tool_call>ping</tool_call>", PING),
        at("empty_feed", "read", "<tool_call>ping\n</tool_call>", PING),
        at("blank_before", "read", " \n <tool_call>ping</tool_call>", PING),
        at("order", "read", call("book_table", arg("guests", "4") + arg("place", "Zum Löwen")), BOOK),
        at(
            "True",
            "read",
            call("book_table", arg("place", "x") + arg("terrace", "True")),
            ("book_table", {"place": "x", "terrace": True}),
        ),
        at("end_token", "read", tight + "<|observation|>", x),
        at(
            "name_before_arguments_feed",
            "read",
            "<tool_call>\nplay\n<arg_key>song</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
            x,
        ),
        at("unknown", "refuse", call("stop", "")),
        at("prefix_name", "refuse", call("pl", arg("song", "x"))),
        at("unknown_key", "refuse", call("play", arg("song", "x") + arg("speed", "1")), readable=True),
        at("missing", "refuse", call("play", arg("volume", "1"))),
        at("wrong_type", "refuse", call("play", arg("song", "x") + arg("volume", "loud"))),
        at("no_end", "refuse", book[:-12]),
        at("no_value_end", "refuse", tight.replace("</arg_value>", "")),
        at("no_value", "refuse", "<tool_call>play<arg_key>song</arg_key></tool_call>"),
        at("only_open", "refuse", "Hm. <tool_call>"),
        at("twice", "refuse", call("play", arg("song", "x") * 2)),
    ]


def deepseek_v32() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "deepseek_v32", tier, output, calls, **more)

    d = "｜DSML｜"

    def arg(key: str, value: str, string: bool) -> str:
        return f'<{d}parameter name="{key}" string="{str(string).lower()}">{value}</{d}parameter>\n'

    def call(name: str, body: str) -> str:
        return f'<{d}invoke name="{name}">\n{body}</{d}invoke>\n'

    def block(*calls: str) -> str:
        return f"<{d}function_calls>\n{''.join(calls)}</{d}function_calls>"

    b = call("book_table", arg("place", "Zum Löwen", True) + arg("guests", "4", False))
    p = call("play", arg("song", "Ode an die Freude", True) + arg("volume", "0.5", False))
    x = ("play", {"song": "x"})
    return [
        at("two", "must", "\n\n" + block(b, p), BOOK, PLAY, choice="required"),
        at("empty", "must", "\n\n" + block(call("ping", "")), PING, choice="required"),
        at("text", "must", "Gern.\n\n" + block(b), BOOK, content="Gern."),
        at("thought", "must", "<think>A table.</think>\n\n" + block(b), BOOK, reasoning="A table."),
        at(
            "opened",
            "must",
            "A table.</think>Gern.\n\n" + block(b),
            BOOK,
            reasoning="A table.",
            content="Gern.",
        ),
        at("quoted", "must", "\n\n" + block(call("note", arg("text", QUOTED["text"], True))), NOTE_Q),
        at(
            "values",
            "must",
            "\n\n"
            + block(
                call(
                    "note",
                    arg("tags", '["a", "b"]', False)
                    + arg("meta", '{"x": {"y": [1, 2.5, null, true]}}', False),
                )
            ),
            NOTE_N,
        ),
        at(
            "nullable",
            "must",
            "\n\n" + block(call("note", arg("until", "null", False) + arg("owner", "Ada", True))),
            ("note", {"until": None, "owner": "Ada"}),
        ),
        at(
            "null_owner",
            "must",
            "\n\n" + block(call("note", arg("owner", "null", False))),
            ("note", {"owner": None}),
        ),
        at(
            "null_text",
            "must",
            "\n\n" + block(call("note", arg("owner", "null", True))),
            ("note", {"owner": "null"}),
        ),
        at("less_than", "must", "1 < 2 <b>\n\n" + block(b), BOOK, content="1 < 2 <b>"),
        at(
            "html",
            "must",
            "\n\n" + block(call("note", arg("text", "<p>a</p></x", True))),
            ("note", {"text": "<p>a</p></x"}),
        ),
        at("bare", "must", block(b, p), BOOK, PLAY),
        at("text_bare", "must", "Gern. " + block(b), BOOK, content="Gern. "),
        at(
            "wrong_mark",
            "read",
            block(call("book_table", arg("place", "x", True) + arg("guests", "4", True))),
            ("book_table", {"place": "x", "guests": 4}),
        ),
        at("text_as_json", "read", block(call("play", arg("song", "x", False))), x),
        at("text_null", "read", block(call("play", arg("song", "null", False))), ("play", {"song": "null"})),
        at("text_number", "read", block(call("play", arg("song", "42", False))), ("play", {"song": "42"})),
        at(
            "text_quoted_json",
            "read",
            block(call("note", arg("owner", "hello", False))),
            ("note", {"owner": "hello"}),
        ),
        at(
            "object_as_text",
            "read",
            block(call("note", arg("meta", '{"a": 1}', True))),
            ("note", {"meta": {"a": 1}}),
        ),
        at("tight", "must", block(call("play", arg("song", "x", True))).replace("\n", ""), x),
        at(
            "tight_arguments",
            "must",
            block(
                call(
                    "book_table",
                    (arg("place", "Zum Löwen", True) + arg("guests", "4", False)).replace("\n", "") + "\n",
                )
            ),
            BOOK,
        ),
        at("no_mark", "read", block(call("play", f'<{d}parameter name="song">x</{d}parameter>\n')), x),
        at("json_body", "read", block(call("play", '{"song": "x"}\n')), x),
        at("blank", "must", block(call("ping", "\n")), PING),
        at("blanks_in_lines", "refuse", block(call("ping", "\n  \n")), PING, readable=True),
        at(
            "order",
            "read",
            block(call("book_table", arg("guests", "4", False) + arg("place", "Zum Löwen", True))),
            BOOK,
        ),
        at("end_token", "must", block(b) + "<｜end▁of▁sentence｜>", BOOK),
        at("suffix", "must", block(b) + " Done.", BOOK, free=True),
        at("two_blocks", "read", block(b) + "\n\n" + block(p), BOOK, PLAY, free=True),
        at("unknown", "refuse", "\n\n" + block(call("stop", ""))),
        at("no_end", "refuse", "\n\n" + block(b)[:-5], readable=True),
        at("no_marker", "refuse", "\n\n" + block(b).replace(d, "")[1:], choice="required"),
        at("missing", "refuse", "\n\n" + block(call("play", ""))),
        at(
            "json_marked_text", "refuse", "\n\n" + block(call("play", arg("song", "x", False))), readable=True
        ),
        at(
            "wrong_type",
            "refuse",
            "\n\n" + block(call("book_table", arg("place", "x", True) + arg("guests", "four", False))),
        ),
    ]


def minicpm5() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "minicpm5", tier, output, calls, **more)

    def arg(key: str, value: str) -> str:
        return f'<param name="{key}">{value}</param>'

    def call(name: str, *arguments: str) -> str:
        return f'<function name="{name}">{"".join(arguments)}</function>'

    book = call("book_table", arg("place", "Zum Löwen"), arg("guests", "4"))
    play = call("play", arg("song", "Ode an die Freude"), arg("volume", "0.5"))
    return [
        at("two", "must", book + play, BOOK, PLAY, choice="required"),
        at("feed_between", "must", f"{book}\n{play}", BOOK, PLAY, choice="required"),
        at("empty", "must", call("ping"), PING, choice="required"),
        at("quoted", "must", call("note", arg("text", QUOTED["text"])), NOTE_Q),
        at("text", "must", "Gern.\n" + book, BOOK, content="Gern.\n"),
        at("thought", "must", f"<think>\nA table.\n</think>\n\n{book}", BOOK, reasoning="A table."),
        at(
            "values",
            "must",
            call("note", arg("tags", '["a", "b"]'), arg("meta", '{"x": {"y": [1, 2.5, null, true]}}')),
            NOTE_N,
        ),
        at("number_in_text", "must", call("play", arg("song", "5")), ("play", {"song": "5"})),
        at(
            "indented",
            "must",
            '<function name="play">\n  <param name="song">x</param>\n</function>',
            ("play", {"song": "x"}),
        ),
        at("plain", "must", "2 < 3", content="2 < 3"),
        at("unknown", "refuse", call("stop")),
        at("missing", "refuse", call("book_table", arg("guests", "4"))),
        at("wrong_type", "refuse", call("book_table", arg("place", "x"), arg("guests", "four"))),
        at("cut", "refuse", book[:-4], readable=True),
    ]


def minimax() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "minimax", tier, output, calls, **more)

    def arg(key: str, value: str) -> str:
        return f'<parameter name="{key}">{value}</parameter>\n'

    def call(name: str, body: str) -> str:
        return f'<invoke name="{name}">\n{body}</invoke>\n'

    def block(*calls: str) -> str:
        return f"<minimax:tool_call>\n{''.join(calls)}</minimax:tool_call>"

    b = call("book_table", arg("place", "Zum Löwen") + arg("guests", "4"))
    p = call("play", arg("song", "Ode an die Freude") + arg("volume", "0.5"))
    x = ("play", {"song": "x"})
    return [
        at("two", "must", block(b, p), BOOK, PLAY, choice="required"),
        at("feed_before", "must", "\n" + block(b), BOOK, choice="required"),
        at(
            "far_from_thought",
            "must",
            "A table.\n</think>\n\n\n" + block(b),
            BOOK,
            reasoning="A table.",
            choice="required",
        ),
        at("empty", "must", block(call("ping", "")), PING, choice="required"),
        at("text", "must", "Gern.\n" + block(b), BOOK, content="Gern.\n"),
        at("thought", "must", "<think>\nA table.\n</think>\n\n" + block(b), BOOK, reasoning="A table."),
        at(
            "opened",
            "must",
            "A table.\n</think>\n\nGern.\n" + block(b),
            BOOK,
            reasoning="A table.",
            content="Gern.\n",
        ),
        at("quoted", "must", block(call("note", arg("text", QUOTED["text"]))), NOTE_Q),
        at(
            "html",
            "must",
            block(call("note", arg("text", "<p>a</p>\n<br>"))),
            ("note", {"text": "<p>a</p>\n<br>"}),
        ),
        at(
            "values",
            "must",
            block(
                call("note", arg("tags", '["a", "b"]') + arg("meta", '{"x": {"y": [1, 2.5, null, true]}}'))
            ),
            NOTE_N,
        ),
        at("nullable", "must", block(call("note", arg("owner", "null") + "")), ("note", {"owner": None})),
        at(
            "nullable_set",
            "must",
            block(call("note", arg("until", "3") + arg("owner", "Ada"))),
            ("note", {"until": 3, "owner": "Ada"}),
        ),
        at(
            "true",
            "must",
            block(call("book_table", arg("place", "x") + arg("terrace", "true"))),
            ("book_table", {"place": "x", "terrace": True}),
        ),
        at("number_in_text", "must", block(call("play", arg("song", "5"))), ("play", {"song": "5"})),
        at("tight", "must", block(b, p).replace("\n", ""), BOOK, PLAY),
        at(
            "indented",
            "must",
            "<minimax:tool_call>\n  "
            + call("play", "    " + arg("song", "x") + "  ")
            + "</minimax:tool_call>",
            x,
        ),
        at("blocks", "read", block(b) + "\n" + block(p), BOOK, PLAY, free=True),
        at(
            "True",
            "read",
            block(call("book_table", arg("place", "x") + arg("terrace", "True"))),
            ("book_table", {"place": "x", "terrace": True}),
        ),
        at(
            "value_feeds",
            "must",
            block(call("book_table", arg("place", "x") + arg("guests", "\n4\n"))),
            ("book_table", {"place": "x", "guests": 4}),
        ),
        at("end_token", "must", block(b) + "[e~[", BOOK),
        at("suffix", "must", block(b) + "\nDone.", BOOK, free=True),
        at("unknown", "refuse", block(call("stop", ""))),
        at("no_end", "refuse", block(b)[:-9], readable=True),
        at("no_invoke_end", "refuse", block(b.replace("</invoke>\n", "")), readable=True),
        at("no_block", "refuse", b, choice="required", readable=True),
        at("missing", "refuse", block(call("play", arg("volume", "1")))),
        at("wrong_type", "refuse", block(call("book_table", arg("place", "x") + arg("guests", "four")))),
        at("empty_block", "refuse", block()),
    ]
