"""Ten questions to a model that has the tools of a server of the Model Context Protocol.

    python examples/mcp_agent.py --model path/or/name

Each turn asks a question, the model calls a tool of the session, the result goes back as a message, and the
model answers; the conversation is kept.  The session here is a stand-in in this process; a `ClientSession` of
the package `mcp` is given in its place, as it is.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import agent

import tokenform as tf

FORMAT = "hermes"
ASKED = [(city, year) for year in (2011, 2021) for city in ("Oslo", "Bergen", "Trondheim")]
QUESTIONS = [
    *(f"What was the population of {city} in {year}?" for city, year in ASKED),
    *(f"What is {a} plus {b}?" for a, b in ((12, 30), (1284, 377), (7, 8), (100, 250))),
]
MEANT: list[tuple[str, dict[str, Any]]] = [
    *(("get_population", {"city": city, "year": year}) for city, year in ASKED),
    *(("add", {"a": a, "b": b}) for a, b in ((12, 30), (1284, 377), (7, 8), (100, 250))),
]


class Census:
    """A session with a server that has the tools of `agent.py`."""

    async def list_tools(self) -> Any:
        known = (tf.tools([tool], format=FORMAT).tools[0]["function"] for tool in agent.TOOLS)
        return SimpleNamespace(
            tools=[
                SimpleNamespace(
                    name=one["name"], description=one["description"], inputSchema=one["parameters"]
                )
                for one in known
            ],
            nextCursor=None,
        )

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        function = {tool.__name__: tool for tool in agent.TOOLS}[name]
        return SimpleNamespace(content=[], structuredContent=function(**arguments), isError=False)


async def run(
    generator: Any, session: Any, questions: list[str], show: Callable[[str], None] = print
) -> list[tuple[Any, str]]:
    """The call and the answer of each question, in one conversation.

    Args:
        generator: a `tf.Generator`, or anything with its `sample(messages, grammar, max_tokens=…)`.
        session: with the server; it is asked for its tools once.
    """
    grammar = await tf.tools(session, format=FORMAT, tool_choice="required", parallel=False, reasoning="none")
    messages: list[dict[str, Any]] = []
    turns = []
    for question in questions:
        messages.append({"role": "user", "content": question})
        (result,) = generator.sample(messages, grammar, max_tokens=120)
        reply = grammar.parse(result.text)
        (call,) = reply
        back = call.answer(await call())
        messages += [reply.to_message(), back]
        said = agent.answer(question, back["content"])
        (answered,) = generator.sample(messages, said, max_tokens=60)
        messages.append({"role": "assistant", "content": answered.text})
        show(f"{question}\n  {call.name}{call.arguments} -> {back['content']}\n  {answered.text}")
        turns.append((call, answered.text))
    return turns


def main() -> None:
    parser = argparse.ArgumentParser(description="Ask ten questions of a model with the tools of a session.")
    parser.add_argument("--model", help="a folder, a file or a name; default: the built-in model")
    given = parser.parse_args()
    generator = tf.Generator(given.model) if given.model else tf.Generator()
    turns = asyncio.run(run(generator, Census(), QUESTIONS))
    right = sum((call.name, call.arguments) == meant for (call, _), meant in zip(turns, MEANT, strict=True))
    print(f"{right} of {len(turns)} calls are as they were meant")


if __name__ == "__main__":
    main()
