"""Turns of calls with faults, under each choice and each kind of thought, and what became of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools import ToolCallStream, parse_tool_calls

from .faults import ANY, FAULTS, READ, Turn, broken, same
from .writers import WRITERS, Call, Writer

CHOICES, THOUGHTS = ("auto", "required"), ("open", "closed", "none")
_THOUGHTS = ("I should look.", "First the city.\nThen the rest.", "A {brace} and [1, 2] help nobody.", "")
_SAID = ("I look it up.", "Gern! Für Sie: 音楽.", "Two steps:\n1. look\n2. book")


def _tool(name: str, required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


_TEXT, _WHOLE, _NUMBER, _BOOL = ({"type": t} for t in ("string", "integer", "number", "boolean"))
_GUEST = {
    "type": "object",
    "properties": {"name": _TEXT, "age": _WHOLE},
    "required": ["name"],
    "additionalProperties": False,
}
TOOLS = [
    _tool("search", ("query",), query=_TEXT, limit=_WHOLE, exact=_BOOL),
    _tool("book", ("city", "nights"), city=_TEXT, nights=_WHOLE, rate=_NUMBER, guest=_GUEST),
    _tool("edit_file", ("path", "text"), path=_TEXT, text=_TEXT, line={"type": ["integer", "null"]}),
    _tool("set_mode", ("mode",), mode={"enum": ["calm", "loud"]}, tags={"type": "array", "items": _TEXT}),
    _tool("now", ()),
]
_VALUES: dict[str, list[Any]] = {
    "query": ["Oslo", "coffee, near me", 'say "hi"', "it's", "42", "true", "naïve 日本", "a = b"],
    "limit": [1, 5, 100],
    "exact": [True, False],
    "city": ["Paris", "New York", "São Paulo", "Zürich"],
    "nights": [1, 3, 14],
    "rate": [0.5, 120.25, 99],
    "guest": [{"name": "Ada", "age": 36}, {"name": "Bo"}, {"name": "O'Hara", "age": 5}],
    "path": ["a.py", "/tmp/x y.txt", "C:\\dir\\n.txt"],
    "text": ["x = 1\nprint(x)\n", "    indented", "<b>bold</b> & <i>", "{'a': [1, 2]}", "# t\n\n- a\n- b"],
    "line": [None, 3],
    "mode": ["calm", "loud"],
    "tags": [["a", "b"], [], ["one"]],
}


def calls(rng: random.Random) -> list[Call]:
    """One to three calls."""
    made = []
    for _ in range(rng.choice([1, 2, 2, 3])):
        function = rng.choice(TOOLS)["function"]
        schema = function["parameters"]
        given = {
            key: rng.choice(_VALUES[key])
            for key in schema["properties"]
            if key in schema["required"] or rng.random() < 0.6
        }
        made.append((function["name"], given))
    return made


@dataclass(frozen=True)
class Row:
    """One output.  prompt: what it goes on with.  content, reasoning: as they are meant."""

    format: str
    fault: str
    choice: str
    thought: str
    turn: Turn
    prompt: str
    output: str
    content: str | None
    reasoning: str | None


def rows(count: int, seed: int = 0, formats: list[str] | None = None) -> Iterator[Row]:
    """So many rows, spread over formats, faults, choices and thoughts."""
    kinds = [
        (name, fault, choice, thought)
        for fault in FAULTS
        for choice in CHOICES
        for thought in THOUGHTS
        for name in formats or WRITERS
    ]
    random.Random(seed).shuffle(kinds)
    made = number = 0
    while made < count and number < 40 * count:
        name, fault, choice, thought = kinds[number % len(kinds)]
        rng = random.Random(f"{seed} {number} {name} {fault}")
        number += 1
        turn = broken(fault, name, calls(rng), rng)
        if turn is not None:
            made += 1
            yield _row(turn, fault, choice, thought, rng)


def _row(turn: Turn, fault: str, choice: str, thought: str, rng: random.Random) -> Row:
    writer, text = turn.writer, turn.text()
    said = rng.choice(_SAID) if choice == "auto" and not writer.guess and rng.random() < 0.5 else None
    reasoning = rng.choice(_THOUGHTS) if thought != "none" else None
    opened, closed = writer.fence
    if turn.format == "gpt_oss":
        return _harmony(turn, fault, choice, thought, text, said, reasoning)
    lead = f"{reasoning}{closed}" if reasoning is not None else ""
    lead += writer.ending if lead else ""
    prompt = "<|user|>Hi<|assistant|>"
    if thought == "open":
        prompt += opened
    elif thought == "closed":
        lead = opened + lead
    answer = "".join((writer.text[0], said, writer.text[1])) if said else ""
    if said and not writer.text[0]:
        answer += "\n" if not text.startswith("\n") else ""
    end = "<|close|>message<|sep|>" if turn.format == "kimi_k3" and not turn.cut else ""
    return Row(turn.format, fault, choice, thought, turn, prompt, lead + answer + text + end, said, reasoning)


def _harmony(
    turn: Turn, fault: str, choice: str, thought: str, text: str, said: str | None, reasoning: str | None
) -> Row:
    """Its turns are rows of messages; the prompt has the beginning of the first."""
    prompt, begin = "<|user|>Hi", "<|start|>assistant"
    channel, end = turn.writer.fence
    if thought == "open":
        prompt += begin + channel
        begun = f"{reasoning}{end}"
    else:
        prompt += begin
        begun = begin + channel + f"{reasoning}{end}" if reasoning is not None else ""
    answer = begin + said.join(turn.writer.text) if said else ""
    output = begun + answer + text
    if thought != "open":
        output = output.removeprefix(begin)
    return Row("gpt_oss", fault, choice, thought, turn, prompt, output, said, reasoning)


def pairs(found: Any) -> list[Call]:
    return [(call.name, call.arguments) for call in found]


def _alike(found: list[Call], meant: list[Call]) -> bool:
    return len(found) == len(meant) and all(map(same, found, meant))


def outcome(row: Row) -> tuple[str, str]:
    """What became of a row, and why:

    "read": all as it was meant.  "refused": an error, the other calls are kept.  "text": what is no call in
    this format is text, the other calls are read.  "lost": an error, and another call is gone with it.
    "wrong": anything else.
    """
    turn, error = row.turn, None
    try:
        found = parse_tool_calls(row.output, TOOLS, format=row.format, prompt=row.prompt)
    except ToolError as caught:
        error, found = caught, caught.calls
    got = pairs(found)
    if turn.expect == ANY and error is None and not _alike(got, turn.meant):
        left = iter(turn.meant)
        some = all(any(same(call, other) for other in left) for call in got)
        return ("text", "") if some else ("wrong", f"{got}")
    if error is not None:
        # a call that is cut or broken costs itself alone
        kept = _alike(got, turn.others) or _alike(got, turn.meant)
        return ("refused" if kept else "lost"), f"{error} {got}"
    meant = [turn.read if turn.read and n == turn.at else call for n, call in enumerate(turn.meant)]
    body = (found.content or "").strip() == (row.content or "").strip()
    thought = (found.reasoning or "").strip("\n") == (row.reasoning or "").strip("\n")
    if _alike(got, meant) and turn.expect != "error":
        return (
            ("read", "") if body and thought else ("wrong", f"content {found.content!r}, {found.reasoning!r}")
        )
    if row.turn.writer.guess and not got and turn.text().strip() in (found.content or ""):
        return "text", ""
    broken = "".join(piece.text for piece in turn.call)
    if _alike(got, turn.others) and broken.strip() in (found.content or ""):
        return "text", ""
    return "wrong", f"{got} content {found.content!r} reasoning {found.reasoning!r}"


def streamed_alike(row: Row) -> bool:
    """Whether the text by characters gives what it gives at once."""

    def told(*pieces: str) -> Any:
        stream = ToolCallStream(TOOLS, format=row.format, prompt=row.prompt)
        try:
            for piece in pieces:
                stream.feed(piece)
            stream.close()
        except ToolError as error:
            return str(error), error.cut, pairs(error.calls or ())
        return pairs(stream.result), stream.result.content, stream.result.reasoning

    return bool(told(row.output) == told(*row.output))


def writer_of(row: Row) -> Writer:
    return row.turn.writer


def good(row: Row, became: str) -> bool:
    """Whether this is what should become of it."""
    allowed = {
        "read": ("read",),
        "error": ("refused",),
        "either": ("read", "refused"),
        # where the text has no other sign of a call, the calls are text
        ANY: ("read", "refused", "text"),
    }
    guess = row.turn.writer.guess and row.fault != "right"
    return became in allowed[row.turn.expect] or (guess and became == "text" and row.turn.expect != READ)
