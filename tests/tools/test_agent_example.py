"""The agent loop of `examples/agent.py`, with a scripted model in place of the built-in one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import tokenform as tf


@pytest.fixture(scope="module")
def agent() -> ModuleType:
    path = Path(__file__).parents[2] / "examples" / "agent.py"
    spec = importlib.util.spec_from_file_location("agent_example", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Script:
    """Says its lines in turn, and keeps the conversations that it was shown."""

    def __init__(self, *lines: str) -> None:
        self.lines, self.seen = list(lines), []  # type: ignore[var-annotated]

    def sample(self, messages: list[dict[str, Any]], grammar: Any, **_: Any) -> list[Any]:
        self.seen.append([*messages])
        return [SimpleNamespace(text=self.lines[len(self.seen) - 1])]


CALL = '<tool_call>\n{"name": "get_population", "arguments": {"city": "Oslo", "year": 2021}}\n</tool_call>'
SUM = '<tool_call>\n{"name": "add", "arguments": {"a": 697010, "b": 1}}\n</tool_call>'


def test_the_loop_calls_tools_and_ends_with_the_answer(agent: ModuleType) -> None:
    script, shown = Script(CALL, SUM, "697011 it is."), []  # type: ignore[var-annotated]
    assert agent.run(script, "How many and one more?", show=shown.append) == "697011 it is."
    assert [line.split(" -> ")[1] for line in shown] == ['{"population": 697010}', '{"sum": 697011}']
    roles = [message["role"] for message in script.seen[-1]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool"]
    first, answer = script.seen[-1][1]["tool_calls"][0], script.seen[-1][2]
    assert first["id"] == answer["tool_call_id"] and answer["content"] == '{"population": 697010}'


def test_an_answer_may_come_before_the_last_turn(agent: ModuleType) -> None:
    assert agent.run(Script(CALL, "Many."), "How many?", show=lambda line: None) == "Many."


def test_the_query_says_what_it_does_not_find(agent: ModuleType) -> None:
    assert agent.get_population("Oslo", 1066) == {"error": "the census of 1066 has no Oslo"}


def test_the_built_in_model_answers_with_what_the_tools_said(agent: ModuleType) -> None:
    pytest.importorskip("torch", reason="the base package comes without models")
    generator, shown = tf.Generator(), []  # type: ignore[var-annotated]
    said = [agent.run(generator, question, show=shown.append) for question in agent.QUESTIONS]
    assert "697010" in said[0] and "1661" in said[1]
    assert "get_population" in shown[0] and "add" in shown[1]


def test_an_answer_has_no_figure_that_nobody_gave(agent: ModuleType) -> None:
    automaton = agent.answer("Oslo in 2021?", '{"population": 697010}').compile(
        tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256], special=[256])
    )
    for text, right in (
        ("In 2021, Oslo had 697010.", True),
        ("It is 697010 people.", True),
        ("In 2021.", False),
        ("It is 697011.", False),
        ("It is 69.", False),
    ):
        assert automaton.matches(text.encode()) == right
