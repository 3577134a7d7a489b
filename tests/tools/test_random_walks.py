"""Random texts of the grammars: each reads back, validates, and streams alike however it is cut."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import jsonschema
import pytest

from tokenform.errors import ToolError
from tokenform.frontends.tools import (
    FORMATS,
    ToolCalls,
    ToolCallStream,
    parse_tool_calls,
    read_tools,
    tool_shape,
)

from .data import cases
from .reference_readers import read
from .tree_matcher import accepts
from .tree_writer import Writer, random_tools


def walk(name: str, seed: int, choice: str | None = None) -> tuple[list[dict[str, Any]], str, str]:
    """Random tools and a random text that the format's grammar allows; the tools' choice is returned last."""
    rng = Random(f"{name} {seed}")
    definitions = random_tools(rng)
    tool_choice = choice or rng.choice(["auto", "required", "none", definitions[0]["function"]["name"]])
    shape = tool_shape(definitions, format=name, tool_choice=tool_choice, parallel=rng.choice([True, 1, 3]))
    text = Writer(shape, rng).text()
    assert seed % 20 or accepts(shape, text)
    return definitions, text, tool_choice


def check(name: str, seeds: range) -> None:
    called = 0
    for seed in seeds:
        definitions, text, tool_choice = walk(name, seed)
        got = parse_tool_calls(text, definitions, format=name, validate=False)
        schemas = {t["function"]["name"]: t["function"]["parameters"] for t in definitions}
        assert all(jsonschema.Draft202012Validator(schemas[c.name]).is_valid(c.arguments) for c in got), text
        assert [(c.name, c.arguments) for c in got] == read(name, text, definitions), text
        assert (len(got) == 0) if tool_choice == "none" else (tool_choice == "auto" or len(got) >= 1), text
        called += len(got)
    assert called > len(seeds) // 3


@pytest.mark.parametrize("name", FORMATS)
def test_what_the_grammar_writes_reads_back(name: str) -> None:
    check(name, range(15))


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_what_the_grammar_writes_reads_back_at_length(name: str) -> None:
    check(name, range(15, 400))


def outcome(calls: ToolCalls) -> tuple[Any, ...]:
    return [(c.name, c.arguments) for c in calls], calls.content, calls.reasoning


def streamed(pieces: list[Any], definitions: Any, name: str) -> tuple[Any, ...]:
    """The result rebuilt from the deltas, as a client of the API would, and held against the reader's own."""
    stream = ToolCallStream(definitions, format=name)
    message: dict[str, Any] = {"content": None, "reasoning_content": None}
    calls: list[dict[str, str]] = []
    deltas = [delta for piece in pieces for delta in stream.feed(piece)] + stream.close()
    for number, delta in enumerate(deltas):
        assert ("role" in delta) == (number == 0)
        for key in ("content", "reasoning_content"):
            if key in delta:
                message[key] = (message[key] or "") + delta[key]
        for entry in delta.get("tool_calls", []):
            if "id" in entry:
                assert entry["index"] == len(calls) and entry["type"] == "function"
                calls.append({"name": entry["function"]["name"], "arguments": ""})
            calls[entry["index"]]["arguments"] += entry["function"]["arguments"]
    rebuilt = [(c["name"], json.loads(c["arguments"])) for c in calls]
    if stream.result.reasoning == "":
        message["reasoning_content"] = ""
    assert outcome(stream.result) == (rebuilt, message["content"], message["reasoning_content"])
    return outcome(stream.result)


def same_for_cuts(text: str, definitions: Any, name: str, cuts: list[list[Any]]) -> None:
    try:
        whole: Any = outcome(parse_tool_calls(text, definitions, format=name))
    except ToolError as error:
        whole = str(error), error.cut, error.calls and outcome(error.calls)
    for pieces in cuts:
        try:
            parts: Any = streamed(pieces, definitions, name)
        except ToolError as error:
            parts = str(error), error.cut, error.calls and outcome(error.calls)
        assert parts == whole, pieces


def some_cuts(text: str, rng: Random) -> list[list[Any]]:
    """Every byte alone, and two random cuts of the bytes."""
    data = text.encode()
    result: list[list[Any]] = [[data[i : i + 1] for i in range(len(data))]]
    for _ in range(2):
        places = sorted(rng.randint(0, len(data)) for _ in range(rng.randint(1, 6)))
        result.append([data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)])
    return result


def test_streaming_equals_reading_for_recorded_outputs() -> None:
    rng = Random(1)
    for case in cases():
        definitions = read_tools(case["tools"])
        same_for_cuts(case["output"], definitions, case["format"], some_cuts(case["output"], rng))


@pytest.mark.parametrize("name", FORMATS)
def test_streaming_equals_reading_for_random_outputs(name: str) -> None:
    for seed in range(4):
        definitions, text, _ = walk(name, seed)
        same_for_cuts(text, definitions, name, some_cuts(text, Random(seed)))


def cuts_in_two(text: str) -> list[list[Any]]:
    """Every cut of the bytes in two, and the characters one by one."""
    data = text.encode()
    return [*([data[:at], data[at:]] for at in range(len(data) + 1)), list(text)]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", FORMATS)
def test_streaming_equals_reading_for_every_cut_in_two(name: str) -> None:
    """Thirty-five random outputs of each format, and the recorded ones: over 1,000 in all."""
    texts = [walk(name, seed)[:2] for seed in range(100, 135)]
    texts += [(c["tools"], c["output"]) for c in cases() if c["format"] == name]
    for definitions, text in texts:
        known = read_tools(definitions)
        same_for_cuts(text, known, name, [*cuts_in_two(text), *some_cuts(text, Random(text))])


SPLINTERS = (
    "{",
    "}",
    "[",
    '"',
    "'",
    "\\",
    "<",
    "|>",
    ":",
    "\n",
    "é",
    "<tool_call>",
    "</tool_call>",
    "</think>",
)


def mutated(text: str, rng: Random) -> str:
    """The text with a few places cut out, doubled or filled with splinters of markup."""
    for _ in range(rng.randint(1, 3)):
        at, other = rng.randint(0, len(text)), rng.randint(0, len(text))
        removed, doubled = rng.choice([0, 0, 1, 4]), rng.choice([0, 0, 30])
        splinter = rng.choice(SPLINTERS) if rng.random() < 0.5 else ""
        text = text[:at] + text[other : other + doubled] + splinter + text[at + removed :]
    return text


def broken_outputs(seed: int, count: int) -> None:
    """Broken outputs are read, or refused with a `ToolError`, and alike for any cut."""
    rng = Random(seed)
    for _ in range(count):
        case = rng.choice(cases())
        text = mutated(case["output"], rng)
        same_for_cuts(text, read_tools(case["tools"]), case["format"], some_cuts(text, rng)[1:])


def test_broken_outputs_are_refused_alike() -> None:
    broken_outputs(1, 150)


@pytest.mark.slow
def test_broken_outputs_are_refused_alike_at_length() -> None:
    broken_outputs(2, 3000)
