"""Calls of the built-in model: right values for everyday questions, in the layout that it was trained on."""

from __future__ import annotations

from typing import Any, Literal

import pytest

import tokenform as tf


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def weather(city: str) -> str:
    """The weather in a city."""
    return city


def get_population(city: Literal["Oslo", "Bergen", "Trondheim"], year: Literal[2011, 2021]) -> int:
    """Get the population of a city."""
    return len(city) + year


SUM, CITY = ((3, 4), (17, 25), (5, 6), (12, 30)), ("Oslo", "Paris", "Bern", "Lima")
PLACES = (("Oslo", 2011), ("Bergen", 2021), ("Trondheim", 2011), ("Bergen", 2011))
ASKED: list[tuple[tuple[Any, ...], str, str, dict[str, Any]]] = [
    *(((add,), f"Add {a} and {b}.", "add", {"a": a, "b": b}) for a, b in SUM),
    *(((weather, add), f"What is {a} plus {b}?", "add", {"a": a, "b": b}) for a, b in SUM),
    *(((add, weather), f"What is the weather in {city}?", "weather", {"city": city}) for city in CITY),
    *(
        (
            (get_population, add),
            f"How many people lived in {city} in {year}?",
            "get_population",
            {"city": city, "year": year},
        )
        for city, year in PLACES
    ),
]


def test_calls_have_the_values_of_the_question() -> None:
    pytest.importorskip("torch", reason="the base package comes without models")
    wrong = []
    for tools, question, name, arguments in ASKED:
        grammar = tf.tools(tools, format="hermes", tool_choice="required")
        result = tf.generate(question, grammar, max_tokens=120)
        (call,) = result.tool_calls
        if (call.name, dict(call.arguments)) != (name, arguments):
            wrong.append((question, result.text))
    assert len(wrong) <= len(ASKED) // 4, wrong  # it is a small model: three of four, as it was measured


def test_one_sum_is_right_in_every_choice_of_tools() -> None:
    pytest.importorskip("torch", reason="the base package comes without models")
    for choice in ("auto", "required"):
        result = tf.generate("Add 3 and 4.", tf.tools([add], format="hermes", tool_choice=choice))
        assert [dict(call.arguments) for call in result.tool_calls] == [{"a": 3, "b": 4}], result.text


@pytest.mark.parametrize("described", [{}, {"description": ""}, {"description": "Weather"}])
def test_a_tool_without_a_description_is_called_rightly(described: dict[str, str]) -> None:
    pytest.importorskip("torch", reason="the base package comes without models")
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    grammar = tf.tools(
        [{"name": "get_weather", **described, "parameters": city}], format="hermes", tool_choice="required"
    )
    (call,) = tf.generate("What is the weather in Lisbon?", grammar, max_tokens=80).tool_calls
    assert call.arguments == {"city": "Lisbon"}
