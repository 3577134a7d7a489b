"""cohere-melody, Cohere's own reader of Command A (2026), reads what the grammar writes."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from tokenform.frontends.tools import parse_tool_calls, tool_shape

from .tree_writer import Writer, random_tools

melody = pytest.importorskip("cohere_melody", reason="needs cohere-melody, Cohere's parser")


def judged(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls as melody reads them; elements inside each other are its default."""
    reader = melody.PyFilter(melody.PyFilterOptions().cmd5().stream_tool_actions())
    calls = reader.process_full_text("<|END_THINKING|>" + text).tool_calls
    return [(call.name, json.loads(call.arguments)) for call in calls]


def test_command_a() -> None:
    compared = 0
    for seed in range(120):
        rng = Random(f"melody {seed}")
        definitions = random_tools(rng)
        shape = tool_shape(definitions, format="command_a", tool_choice="required", reasoning="none")
        text = Writer(shape, rng).text()
        if "<cofl:tool_param" in text:
            continue  # the older elements are read under another option
        got = parse_tool_calls(text, definitions, format="command_a", reasoning="none", validate=False)
        assert judged(text) == [(call.name, call.arguments) for call in got], text
        compared += len(got)
    assert compared > 20
