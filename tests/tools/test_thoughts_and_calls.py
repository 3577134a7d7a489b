"""A sample of `benchmarks/thoughts_and_calls.py`: what is left of calls with faults, and of those without."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tokenform.frontends.tools import FORMATS, parse_tool_calls, tools
from tokenform.frontends.tools.judge import byte_vocabulary

from .written import values
from .written.rows import TOOLS, Row, good, outcome, rows, streamed_alike
from .written.writers import WRITERS

SAMPLE = list(rows(700, seed=7))


def test_every_format_has_a_writer() -> None:
    assert set(WRITERS) == set(FORMATS)


@pytest.mark.parametrize(
    "row", SAMPLE, ids=lambda row: f"{row.format}-{row.fault}-{row.choice}-{row.thought}"
)
def test_what_is_left_is_read_or_refused(row: Row) -> None:
    became, why = outcome(row)
    assert good(row, became), (became, row.output, row.turn.meant, why)


def test_pieces_give_what_the_whole_gives() -> None:
    assert all(map(streamed_alike, SAMPLE[::4]))


@pytest.mark.parametrize("name", WRITERS)
def test_the_grammar_takes_what_the_template_writes(name: str) -> None:
    automata: dict[tuple[str, str], Any] = {}
    for row in rows(300, 3, [name]):
        if row.fault in ("right", "other_order"):
            key = row.choice, row.prompt
            if key not in automata:
                grammar = tools(
                    TOOLS,
                    format=name,
                    tool_choice=row.choice,
                    prompt=row.prompt,
                    json_options={"order": "any"},
                )
                automata[key] = grammar.core.compile(byte_vocabulary())
            assert automata[key].matches(row.output.encode()), row.output


@pytest.mark.parametrize("name", WRITERS)
def test_values_with_markers_inside_are_written_and_read_or_refused(name: str) -> None:
    """Byte for byte; what can't be read back is refused before a token of it is written."""
    draws, own = random.Random(name), values.own_markers(WRITERS[name])
    fates = [values.fate(name, values.value(draws, own), draws.random() < 0.5) for _ in range(20)]
    assert "kept" in fates and "changed" not in fates


@pytest.mark.parametrize("name", sorted(name for name in FORMATS if not FORMATS[name].channels))
def test_a_marker_that_the_model_writes_again_is_no_part_of_the_thought(name: str) -> None:
    opened, closed = FORMATS[name].reasoning
    for text in (f"Hm.{closed}Yes.", f"{opened}Hm.{closed}Yes.", f"\n{opened}Hm.{closed}Yes."):
        read = parse_tool_calls(text, [], format=name, reasoning="open")
        assert (read.reasoning, read.content) == ("Hm.", "Yes."), text


def test_a_thought_may_end_at_a_call_and_values_keep_their_own_feeds() -> None:
    tools = [{"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}]
    for name, mark in (("qwen3_coder", ""), ("seed_oss", "seed:")):
        for value in ("x", "x\n", "\nx", ""):
            body = f"<function=f>\n<parameter=a>\n{value}\n</parameter>\n</function>"
            call = f"<{mark}tool_call>\n{body}\n</{mark}tool_call>"
            read = parse_tool_calls(f"Hm.\n{call}", tools, format=name, reasoning="open")
            assert read.reasoning == "Hm." and [c.arguments for c in read] == [{"a": value}]
