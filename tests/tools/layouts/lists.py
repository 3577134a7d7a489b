"""Formats with a marker before JSON."""

from __future__ import annotations

from typing import Any

from .cases import (
    BOOK,
    DOTTED,
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


def mistral_v3() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "mistral_v3", tier, output, calls, **more)

    two = f"[TOOL_CALLS][{OB}, {OP}]"
    return [
        at("two", "must", two, BOOK, PLAY, choice="required"),
        at("empty", "must", f"[TOOL_CALLS][{OI}]", PING, choice="required"),
        at("quoted", "must", f"[TOOL_CALLS][{OQ}]", NOTE_Q),
        at("nested", "must", f"[TOOL_CALLS][{ON}]", NOTE_N),
        at("with_id", "must", '[TOOL_CALLS][{"name": "ping", "arguments": {}, "id": "aB3dE6gH9"}]', PING),
        at("text", "must", f"Gern.[TOOL_CALLS][{OB}]", BOOK, content="Gern."),
        at("plain", "must", "See [1] and [TOOL].", content="See [1] and [TOOL]."),
        at("blank", "must", f"[TOOL_CALLS] [{OB}, {OP}]", BOOK, PLAY),
        at("text_blank", "must", f"Gern. [TOOL_CALLS] [{OB}]", BOOK, content="Gern. "),
        at("feeds", "must", f"\n[TOOL_CALLS]\n[{OB},\n{OP}]\n", BOOK, PLAY),
        at(
            "compact",
            "read",
            '[TOOL_CALLS] [{"name":"play","arguments":{"song":"x"}}]',
            ("play", {"song": "x"}),
        ),
        at(
            "half_compact",
            "must",
            '[TOOL_CALLS] [{"name": "play", "arguments":{"song": "x"}}]',
            ("play", {"song": "x"}),
        ),
        at("id_first", "read", '[TOOL_CALLS] [{"id": "aB3dE6gH9", "name": "ping", "arguments": {}}]', PING),
        at("arguments_first", "read", '[TOOL_CALLS] [{"arguments": {}, "name": "ping"}]', PING),
        at("end_token", "must", f"[TOOL_CALLS][{OB}]</s>", BOOK),
        at("text_after", "must", f"[TOOL_CALLS] [{OB}]\nDone.", BOOK, free=True),
        at("no_marker", "must", f" [{OB}, {OP}]", BOOK, PLAY),
        at("text_no_marker", "must", f"Gern. [{OB}]", BOOK, content="Gern. "),
        at("two_markers", "refuse", f"[TOOL_CALLS] [{OB}][TOOL_CALLS] [{OP}]", readable=True),
        at("junk", "refuse", f"[TOOL_CALLS] junk [{OB}]"),
        at("not_json", "refuse", "[TOOL_CALLS] not json at all"),
        at("object", "refuse", f"[TOOL_CALLS]{OB}"),
        at("cut", "refuse", two[:-1], readable=True),
        at("unknown", "refuse", '[TOOL_CALLS][{"name": "stop", "arguments": {}}]'),
        at("text_arguments", "refuse", '[TOOL_CALLS][{"name": "ping", "arguments": "{}"}]', readable=True),
        at("short_id", "refuse", '[TOOL_CALLS][{"name": "ping", "arguments": {}, "id": "1"}]', readable=True),
        at("empty_list", "refuse", "[TOOL_CALLS][]"),
    ]


