"""Clients of OpenAI's API against a server, each check a JSON line: run by a Python that has the clients.

    python tests/hosts/vllm_clients.py http://127.0.0.1:8000/v1 m

A line is {"check", "error"}; "error" is null where all was well.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, Literal

os.environ.update(OPENAI_AGENTS_DISABLE_TRACING="1", LITELLM_LOG="ERROR", LITELLM_LOCAL_MODEL_COST_MAP="True")

import openai
from pydantic import BaseModel, Field

URL, MODEL = sys.argv[1:3]
MESSAGES: Any = [{"role": "user", "content": "The order has the number A-2041; Maria Rossi placed it."}]
CHECKS: list[Callable[[], None]] = []


class Order(BaseModel):
    """An order."""

    customer: str = Field(max_length=30)
    status: Literal["new", "paid", "lost"]


PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["c", "f"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}
TOOL: Any = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}
NAMED: Any = {"type": "function", "function": {"name": "weather"}}


def check(function: Callable[[], None]) -> Callable[[], None]:
    CHECKS.append(function)
    return function


def client() -> openai.OpenAI:
    return openai.OpenAI(base_url=URL, api_key="none", max_retries=0, timeout=300)


def city(call: Any) -> str:
    assert call.function.name == "weather", call
    given = json.loads(call.function.arguments)
    assert set(given) == {"city", "unit"} and given["unit"] in ("c", "f"), given
    return str(given["city"])


@check
def openai_parse() -> None:
    made = client().chat.completions.parse(
        model=MODEL, messages=MESSAGES, response_format=Order, max_tokens=80
    )
    assert isinstance(made.choices[0].message.parsed, Order) and made.choices[0].finish_reason == "stop"


@check
def openai_stream_and_usage() -> None:
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "o", "schema": Order.model_json_schema()}}
    stream = client().chat.completions.create(
        model=MODEL,
        messages=MESSAGES,
        response_format=wanted,
        max_tokens=80,
        stream=True,
        stream_options={"include_usage": True},
    )
    text, used = "", 0
    for part in stream:
        text += (part.choices[0].delta.content or "") if part.choices else ""
        used = part.usage.completion_tokens if part.usage else used
    Order.model_validate_json(text)
    assert 0 < used <= 80


@check
def openai_several_with_logprobs() -> None:
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "o", "schema": Order.model_json_schema()}}
    made = client().chat.completions.create(
        model=MODEL, messages=MESSAGES, response_format=wanted, max_tokens=80, n=3, seed=1, logprobs=True
    )
    assert len(made.choices) == 3 and made.choices[0].logprobs
    for choice in made.choices:
        Order.model_validate_json(choice.message.content or "")


@check
def openai_regex_grammars_and_choices() -> None:
    for outputs, right in (
        ({"regex": "[A-F]{3}-[0-9]{2}"}, lambda text: len(text) == 6),
        ({"grammar": 'root ::= "(" [0-9]{2} ")"'}, lambda text: text.strip("()").isdigit()),
        ({"grammar": 'start: "a" B\nB: /[0-9]{2}/'}, lambda text: text[0] == "a"),
        ({"choice": ["yes", "no"]}, lambda text: text in ("yes", "no")),
    ):
        made = client().chat.completions.create(
            model=MODEL, messages=MESSAGES, max_tokens=20, extra_body={"structured_outputs": outputs}
        )
        assert right(made.choices[0].message.content), (outputs, made.choices[0].message.content)


@check
def openai_an_error_is_the_clients_own() -> None:
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "o", "schema": {"type": "strin"}}}
    try:
        client().chat.completions.create(model=MODEL, messages=MESSAGES, response_format=wanted)
    except openai.BadRequestError as error:
        assert "type" in str(error), error
    else:
        raise AssertionError("a wrong schema was taken")


@check
def openai_tools() -> None:
    for choice in ("required", NAMED):
        made = client().chat.completions.create(
            model=MODEL, messages=MESSAGES, tools=[TOOL], tool_choice=choice, max_tokens=120
        )
        assert made.choices[0].message.tool_calls
        for call in made.choices[0].message.tool_calls:
            city(call)


@check
def openai_tools_in_a_stream() -> None:
    stream = client().chat.completions.create(
        model=MODEL, messages=MESSAGES, tools=[TOOL], tool_choice=NAMED, max_tokens=120, stream=True
    )
    written = ""
    for part in stream:
        for call in part.choices[0].delta.tool_calls or [] if part.choices else []:
            written += call.function.arguments or "" if call.index == 0 else ""
    assert set(json.loads(written)) == {"city", "unit"}, written


@check
def openai_responses() -> None:
    made = client().responses.parse(
        model=MODEL, input=MESSAGES[0]["content"], text_format=Order, max_output_tokens=80
    )
    assert isinstance(made.output_parsed, Order)


@check
def instructor_schema_tools_and_partial() -> None:
    import instructor

    for mode in (instructor.Mode.JSON_SCHEMA, instructor.Mode.TOOLS):
        asks = instructor.from_openai(client(), mode=mode)
        made = asks.chat.completions.create(
            model=MODEL, messages=MESSAGES, response_model=Order, max_tokens=120
        )
        assert made.status in ("new", "paid", "lost")
    asks = instructor.from_openai(client(), mode=instructor.Mode.JSON_SCHEMA)
    parts = list(
        asks.chat.completions.create_partial(
            model=MODEL, messages=MESSAGES, response_model=Order, max_tokens=120
        )
    )
    assert len(parts) > 1 and parts[-1].status in ("new", "paid", "lost")


@check
def agents_output_type_and_required_tool() -> None:
    import agents

    @agents.function_tool
    def weather(city: str, unit: Literal["c", "f"]) -> str:
        """The weather of a city."""
        return f"It rains in {city}."

    async def run(kind: Any) -> tuple[Any, Any]:
        asks = openai.AsyncOpenAI(base_url=URL, api_key="none", max_retries=0)
        made = kind(model=MODEL, openai_client=asks)
        settings = agents.ModelSettings(max_tokens=200)
        plain = agents.Agent("plain", model=made, output_type=Order, model_settings=settings)
        typed = (await agents.Runner.run(plain, MESSAGES[0]["content"])).final_output
        required = agents.ModelSettings(tool_choice="required", max_tokens=200)
        caller = agents.Agent(
            "caller",
            model=made,
            tools=[weather],
            model_settings=required,
            tool_use_behavior="stop_on_first_tool",
        )
        return typed, (await agents.Runner.run(caller, "What is the weather in Lisbon?")).final_output

    typed, told = asyncio.run(run(agents.OpenAIChatCompletionsModel))
    assert isinstance(typed, Order) and told.startswith("It rains in"), (typed, told)


@check
def pydantic_ai_native_and_tool() -> None:
    import pydantic_ai
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    made = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=URL, api_key="none"))
    settings: Any = {"max_tokens": 200}
    native = pydantic_ai.Agent(made, output_type=pydantic_ai.NativeOutput(Order))
    assert isinstance(native.run_sync(MESSAGES[0]["content"], model_settings=settings).output, Order)
    by_tool = pydantic_ai.Agent(made, output_type=Order)
    assert isinstance(by_tool.run_sync(MESSAGES[0]["content"], model_settings=settings).output, Order)


@check
def langchain_schema_and_tool() -> None:
    from langchain_openai import ChatOpenAI

    chat = ChatOpenAI(model=MODEL, base_url=URL, api_key="none", max_tokens=200, max_retries=0)
    for method in ("json_schema", "function_calling"):
        made = chat.with_structured_output(Order, method=method).invoke(MESSAGES[0]["content"])
        assert isinstance(made, Order), (method, made)


@check
def litellm_whole_and_streamed() -> None:
    import litellm

    fields: Any = {"model": f"hosted_vllm/{MODEL}", "api_base": URL, "api_key": "none", "max_tokens": 80}
    answer: Any = litellm.completion(**fields, messages=MESSAGES, response_format=Order)
    Order.model_validate_json(answer.choices[0].message.content)
    stream = litellm.completion(**fields, messages=MESSAGES, response_format=Order, stream=True)
    Order.model_validate_json("".join(part.choices[0].delta.content or "" for part in stream))
    called: Any = litellm.completion(**fields, messages=MESSAGES, tools=[TOOL], tool_choice="required")
    city(called.choices[0].message.tool_calls[0])


@check
def outlines_schema_regex_and_choice() -> None:
    import outlines

    made = outlines.from_vllm(client(), MODEL)
    text = MESSAGES[0]["content"]
    Order.model_validate_json(made(text, Order, max_tokens=80))
    assert made(text, outlines.regex("[a-f]{6}"), max_tokens=20).strip("abcdef") == ""
    assert made(text, Literal["new", "paid"], max_tokens=20) in ("new", "paid")


def main() -> None:
    logging.disable(logging.CRITICAL)
    for one in CHECKS:
        try:
            one()
            error = None
        except Exception:
            error = traceback.format_exc()[-1500:]
        print("check", json.dumps({"check": one.__name__, "error": error}), flush=True)


if __name__ == "__main__":
    main()
