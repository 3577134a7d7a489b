"""Formats of 2025 and 2026 that write JSON between markers, or Python calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .cases import (
    BOOK,
    DOTTED,
    HB,
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

Write = Callable[[str, str], str]
Block = Callable[..., str]


def shared(
    form: str, call: Write, block: Block, think: tuple[str, str] = ("<think>", "</think>")
) -> list[Layout]:
    """What holds for every format: `call` writes one, `block` several with the markers around them."""

    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, form, tier, output, calls, **more)

    b, p = call("book_table", TABLE_JSON), call("play", PLAY_JSON)
    dotted = call(DOTTED[0], '{"q": "waltz"}')
    opened, closed = think
    return [
        at("two", "must", block(b, p), BOOK, PLAY, choice="required"),
        at("auto", "must", block(b), BOOK),
        at("empty", "must", block(call("ping", "{}")), PING, choice="required"),
        at("quoted", "must", block(call("note", QUOTED_JSON)), NOTE_Q, choice="required"),
        at("nested", "must", block(call("note", NESTED_JSON)), NOTE_N),
        at("name_like", "must", block(dotted), DOTTED, choice="required"),
        at("text", "must", "Gern.\n" + block(b), BOOK, content="Gern.\n"),
        at("plain", "must", '{"a": [1]} < 2', content='{"a": [1]} < 2'),
        at("thought", "must", f"{opened}A table.{closed}" + block(b), BOOK, reasoning="A table."),
        at(
            "thought_feeds",
            "must",
            f"{opened}\nA table.\n{closed}\n\n" + block(b),
            BOOK,
            reasoning="A table.",
            choice="required",
        ),
        at("thought_text", "must", f"{opened}Well.{closed}No.", content="No.", reasoning="Well."),
        at("opened", "must", f"A table.{closed}" + block(b), BOOK, reasoning="A table."),
        at("text_after", "read", block(b) + "\nDone.", BOOK, free=True),
        at("feed_after", "read", block(b) + "\n", BOOK),
        at("unknown", "refuse", block(call("stop", "{}"))),
        at("unknown_key", "refuse", block(call("ping", '{"x": 1}')), readable=True),
        at("missing", "refuse", block(call("book_table", '{"guests": 4}'))),
        at("wrong_type", "refuse", block(call("book_table", '{"place": "x", "guests": "4"}'))),
        at("twice", "refuse", block(call("play", '{"song": "x", "song": "y"}')), readable=True),
        at("cut", "refuse", block(b)[:-5], readable=True),
        at("no_block", "refuse", block(), choice="required"),
    ]


def nemotron() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "nemotron", tier, output, calls, **more)

    def block(*calls: str) -> str:
        return f"<TOOLCALL>[{', '.join(calls)}]</TOOLCALL>"

    return [
        *shared("nemotron", '{{"name": "{}", "arguments": {}}}'.format, block),
        at("after_text", "must", f"Gern.\n\n{block(OB)}", BOOK, content="Gern.\n\n"),
        at("in_thought", "read", f"<think>Hm.{block(OI)}", PING, reasoning="Hm."),
        at("spread", "read", f"<TOOLCALL>\n[\n  {OB},\n  {OP}\n]\n</TOOLCALL>", BOOK, PLAY),
        at("no_list", "read", f"<TOOLCALL>{OI}</TOOLCALL>", PING),
        at("end_token", "read", f"{block(OQ)}\n<SPECIAL_12>\n", NOTE_Q),
        at("not_json", "refuse", "<TOOLCALL>ping()</TOOLCALL>"),
        at("hermes", "refuse", HB, content=HB, choice="required"),
    ]


def apriel() -> list[Layout]:
    def block(*calls: str) -> str:
        return f"<tool_calls>[{', '.join(calls)}]</tool_calls>"

    think = ("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]")
    return shared("apriel", '{{"name": "{}", "arguments": {}}}'.format, block, think)


def functionary() -> list[Layout]:
    def block(*calls: str) -> str:
        return "".join(calls)

    return shared("functionary", "<function={}>{}</function>".format, block)


def gigachat() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "gigachat", tier, output, calls, **more)

    head = "<|message_sep|>\n\nfunction call<|role_sep|>\n"
    return [
        *shared(
            "gigachat",
            '<|function_call|>{{"name": "{}", "arguments": {}}}'.format,
            lambda *calls: "".join(calls),
        ),
        at("message", "read", f"{head}{OB}", BOOK),
        at("text_message", "read", f"Gern.{head}{OP}", PLAY, content="Gern."),
        at("end_token", "read", f"<|function_call|>{OB}</s>", BOOK),
    ]


def hunyuan() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "hunyuan", tier, output, calls, **more)

    def block(*calls: str) -> str:
        return f"<tool_calls>[{', '.join(calls)}]</tool_calls>"

    answer = f"<think>\nA table.\n</think>\n<answer>\nGern.\n{block(OB)}\n</answer>"
    return [
        *shared("hunyuan", '{{"name": "{}", "arguments": {}}}'.format, block),
        at("answer", "must", answer, BOOK, reasoning="A table.", free=True),
        at("spread", "read", f"<tool_calls>\n[\n{ON},\n{OI}\n]\n</tool_calls>", NOTE_N, PING),
        at("end_token", "read", block(OB) + "<|eos|>", BOOK),
        at("object", "refuse", f"<tool_calls>{OB}</tool_calls>"),
        at("hermes", "refuse", HB, content=HB, choice="required"),
    ]


def minimax_m1() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "minimax_m1", tier, output, calls, **more)

    def block(*calls: str) -> str:
        lines = "\n".join(calls)
        return f"<tool_calls>\n{lines}\n</tool_calls>"

    return [
        *shared("minimax_m1", '{{"name": "{}", "arguments": {}}}'.format, block),
        at("tight", "read", f"<tool_calls>{OB}{OP}</tool_calls>", BOOK, PLAY),
        at("end_token", "read", block(OI) + "<end_of_sentence>", PING),
        at("list", "refuse", block(f"[{OB}, {OP}]")),
        at("hermes", "refuse", HB, content=HB, choice="required"),
    ]


def internlm() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "internlm", tier, output, calls, **more)

    def call(name: str, body: str) -> str:
        return f'<|action_start|><|plugin|>\n{{"name": "{name}", "parameters": {body}}}<|action_end|>'

    spaced = f"<|action_start|> <|plugin|>\n{OB}<|action_end|>"
    return [
        *shared("internlm", call, lambda *calls: "".join(calls) if calls else "<|action_start|>"),
        at("arguments", "read", spaced, BOOK),
        at("feeds", "read", spaced + "\n" + spaced + "<|im_end|>\n", BOOK, BOOK),
        at("feed_before_end", "read", spaced.replace("<|action_end|>", "\n<|action_end|>"), BOOK),
        at("interpreter", "refuse", "<|action_start|><|interpreter|>\nprint(1)<|action_end|>"),
    ]


def apertus() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "apertus", tier, output, calls, **more)

    def block(*calls: str) -> str:
        return f"<|tools_prefix|>[{', '.join(calls)}]<|tools_suffix|>"

    tight = f'<|tools_prefix|>[{{"play":{PLAY_JSON}}},{{"ping":{{}}}}]<|tools_suffix|>'
    spread = f'<|tools_prefix|>[\n  {{ "play" : {PLAY_JSON} }} \n]<|tools_suffix|>'
    return [
        *shared("apertus", '{{"{}": {}}}'.format, block, ("<|inner_prefix|>", "<|inner_suffix|>")),
        at("tight", "read", tight, PLAY, PING),
        at("spread", "read", spread, PLAY),
        at("end_token", "read", block('{"ping": {}}') + "<|assistant_end|>", PING),
        at("in_thought", "read", "<|inner_prefix|>Hm." + block('{"ping": {}}'), PING, reasoning="Hm."),
        at("named", "refuse", block(OB)),
        at("two_keys", "refuse", block('{"ping": {}, "play": {"song": "x"}}')),
    ]


def exaone() -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, "exaone", tier, output, calls, **more)

    def call(name: str, body: str) -> str:
        return f'<tool_call>{{"name": "{name}", "arguments": {body}}}</tool_call>'

    return [
        *shared("exaone", call, lambda *calls: "\n".join(calls) if calls else "<tool_call>"),
        at("hermes", "read", HB, BOOK),
        at("tight", "read", call("ping", "{}") * 2 + "<|endofturn|>", PING, PING),
    ]


def python(form: str, opened: str, between: str, closed: str) -> list[Layout]:
    def at(name: str, tier: str, output: str, *calls: Any, **more: Any) -> Layout:
        return Layout(name, form, tier, output, calls, **more)

    def block(*calls: str) -> str:
        return opened + between.join(calls) + closed

    b, p = "book_table(place='Zum Löwen', guests=4)", "play(song='Ode an die Freude', volume=0.5)"
    double = 'book_table(place="Zum Löwen", guests=4, terrace={})'
    terrace = ("book_table", {**BOOK[1], "terrace": True})
    nested = "note(tags=['a', 'b'], meta={'x': {'y': [1, 2.5, None, True]}})"
    calm = ("note", {"until": None, "mood": "calm"})
    return [
        at("two", "must", block(b, p), BOOK, PLAY, choice="required"),
        at("auto", "must", block(b), BOOK),
        at("empty", "must", block("ping()"), PING, choice="required"),
        at("double", "must", block(double.format("True")), terrace),
        at("json_words", "must", block(double.format("true")), terrace, choice="required"),
        at("nested", "must", block(nested), NOTE_N),
        at(
            "nested_json",
            "must",
            block('note(tags=["a", "b"], meta={"x": {"y": [1, 2.5, null, true]}})'),
            NOTE_N,
        ),
        at("enum", "must", block("note(until=None, mood='calm')"), calm),
        at("enum_double", "must", block('note(until=null, mood="calm")'), calm),
        at("text", "must", "Gern.\n" + block(b), BOOK, content="Gern.\n"),
        at("plain", "must", "f(x) = [g(x)]", content="f(x) = [g(x)]"),
        at("thought", "must", "<think>A table.</think>" + block(b), BOOK, reasoning="A table."),
        at("thought_text", "must", "<think>Well.</think>No.", content="No.", reasoning="Well."),
        at("blanks", "read", block(" ping( ) "), PING),
        at("order", "read", block("book_table(guests=4, place='Zum Löwen')"), BOOK),
        at("escapes", "read", block(r"play(song='it\'s \u00e9')"), ("play", {"song": "it's é"})),
        at("text_after", "read", block(b) + "\nDone.", BOOK, free=True),
        at("unknown", "refuse", block("stop()")),
        at("positional", "refuse", block("play('x')")),
        at("missing", "refuse", block("play()")),
        at("wrong_type", "refuse", block("play(song=1)")),
        at("cut", "refuse", block(b)[:-5], readable=True),
        at("nothing", "refuse", block()),
    ]


def lfm2() -> list[Layout]:
    opened, closed = "<|tool_call_start|>[", "]<|tool_call_end|>"
    return [
        *python("lfm2", opened, ", ", closed),
        Layout("json", "lfm2", "read", f"{opened}{OB}, {OP}{closed}", (BOOK, PLAY)),
        Layout("end_token", "lfm2", "read", f"{opened}ping(){closed}<|im_end|>", (PING,)),
    ]


def olmo3() -> list[Layout]:
    opened, closed = "<function_calls>\n", "\n</function_calls>"
    return [
        *python("olmo3", opened, "\n", closed),
        Layout("tight", "olmo3", "read", "<function_calls>ping()</function_calls>", (PING,)),
        Layout("end_token", "olmo3", "read", f"{opened}ping(){closed}<|im_end|>", (PING,)),
        Layout("list", "olmo3", "refuse", f"{opened}[ping()]{closed}"),
    ]