def mistral_v11() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "mistral_v11", tier, output, calls, **more)

    b, p = f"[TOOL_CALLS]book_table[ARGS]{TABLE_JSON}", f"[TOOL_CALLS]play[ARGS]{PLAY_JSON}"
    return [
        at("two", "must", b + p, BOOK, PLAY, choice="required"),
        at("empty", "must", "[TOOL_CALLS]ping[ARGS]{}", PING, choice="required"),
        at("quoted", "must", f"[TOOL_CALLS]note[ARGS]{QUOTED_JSON}", NOTE_Q),
        at("nested", "must", f"[TOOL_CALLS]note[ARGS]{NESTED_JSON}", NOTE_N),
        at("with_id", "must", "[TOOL_CALLS]ping[CALL_ID]aB3dE6gH9[ARGS]{}", PING),
        at("text", "must", "Gern.\n" + b, BOOK, content="Gern.\n"),
        at("brackets", "must", "a{b[c" + b, BOOK, content="a{b[c"),
        at("thought", "must", "[THINK]A table.[/THINK]" + b, BOOK, reasoning="A table."),
        at("thought_text", "must", "[THINK]A table.[/THINK]Gern.", content="Gern.", reasoning="A table."),
        at(
            "thought_text_call",
            "must",
            "[THINK]A table.[/THINK]Gern." + b,
            BOOK,
            content="Gern.",
            reasoning="A table.",
        ),
        at("no_marker", "must", b.replace("[ARGS]", ""), BOOK),
        at("no_marker_two", "must", (b + p).replace("[ARGS]", ""), BOOK, PLAY),
        at("compact", "read", '[TOOL_CALLS]play[ARGS]{"song":"x"}', ("play", {"song": "x"})),
        at("blanks", "read", '[TOOL_CALLS] play [ARGS] {"song": "x"}', ("play", {"song": "x"})),
        at("spread", "read", '[TOOL_CALLS]play[ARGS]{\n  "song": "x"\n}', ("play", {"song": "x"})),
        at("end_token", "must", b + "</s>", BOOK),
        at(
            "brace_in_text",
            "must",
            '[TOOL_CALLS]play{"song": "re.compile(r\'{}\')"}',
            ("play", {"song": "re.compile(r'{}')"}),
        ),
        at("in_thought", "must", "[THINK]Hm." + b, BOOK, reasoning="Hm."),
        at("cut", "refuse", b[:-1]),
        at("no_arguments", "refuse", "[TOOL_CALLS]ping", choice="required"),
        at("no_arguments_marker", "must", "[TOOL_CALLS]ping{}", PING),
        at("unknown", "refuse", "[TOOL_CALLS]stop[ARGS]{}"),
        at("array", "refuse", "[TOOL_CALLS]ping[ARGS][]"),
        at("short_id", "refuse", "[TOOL_CALLS]ping[CALL_ID]1[ARGS]{}"),
        at("text_between", "refuse", b + " and " + p, choice="required", readable=True),
    ]


def granite() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "granite", tier, output, calls, **more)

    two = f"<|tool_call|>[{OB}, {OP}]"
    return [
        at("two", "must", two, BOOK, PLAY, choice="required"),
        at("empty", "must", f"<|tool_call|>[{OI}]", PING, choice="required"),
        at("quoted", "must", f"<|tool_call|>[{OQ}]", NOTE_Q),
        at("nested", "must", f"<|tool_call|>[{ON}]", NOTE_N),
        at("text", "must", f"Gern.\n<|tool_call|>[{OB}]", BOOK, content="Gern.\n"),
        at("thought", "must", f"<think>A table.</think><|tool_call|>[{OB}]", BOOK, reasoning="A table."),
        at("blank", "must", f"<|tool_call|> [{OB}, {OP}]", BOOK, PLAY),
        at("spread", "must", f"<|tool_call|> [\n  {OB},\n  {OP}\n]", BOOK, PLAY),
        at("text_marker", "must", f"<tool_call> [{OB}, {OP}]", BOOK, PLAY),
        at("text_marker_tight", "must", f"<tool_call>[{OB}]", BOOK),
        at("bare", "must", f"[{OB}, {OP}]", BOOK, PLAY),
        at("bare_arguments_first", "must", '[{"arguments": {}, "name": "ping"}]', PING),
        at("text_before", "must", f"Gern.\n<|tool_call|> [{OB}]", BOOK, content="Gern.\n"),
        at("text_around", "must", f"Gern.\n<|tool_call|> [{OB}]\nDone.", BOOK, free=True),
        at("end_token", "must", f"<|tool_call|>[{OB}]<|end_of_text|>", BOOK),
        at("object", "refuse", f"<|tool_call|>{OB}"),
        at("text_arguments", "refuse", '<|tool_call|>[{"name": "ping", "arguments": "none"}]'),
        at("no_arguments", "refuse", '<|tool_call|>[{"name": "ping"}]', readable=True),
        at("cut", "refuse", two[:-1], readable=True),
        at("unknown", "refuse", '<|tool_call|>[{"name": "stop", "arguments": {}}]'),
        at("empty_list", "refuse", "<|tool_call|>[]"),
        at("text_only", "refuse", "Gern.", choice="required"),
    ]


