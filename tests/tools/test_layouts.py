"""The project's own outputs by format (`layouts.py`): the grammar allows every `must` and refuses every
`refuse`, the reader reads every `must` and `read`, whole and cut anywhere."""

from __future__ import annotations

from typing import Any

import pytest

from tokenform.errors import ToolError
from tokenform.frontends.tools import (
    FORMATS,
    ToolCalls,
    ToolCallStream,
    find_format,
    parse_tool_calls,
    tools,
)
from tokenform.frontends.tools.layout import PythonArguments

from .layouts import LAYOUTS, TOOLS, Layout
from .test_engine_walks import tokens_of, vocabulary


def writable(name: str) -> list[Any]:
    """The tools whose names the format can write: Python has no name with a hyphen."""
    python = any(isinstance(part, PythonArguments) for part in find_format(name).wire.call)
    return [tool for tool in TOOLS if not (python and "-" in tool["function"]["name"])]


def accepted(case: Layout, special: bool) -> bool:
    grammar = tools(writable(case.format), format=case.format, tool_choice=case.choice)
    vocab = vocabulary(case.format, special)
    auto = grammar.compile(vocab)
    state = auto.start
    for token in tokens_of(vocab, case.output):
        if not auto.allows(state, token):
            return False
        state = auto.advance(state, token)
    return auto.is_accepting(state)


def means(case: Layout, got: ToolCalls) -> bool:
    said = case.free or got.content == case.content
    return (
        said and [(c.name, c.arguments) for c in got] == list(case.calls) and got.reasoning == case.reasoning
    )


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("case", [c for c in LAYOUTS if c.tier != "read"], ids=str)
def test_the_grammar(case: Layout, special: bool) -> None:
    assert accepted(case, special) == (case.tier == "must")


@pytest.mark.parametrize("case", [c for c in LAYOUTS if c.tier != "refuse"], ids=str)
def test_the_reader(case: Layout) -> None:
    assert means(case, parse_tool_calls(case.output, TOOLS, format=case.format))
    stream = ToolCallStream(TOOLS, format=case.format)
    for character in case.output:
        stream.feed(character)
    stream.close()
    assert means(case, stream.result)


@pytest.mark.parametrize("case", [c for c in LAYOUTS if c.tier == "refuse"], ids=str)
def test_what_is_refused_is_no_call_of_these_tools(case: Layout) -> None:
    """But for those that break a rule of the turn only, which reading does not know."""
    try:
        got = parse_tool_calls(case.output, TOOLS, format=case.format)
    except ToolError:
        return
    assert not got or case.readable


def test_every_format_has_all_tiers() -> None:
    assert {(c.format, c.tier) for c in LAYOUTS} >= {(f, t) for f in FORMATS for t in ("must", "refuse")}
