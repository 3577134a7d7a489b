"""The recorded outputs: every `must` is allowed and read, every `refuse` refused, the others are read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tokenform.errors import ToolError
from tokenform.frontends.tools import FORMATS, ToolCalls, parse_tool_calls, tool_shape

from .data import cases
from .tree_matcher import accepts

ANYWHERE = {"text_after", "text_between"}


def reads_right(case: dict[str, Any], got: ToolCalls) -> bool:
    """Calls, content and reasoning as recorded (content is left open where text follows a call)."""
    if [{"name": c.name, "arguments": c.arguments} for c in got] != case["expected"]:
        return False
    if got.reasoning != case["reasoning"]:
        return False
    return got.content == case["content"] or (case["content"] is None and bool(ANYWHERE & set(case["tags"])))


def wrong(tier: str) -> list[str]:
    """The ids of the outputs of a tier that are not read right."""
    found = []
    for case in cases():
        if case["tier"] != tier:
            continue
        try:
            got = parse_tool_calls(case["output"], case["tools"], format=case["format"])
        except ToolError:
            got = ToolCalls()
        if not reads_right(case, got):
            found.append(case["id"])
    return found


@pytest.mark.parametrize("tier", ["must", "should", "may"])
def test_every_output_is_read_right(tier: str) -> None:
    assert wrong(tier) == []


def allowed(case: dict[str, Any]) -> bool:
    return accepts(
        tool_shape(case["tools"], format=case["format"], tool_choice=case["choice"]), case["output"]
    )


def test_the_grammar_allows_every_must() -> None:
    assert [c["id"] for c in cases() if c["tier"] == "must" and not allowed(c)] == []


def test_the_grammar_refuses_every_refuse() -> None:
    assert [c["id"] for c in cases() if c["tier"] == "refuse" and allowed(c)] == []


# of faults that leave one reading: markers that are missing, arguments as JSON text or as Python writes them
MENDED = [
    "deepseek_v31/no_call_marker",
    "hermes/serialized_arguments",
    "hermes/until_eos",
    "minimax/sgl_no_end",
    "qwen3_coder/missing_close",
    "qwen3_coder/sgl_implicit_close",
    "qwen3_coder/sgl_python_quotes",
]


def test_refused_outputs_are_not_read_as_calls() -> None:
    """But for those that only `tool_choice` or the number of sections forbids: reading does not know them."""
    readable = []
    for case in cases():
        if case["tier"] == "refuse":
            try:
                got = parse_tool_calls(case["output"], case["tools"], format=case["format"])
            except ToolError:
                continue
            if got:
                readable.append(case["id"])
    assert sorted(readable) == sorted([*MENDED, "hermes/text_between_required", "mistral_v3/two_markers"])


def test_formats_of_the_outputs_are_known() -> None:
    counts = Counter(case["format"] for case in cases())
    assert set(counts) <= set(FORMATS)