def granite_20b_fc() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "granite_20b_fc", tier, output, calls, **more)

    return [
        at("one", "must", f"<function_call> {OB}", BOOK, choice="required"),
        at("two", "must", f"<function_call> {OB} <function_call> {OP}", BOOK, PLAY, choice="required"),
        at("empty", "must", f"<function_call> {OI}", PING, choice="required"),
        at("quoted", "must", f"<function_call> {OQ}", NOTE_Q),
        at("nested", "must", f"<function_call> {ON}", NOTE_N),
        at("text", "must", f"Gern.\n<function_call> {OB}", BOOK, content="Gern.\n"),
        at("feeds", "must", f"<function_call> {OB}\n<function_call> {OP}", BOOK, PLAY),
        at("tight", "must", f"<function_call>{OB}<function_call>{OP}", BOOK, PLAY),
        at("spread", "must", '<function_call> {\n  "name": "ping",\n  "arguments": {}\n}', PING),
        at("text_after", "must", f"<function_call> {OB}\nDone.", BOOK, free=True),
        at("end_token", "must", f"<function_call> {OB}<|endoftext|>", BOOK),
        at("list", "refuse", f"<function_call> [{OB}]"),
        at("text_arguments", "refuse", '<function_call> {"name": "ping", "arguments": "none"}'),
        at("name_only", "refuse", '<function_call> {"name": "ping"}', readable=True),
        at("cut", "refuse", f"<function_call> {OB[:-1]}", readable=True),
        at("no_name", "refuse", '<function_call> {"arguments": {}}'),
        at("marker_only", "refuse", "<function_call>"),
    ]


def phi4(form: str = "phi4", end: str = "<|end|>") -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, form, tier, output, calls, **more)

    two = f"functools[{OB}, {OP}]"
    return [
        at("two", "must", two, BOOK, PLAY, choice="required"),
        at("empty", "must", f"functools[{OI}]", PING, choice="required"),
        at("quoted", "must", f"functools[{OQ}]", NOTE_Q),
        at("nested", "must", f"functools[{ON}]", NOTE_N),
        at("text", "must", f"Gern. functools[{OB}]", BOOK, content="Gern. "),
        at("text_feed", "must", f"Gern.\nfunctools[{OB}]", BOOK, content="Gern.\n"),
        at(
            "word",
            "must",
            "functional funk and func() in python",
            content="functional funk and func() in python",
        ),
        at("word_alone", "must", "Use functools in Python.", content="Use functools in Python."),
        at("word_ends", "must", "functools", content="functools"),
        at("spread", "must", f"functools[\n  {OB},\n  {OP}\n]", BOOK, PLAY),
        at("blank", "must", f"functools [{OB}]", BOOK),
        at(
            "parameters",
            "read",
            'functools[{"name": "play",\n "parameters": {"song": "x"}}]',
            ("play", {"song": "x"}),
        ),
        at(
            "inner_feeds",
            "read",
            'functools[{"name": "play", "arguments":\n  {"song":\n "x"}}]',
            ("play", {"song": "x"}),
        ),
        at("compact", "read", 'functools[{"name":"play","arguments":{"song":"x"}}]', ("play", {"song": "x"})),
        at("text_after", "must", f"functools[{OB}] Done.", BOOK, free=True),
        at("end_token", "must", f"functools[{OB}]{end}", BOOK),
        at("cut", "refuse", 'functools[{"name": "ping", "arguments": {'),
        at("text_arguments", "refuse", 'functools[{"name": "ping", "arguments": "none"}]'),
        at("empty_list", "refuse", "functools[]", choice="required"),
        at("words", "refuse", "functools[ only text ]", choice="required"),
        at("object", "refuse", f"functools{OB}", choice="required"),
        at("invalid", "refuse", "functools{invalid json}", choice="required"),
        at("unknown", "refuse", 'functools[{"name": "stop", "arguments": {}}]'),
    ]


