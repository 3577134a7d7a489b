"""Frameworks for agents against a served model that thinks: thoughts, content and calls in their places.

Each is skipped where it is not installed (`python tests/hosts/install.py --clients FOLDER` makes an
environment that has them).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from scripted import Scripted, tokenizer

import tokenform as tf

pytest.importorskip("starlette", reason="the server needs tokenform[serve]")
pytest.importorskip("uvicorn", reason="the server needs tokenform[serve]")
openai = pytest.importorskip("openai", reason="openai is not installed")

from tokenform.server import Engine, create_app  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
from running import running  # noqa: E402

os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
THOUGHT = "I should greet."
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
OUTPUT = '<tool_call>\n{"name": "final_result", "arguments": {"answer": 4}}\n</tool_call>'
ASKED = "hi"


class Answer(BaseModel):
    answer: int


class Served:
    def __init__(self, template: str, url: str, model: Scripted) -> None:
        self.template, self.url, self.model, self.called = template, f"{url}/v1", model, 0

    def says(self, said: str) -> None:
        thought = f"<think>\n{THOUGHT}\n</think>\n\n{said}"
        self.model.turns = [thought, thought.removeprefix("<think>\n"), said]

    def weather(self, city: str) -> str:
        """The weather of a city."""
        self.called += 1
        self.says("Hello there.")  # what the model says to the tool's answer
        return f"rain in {city}"


@pytest.fixture(scope="module", params=["open", "own"])
def served(request: pytest.FixtureRequest) -> Any:
    known = tokenizer(request.param)
    model = Scripted(known, [])
    engine = Engine(tf.Generator(model, known), name="it")
    with running(create_app(engine, playground=False)) as url:
        yield Served(request.param, url, model)
    engine.scheduler.close(drain=False)


def test_openai_agents(served: Served) -> None:
    agents = pytest.importorskip("agents", reason="openai-agents is not installed")
    agents.set_tracing_disabled(True)

    async def run(kind: Any) -> None:
        asks = openai.AsyncOpenAI(base_url=served.url, api_key="none")
        told: dict[str, Any] = {"name": "it", "model": kind(model="it", openai_client=asks)}
        told["model_settings"] = agents.ModelSettings(max_tokens=200)
        tool = agents.function_tool(served.weather)

        def kinds(result: Any) -> list[str]:
            return [item.type for item in result.new_items]

        served.says("Hello there.")
        plain = await agents.Runner.run(agents.Agent(**told), ASKED)
        assert plain.final_output == "Hello there."
        assert kinds(plain) == ["reasoning_item", "message_output_item"]
        assert THOUGHT in str(plain.new_items[0].raw_item)

        served.says('{"answer": 4}')
        typed = await agents.Runner.run(agents.Agent(**told, output_type=Answer), ASKED)
        assert typed.final_output == Answer(answer=4) and kinds(typed)[0] == "reasoning_item"

        served.says(CALL)
        called = await agents.Runner.run(agents.Agent(**told, tools=[tool]), ASKED)
        assert called.final_output == "Hello there."
        wanted = ["tool_call_item", "tool_call_output_item", "message_output_item"]
        assert [kind for kind in kinds(called) if kind != "reasoning_item"] == wanted

        served.says("Hello there.")
        stream = agents.Runner.run_streamed(agents.Agent(**told, tools=[tool]), ASKED)
        events = [event async for event in stream.stream_events()]
        deltas = [
            e.data.delta for e in events if getattr(e, "data", None) and "output_text.delta" in e.data.type
        ]
        assert "".join(deltas) == "Hello there." == stream.final_output

    for kind in (agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel):
        served.called = 0
        asyncio.run(run(kind))
        assert served.called == 1


def test_pydantic_ai(served: Served) -> None:
    ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
    from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    def model() -> Any:
        """With connections of its own: they belong to the event loop that opened them."""
        asks = openai.AsyncOpenAI(base_url=served.url, api_key="none")
        return OpenAIChatModel("it", provider=OpenAIProvider(openai_client=asks))

    made = model()
    settings = {"max_tokens": 200}

    def parts(result: Any, kind: Any) -> list[Any]:
        return [part for message in result.all_messages() for part in message.parts if isinstance(part, kind)]

    served.says("Hello there.")
    plain = ai.Agent(made).run_sync(ASKED, model_settings=settings)
    assert plain.output == "Hello there."
    assert [part.content for part in parts(plain, ThinkingPart)] == [THOUGHT]

    served.says('{"answer": 4}')
    typed = ai.Agent(made, output_type=ai.NativeOutput(Answer)).run_sync(ASKED, model_settings=settings)
    assert typed.output == Answer(answer=4) and parts(typed, ThinkingPart)

    served.says(OUTPUT)
    by_tool = ai.Agent(made, output_type=Answer).run_sync(ASKED, model_settings=settings)
    assert by_tool.output == Answer(answer=4) and parts(by_tool, ThinkingPart)[0].content == THOUGHT

    served.called = 0
    served.says(CALL)
    called = ai.Agent(made, tools=[served.weather]).run_sync(ASKED, model_settings=settings)
    assert called.output == "Hello there." and served.called == 1
    assert parts(called, ToolCallPart)[0].args_as_dict() == {"city": "Oslo"}
    assert [part.content for part in parts(called, TextPart)] == ["Hello there."]

    async def streamed() -> Any:
        served.says("Hello there.")
        async with ai.Agent(model()).run_stream(ASKED, model_settings=settings) as stream:
            return [text async for text in stream.stream_text(delta=True)], stream.all_messages()

    texts, messages = asyncio.run(streamed())
    assert "".join(texts) == "Hello there."
    assert any(
        isinstance(part, ThinkingPart) and part.content == THOUGHT for m in messages for part in m.parts
    )


@pytest.mark.parametrize("mode", ["JSON_SCHEMA", "TOOLS"])
def test_instructor(served: Served, mode: str) -> None:
    instructor = pytest.importorskip("instructor", reason="instructor is not installed")
    asks = instructor.from_openai(
        openai.OpenAI(base_url=served.url, api_key="none"), mode=getattr(instructor.Mode, mode)
    )
    call = '<tool_call>\n{"name": "Answer", "arguments": {"answer": 4}}\n</tool_call>'
    served.says('{"answer": 4}' if mode == "JSON_SCHEMA" else call)
    asked: dict[str, Any] = {
        "model": "it",
        "messages": [{"role": "user", "content": ASKED}],
        "max_tokens": 200,
    }
    made, raw = asks.chat.completions.create_with_completion(**asked, response_model=Answer)
    assert made.model_dump() == {"answer": 4}
    message = raw.choices[0].message
    assert message.reasoning_content == THOUGHT
    if mode == "TOOLS":
        assert message.content is None and json.loads(message.tool_calls[0].function.arguments) == {
            "answer": 4
        }
    if mode == "TOOLS":  # the tool of a stream has the name of a class of its own
        served.says(call.replace('"Answer"', '"PartialAnswer"'))
    parts = list(asks.chat.completions.create_partial(**asked, response_model=Answer))
    assert parts[-1].answer == 4
