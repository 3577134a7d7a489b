"""Frameworks that speak OpenAI's API, against a running server; each is skipped where it is not installed."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Literal

import pytest
from pydantic import BaseModel

pytest.importorskip("openai", reason="openai is not installed")
os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
ASKED = "The parcel 4821 is paid."


class Parcel(BaseModel):
    number: int
    status: Literal["new", "paid", "lost"]


WANTED = Parcel(number=4821, status="paid")


@pytest.fixture
def model(client):
    return client.get("/v1/models").json()["data"][0]["id"]


@pytest.mark.parametrize("mode", ["JSON_SCHEMA", "TOOLS", "JSON"])
def test_instructor(url, model, mode):
    instructor = pytest.importorskip("instructor", reason="instructor is not installed")
    import openai

    asks = instructor.from_openai(
        openai.OpenAI(base_url=f"{url}/v1", api_key="none"), mode=getattr(instructor.Mode, mode)
    )
    messages = [{"role": "user", "content": ASKED}]
    if mode == "JSON":  # any object may come: the server binds it to an object, the client judges its members
        grammar = {"structured_outputs": {"json": Parcel.model_json_schema()}, "response_format": None}
        made = asks.chat.completions.create(
            model=model, messages=messages, response_model=Parcel, extra_body=grammar
        )
    else:
        made = asks.chat.completions.create(model=model, messages=messages, response_model=Parcel)
    assert made.number and made.status in ("new", "paid", "lost")
    if mode == "JSON_SCHEMA":
        assert made.model_dump() == WANTED.model_dump()
        parts = list(
            asks.chat.completions.create_partial(model=model, messages=messages, response_model=Parcel)
        )
        assert parts[-1].model_dump() == WANTED.model_dump() and len(parts) > 1


def test_agents(url, model):
    agents = pytest.importorskip("agents", reason="openai-agents is not installed")
    import openai

    def weather(city: str) -> str:
        """The weather of a city."""
        return f"It rains in {city}."

    async def run(kind):
        asks = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
        made = kind(model=model, openai_client=asks)
        agents.set_tracing_disabled(True)
        plain = agents.Agent("plain", model=made, output_type=Parcel)
        typed = (await agents.Runner.run(plain, ASKED)).final_output
        settings = agents.ModelSettings(tool_choice="required", parallel_tool_calls=False, max_tokens=200)
        caller = agents.Agent(
            "caller",
            model=made,
            tools=[agents.function_tool(weather)],
            model_settings=settings,
            tool_use_behavior="stop_on_first_tool",
        )
        return typed, (await agents.Runner.run(caller, "What is the weather in Lisbon?")).final_output

    for kind in (agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel):
        typed, told = asyncio.run(run(kind))
        assert typed == WANTED and told == "It rains in Lisbon."


def test_pydantic_ai(url, model):
    ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    made = OpenAIChatModel(model, provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))
    native = ai.Agent(made, output_type=ai.NativeOutput(Parcel)).run_sync(ASKED)
    assert native.output == WANTED
    by_tool = ai.Agent(made, output_type=Parcel).run_sync(ASKED, model_settings={"max_tokens": 400})
    assert isinstance(by_tool.output, Parcel)


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_langchain(url, model, method):
    langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    chat = langchain.ChatOpenAI(model=model, base_url=f"{url}/v1", api_key="none")
    made = chat.with_structured_output(Parcel, method=method).invoke(ASKED)
    assert isinstance(made, Parcel)
    if method == "json_schema":
        assert made == WANTED
        assert "".join(part.content for part in chat.stream("Hello", max_tokens=6)) is not None


def test_litellm(url, model):
    litellm = pytest.importorskip("litellm", reason="litellm is not installed")
    messages = [{"role": "user", "content": ASKED}]
    fields = {"model": f"hosted_vllm/{model}", "api_base": f"{url}/v1", "api_key": "none"}
    answer = litellm.completion(**fields, messages=messages, response_format=Parcel)
    assert Parcel.model_validate_json(answer.choices[0].message.content) == WANTED
    chunks = litellm.completion(**fields, messages=messages, response_format=Parcel, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert Parcel.model_validate_json(text) == WANTED


def test_outlines(url, model):
    outlines = pytest.importorskip("outlines", reason="outlines is not installed")
    import openai

    asks = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
    made = outlines.from_vllm(asks, model)
    assert Parcel.model_validate_json(made(ASKED, Parcel)) == WANTED
    assert made(ASKED, outlines.regex("[a-f]{6}")).strip("abcdef") == ""
    assert made(ASKED, Literal["new", "paid"]) in ("new", "paid")
    assert json.loads(outlines.from_openai(asks, model)(ASKED, Parcel)) == WANTED.model_dump()