def command_r() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "command_r", tier, output, calls, **more)

    def call(number: int, name: str, body: str) -> str:
        return f'{{"tool_call_id": "{number}", "tool_name": "{name}", "parameters": {body}}}'

    b, p = call(0, "book_table", TABLE_JSON), call(1, "play", PLAY_JSON)
    think = "<|START_THINKING|>A table.<|END_THINKING|>"

    def acts(*calls: str) -> str:
        return "<|START_ACTION|>[\n    " + ",\n    ".join(calls) + "\n]<|END_ACTION|>"

    return [
        at("two", "must", acts(b, p), BOOK, PLAY, choice="required"),
        at("start_text", "must", "<|START_TEXT|>Gern.<|END_TEXT|>" + acts(b), BOOK, content="Gern."),
        at("empty", "must", acts(call(0, "ping", "{}")), PING, choice="required"),
        at("quoted", "must", acts(call(0, "note", QUOTED_JSON)), NOTE_Q),
        at("nested", "must", acts(call(0, "note", NESTED_JSON)), NOTE_N),
        at("thought", "must", think + acts(b), BOOK, reasoning="A table."),
        at(
            "answer",
            "must",
            think + "<|START_RESPONSE|>Gern.<|END_RESPONSE|>",
            reasoning="A table.",
            content="Gern.",
        ),
        at("answer_only", "must", "<|START_RESPONSE|>Gern.<|END_RESPONSE|>", content="Gern."),
        at("plain", "must", "Gern.", content="Gern."),
        at("opened", "must", "A table.<|END_THINKING|>" + acts(b), BOOK, reasoning="A table."),
        at(
            "one_line",
            "must",
            think + f"<|START_ACTION|>[{b}, {p}]<|END_ACTION|>",
            BOOK,
            PLAY,
            reasoning="A table.",
        ),
        at(
            "feeds",
            "must",
            think + "<|START_ACTION|>\n" + acts(b)[16:-14] + "\n<|END_ACTION|>",
            BOOK,
            reasoning="A table.",
        ),
        at("end_token", "must", acts(b) + "<|END_OF_TURN_TOKEN|>", BOOK),
        at("no_ids", "read", '<|START_ACTION|>[{"tool_name": "ping", "parameters": {}}]<|END_ACTION|>', PING),
        at(
            "other_order",
            "read",
            '<|START_ACTION|>[{"tool_name": "ping", "parameters": {}, "tool_call_id": "0"}]<|END_ACTION|>',
            PING,
        ),
        at(
            "answer_then_call",
            "must",
            "<|START_RESPONSE|>Gern.<|END_RESPONSE|>" + acts(b),
            BOOK,
            content="Gern.",
        ),
        at(
            "number_id",
            "read",
            '<|START_ACTION|>[{"tool_call_id": 0, "tool_name": "ping", "parameters": {}}]<|END_ACTION|>',
            PING,
        ),
        at(
            "older",
            "must",
            'Action: ```json\n[\n    {\n        "tool_name": "ping",\n        "parameters": {}\n    }\n]```',
            PING,
        ),
        at("cut", "refuse", acts(b)[:-14], readable=True),
        at("unknown", "refuse", acts(call(0, "stop", "{}"))),
        at("object", "refuse", f"<|START_ACTION|>{b}<|END_ACTION|>"),
        at("other_keys", "refuse", f"<|START_ACTION|>[{OB}]<|END_ACTION|>", readable=True),
        at("thought_only", "refuse", think, choice="required"),
        at("no_parameters", "refuse", acts('{"tool_call_id": "0", "tool_name": "ping"}'), readable=True),
        at("empty_list", "refuse", "<|START_ACTION|>[]<|END_ACTION|>"),
    ]


