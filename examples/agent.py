"""An agent loop with two local tools, a SQLite query and a calculator, on the built-in model.

    python examples/agent.py
    python examples/agent.py "How many people lived in Bergen in 2011?"

The first turn has to be a tool call, so the question is looked up and not made up; afterwards the model may
call again or answer, and the last turn has to be an answer.  Every call fits its tool's signature, and every
figure of the answer is one that the question or a tool gave, because the grammar lets nothing else through:
there is no retry in this loop.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Literal

import tokenform as tf

CENSUS = [
    ("Oslo", 2011, 599230),
    ("Oslo", 2021, 697010),
    ("Bergen", 2011, 263762),
    ("Bergen", 2021, 285601),
    ("Trondheim", 2011, 173486),
    ("Trondheim", 2021, 207595),
]
FORMAT = "hermes"


def open_database() -> sqlite3.Connection:
    """A census in memory."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE census (city TEXT, year INTEGER, population INTEGER)")
    database.executemany("INSERT INTO census VALUES (?, ?, ?)", CENSUS)
    return database


DATABASE = open_database()


def get_population(city: Literal["Oslo", "Bergen", "Trondheim"], year: Literal[2011, 2021]) -> dict[str, Any]:
    """Get the population of a city."""
    query = "SELECT population FROM census WHERE city = ? AND year = ?"
    row = DATABASE.execute(query, (city, year)).fetchone()
    return {"population": row[0]} if row else {"error": f"the census of {year} has no {city}"}


def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


TOOLS: tuple[Callable[..., Any], ...] = (get_population, add)
QUESTIONS = ("What was the population of Oslo in 2021?", "Add 1284 and 377.")


def answer(question: str, result: str) -> tf.Grammar:
    """A sentence that states the last figure of a tool's result, and no figure that nobody gave.

    Args:
        question, result: the texts that figures may be taken from.
    """
    given = "|".join(sorted(set(re.findall(r"\d+", f"{question} {result}")), key=len, reverse=True))
    words = "[A-Za-z ,]{0,40}"
    stated = re.findall(r"\d+", result)
    if not stated:
        return tf.regex(rf"[A-Z]{words}[a-z]\.")
    return tf.regex(rf"[A-Z]{words}(\b({given})\b{words}){{0,2}}\b{stated[-1]}( [a-z]{{1,12}})?\.")


def run(
    generator: Any,
    question: str,
    tools: Sequence[Callable[..., Any]] = TOOLS,
    *,
    turns: int = 3,
    show: Callable[[str], None] = print,
) -> str:
    """Ask, call tools as long as the model wants them, and give the answer.

    Args:
        generator: a `tf.Generator`, or anything with its `sample(messages, grammar, max_tokens=…)`.
        turns: most turns of the model; the last one is an answer.
        show: is told what happens.
    """
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    calls = tf.tools(tools, format=FORMAT, tool_choice="required", parallel=False, reasoning="none")
    outcome = ""
    for turn in range(turns):
        said = answer(question, outcome)
        grammar = calls if turn == 0 else calls | said if turn < turns - 1 else said
        (result,) = generator.sample(messages, grammar, max_tokens=160)
        reply = tf.parse_tool_calls(result.text, tools, format=FORMAT, reasoning="none")
        if not reply:
            return reply.content or ""
        messages.append(reply.to_message())
        for call in reply:
            outcome = json.dumps(call(), ensure_ascii=False)
            show(f"  {call.name}({json.dumps(call.arguments, ensure_ascii=False)}) -> {outcome}")
            messages.append(call.answer(outcome))
    raise AssertionError("the last turn allows no call")


def main() -> None:
    parser = argparse.ArgumentParser(description="Ask questions about a census, or for a sum.")
    parser.add_argument("question", nargs="*", help=f"default: {' '.join(QUESTIONS)}")
    questions = parser.parse_args().question or QUESTIONS
    generator = tf.Generator()
    for question in questions:
        print(question)
        print(run(generator, question))


if __name__ == "__main__":
    main()
