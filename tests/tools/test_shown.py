"""Calls as text, for templates that leave them out: each format's reader reads back what was written."""

from __future__ import annotations

import pickle

import pytest

import tokenform as tf
from tokenform.errors import ToolError
from tokenform.frontends.tools import parse_tool_calls
from tokenform.frontends.tools.formats import FORMATS
from tokenform.frontends.tools.shown import shown_tools, written_call

TOOL = {
    "name": "find",
    "description": "Finds.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "tags": {"type": "array"}},
    },
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_call_in_every_format_reads_back(name: str) -> None:
    arguments = {"city": "Köln <b>", "days": 3, "tags": ["a"]}
    (call,) = parse_tool_calls(written_call("find", arguments, FORMATS[name]), [TOOL], format=name)
    assert call.name == "find" and call.arguments == arguments
    assert '"Finds."' in shown_tools([{"type": "function", "function": TOOL}], FORMATS[name])


def test_what_a_format_cant_say_is_an_error() -> None:
    with pytest.raises(ToolError, match="can't be written as hermes"):
        written_call("find", {"city": object()}, FORMATS["hermes"])


def test_the_format_travels_with_the_grammar() -> None:
    grammar = tf.tools([TOOL], format="hermes")
    joined = grammar | tf.json_schema({"type": "integer"})
    for one in (grammar, joined, pickle.loads(pickle.dumps(tf.tools([TOOL], format="hermes")))):
        assert one.tools.format.name == "hermes"  # type: ignore[attr-defined]