def gpt_oss() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "gpt_oss", tier, output, calls, **more)

    think = "<|channel|>analysis<|message|>A table.<|end|><|start|>assistant"
    say = "<|channel|>commentary<|message|>Gern.<|end|><|start|>assistant"

    def call(name: str, body: str, mark: str = " <|constrain|>json", end: str = "<|call|>") -> str:
        return f"<|channel|>commentary to=functions.{name}{mark}<|message|>{body}{end}"

    def role(name: str, body: str, mark: str = " <|constrain|>json") -> str:
        return f" to=functions.{name}<|channel|>commentary{mark}<|message|>{body}<|call|>"

    b = call("book_table", TABLE_JSON)
    start = "<|start|>assistant"
    return [
        at("one", "must", b, BOOK, choice="required"),
        at("empty", "must", call("ping", "{}"), PING, choice="required"),
        at("quoted", "must", call("note", QUOTED_JSON), NOTE_Q, choice="required"),
        at("nested", "must", call("note", NESTED_JSON), NOTE_N, choice="required"),
        at("dotted", "must", call(DOTTED[0], '{"q": "waltz"}'), DOTTED, choice="required"),
        at("thought", "must", think + b, BOOK, reasoning="A table."),
        at("preamble", "must", think + say + b, BOOK, reasoning="A table.", content="Gern."),
        at("two_thoughts", "must", think + think + b, BOOK, reasoning="A table.\nA table."),
        at(
            "answer",
            "must",
            think + "<|channel|>final<|message|>Gern.<|return|>",
            reasoning="A table.",
            content="Gern.",
        ),
        at("answer_only", "must", "<|channel|>final<|message|>Gern.<|return|>", content="Gern."),
        at("no_call_end", "must", call("ping", "{}", end=""), PING),
        at("role", "must", role("book_table", TABLE_JSON), BOOK),
        at("role_thought", "must", think + role("book_table", TABLE_JSON), BOOK, reasoning="A table."),
        at("role_json", "must", think + role("book_table", TABLE_JSON, " json"), BOOK, reasoning="A table."),
        at("role_no_mark", "must", role("ping", "{}", ""), PING),
        at("adjacent", "must", call("ping", "{}", "<|constrain|>json"), PING),
        at("no_mark", "must", call("ping", "{}", ""), PING),
        at("plain_json", "must", call("ping", "{}", " json"), PING),
        at("code", "read", call("ping", "{}", " code"), PING),
        at("spread", "read", call("play", '{\n  "song": "x"\n}'), ("play", {"song": "x"})),
        at("compact", "read", call("play", '{"song":"x"}'), ("play", {"song": "x"})),
        at("analysis", "must", b.replace("commentary", "analysis"), BOOK),
        at("two", "must", b + start + call("play", PLAY_JSON), BOOK, PLAY),
        at(
            "then_final", "must", b + start + "<|channel|>final<|message|>Gern.<|end|>", BOOK, content="Gern."
        ),
        at("with_start", "read", start + think + b, BOOK, reasoning="A table."),
        at("blank_before", "read", "\n  " + think + b, BOOK, reasoning="A table."),
        at("ended", "must", call("ping", "{}", end="<|end|>"), PING),
        at("answer_end", "must", "<|channel|>final<|message|>Gern.<|end|>", content="Gern."),
        at(
            "answer_open",
            "must",
            think + "<|channel|>final<|message|>Gern.",
            reasoning="A table.",
            content="Gern.",
        ),
        at("thought_open", "read", "<|channel|>analysis<|message|>A table.", reasoning="A table."),
        at("plain", "read", "Gern.", content="Gern."),
        at(
            "commentary_final", "must", say + "<|channel|>final<|message|>Ja.<|return|>", content="Gern.\nJa."
        ),
        at("empty_arguments", "refuse", call("ping", "")),
        at("unknown", "refuse", call("stop", "{}")),
        at("no_functions", "refuse", b.replace("functions.", ""), readable=True),
        at("other_namespace", "refuse", b.replace("functions.", "browser.")),
        at("other_channel", "refuse", "<|channel|>musing<|message|>Gern.<|end|>"),
        at("cut", "refuse", b[:-9]),
        at("no_message", "refuse", "<|channel|>commentary to=functions.ping {}<|call|>"),
        at("plain_text", "refuse", "Gern.", choice="required"),
        at("answer_required", "refuse", "<|channel|>final<|message|>Gern.<|return|>", choice="required"),
        at("wrong_type", "refuse", call("play", '{"song": 1}')),
    ]
