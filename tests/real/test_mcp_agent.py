"""Ten questions of `examples/mcp_agent.py`, each with a call to a session's tool and an answer from it."""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module("mcp_agent")
    for name in ("mcp_agent", "agent"):
        sys.modules.pop(name, None)


@pytest.mark.timeout(3600)
def test_ten_turns(example: Any, smol: Any) -> None:
    turns = asyncio.run(example.run(smol, example.Census(), example.QUESTIONS))
    assert len(turns) == 10
    right = 0
    for (call, answer), (name, arguments) in zip(turns, example.MEANT, strict=True):
        result = asyncio.run(call()).structuredContent
        assert str(next(iter(result.values()))) in answer  # the answer states what the tool gave
        right += (call.name, call.arguments) == (name, arguments)
    assert right >= 5, right  # it copies a call of the turn before where a sum is asked for
