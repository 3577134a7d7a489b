"""The clients of OpenAI and Anthropic against a running server."""

from __future__ import annotations

import json
from typing import Literal

import jsonschema
import pytest
from pydantic import BaseModel

openai = pytest.importorskip("openai", reason="openai is not installed")

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION = "What is the weather in Lisbon?"


class Parcel(BaseModel):
    number: int
    status: Literal["new", "paid", "lost"]


@pytest.fixture
def asks(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def model(asks):
    return asks.models.list().data[0].id


def test_parsed_chats(asks, model):
    messages = [{"role": "user", "content": "The parcel 4821 is paid."}]
    answer = asks.chat.completions.parse(model=model, messages=messages, response_format=Parcel)
    assert answer.choices[0].message.parsed == Parcel(number=4821, status="paid")


def test_streamed_chats(asks, model):
    messages = [{"role": "user", "content": "The parcel 4821 is paid."}]
    with asks.chat.completions.stream(model=model, messages=messages, response_format=Parcel) as stream:
        kinds = {event.type for event in stream}
        assert stream.get_final_completion().choices[0].message.parsed.number == 4821
    assert "content.delta" in kinds and "content.done" in kinds


def test_called_tools(asks, model):
    function = {"name": "weather", "parameters": WEATHER, "strict": True}
    answer = asks.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": QUESTION}],
        tools=[{"type": "function", "function": function}],
        tool_choice="required",
        parallel_tool_calls=False,
    )
    (call,) = answer.choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {"city": "Lisbon"}


def test_errors_are_the_clients_own(asks, model):
    with pytest.raises(openai.BadRequestError, match="guided_jso") as caught:
        asks.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "a"}], extra_body={"guided_jso": {}}
        )
    assert caught.value.param == "/guided_jso"
    with pytest.raises(openai.NotFoundError):
        asks.chat.completions.create(model="other", messages=[{"role": "user", "content": "a"}])


def test_parsed_responses(asks, model):
    answer = asks.responses.parse(model=model, input="The parcel 4821 is paid.", text_format=Parcel)
    assert answer.output_parsed == Parcel(number=4821, status="paid")
    assert answer.status == "completed" and answer.usage.total_tokens > 0
    assert json.loads(answer.output_text)["number"] == 4821


def test_streamed_responses(asks, model):
    kinds, text = [], ""
    for event in asks.responses.create(model=model, input="Hello", max_output_tokens=8, stream=True):
        kinds.append(event.type)
        text += event.delta if event.type == "response.output_text.delta" else ""
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] in ("response.completed", "response.incomplete")
    assert event.response.output_text == text
    assert events_of_known_items(asks.responses.create(model=model, input="Hello", stream=True)) > 1
    with asks.responses.stream(model=model, input="The parcel 4821 is paid.", text_format=Parcel) as stream:
        for _ in stream:
            pass
        assert stream.get_final_response().output_parsed.status == "paid"


def events_of_known_items(events):
    """How many events there are within items; each names the item that was added in its place."""
    added, count = {}, 0
    for event in events:
        if event.type == "response.output_item.added":
            added[event.output_index] = event.item.id
        elif event.type == "response.output_item.done":
            assert event.item.id == added[event.output_index]
        elif hasattr(event, "item_id"):
            assert event.item_id == added[event.output_index], event.type
            count += 1
    return count


def test_functions_of_responses(asks, model):
    tool = {"type": "function", "name": "weather", "parameters": WEATHER, "strict": True}
    fields = {"model": model, "input": QUESTION, "tools": [tool], "tool_choice": "required"}
    answer = asks.responses.create(**fields, parallel_tool_calls=False)
    (call,) = answer.output
    assert call.type == "function_call" and json.loads(call.arguments) == {"city": "Lisbon"}
    text = ""
    for event in asks.responses.create(**fields, parallel_tool_calls=False, stream=True):
        text += event.delta if event.type == "response.function_call_arguments.delta" else ""
    assert text == call.arguments
    assert events_of_known_items(asks.responses.create(**fields, stream=True)) > 1
    going = [
        {"role": "user", "content": QUESTION},
        call.model_dump(exclude_none=True),
        {"type": "function_call_output", "call_id": call.call_id, "output": "Rain."},
    ]
    assert asks.responses.create(model=model, input=going, max_output_tokens=10).output_text is not None


@pytest.mark.parametrize(
    ("syntax", "definition", "accepted"),
    [
        ("regex", "[0-9]{2}-[a-f]{3}", "[0-9]{2}-[a-f]{3}"),
        ("lark", 'start: "<" NAME ">"\nNAME: /[a-z]{1,4}/', "<[a-z]{1,4}>"),
    ],
)
def test_custom_tools_with_grammars(asks, model, syntax, definition, accepted):
    import re

    grammar = {"type": "grammar", "syntax": syntax, "definition": definition}
    tool = {"type": "custom", "name": "code", "format": grammar}
    fields = {"model": model, "input": "The code.", "tools": [tool], "tool_choice": "required"}
    answer = asks.responses.create(**fields, parallel_tool_calls=False)
    (call,) = answer.output
    assert call.type == "custom_tool_call" and call.name == "code"
    assert re.fullmatch(accepted, call.input), call.input
    text = ""
    for event in asks.responses.create(**fields, parallel_tool_calls=False, stream=True):
        text += event.delta if event.type == "response.custom_tool_call_input.delta" else ""
    assert text == call.input
    assert events_of_known_items(asks.responses.create(**fields, stream=True)) > 1
    custom = {"type": "custom", "custom": {"name": "code", "format": {"type": "grammar", "grammar": grammar}}}
    custom["custom"]["format"]["grammar"] = {"syntax": syntax, "definition": definition}
    fields = {"model": model, "messages": [{"role": "user", "content": "The code."}], "tools": [custom]}
    chat = asks.chat.completions.create(**fields, tool_choice="required", parallel_tool_calls=False)
    (call,) = chat.choices[0].message.tool_calls
    assert call.type == "custom" and re.fullmatch(accepted, call.custom.input)
    text = ""
    for chunk in asks.chat.completions.create(
        **fields, tool_choice="required", parallel_tool_calls=False, stream=True
    ):
        for one in (chunk.choices[0].delta.tool_calls or ()) if chunk.choices else ():
            text += (one.model_extra or {}).get("custom", {}).get("input", "")
    assert text == call.custom.input


def test_anthropic_messages(url, model):
    anthropic = pytest.importorskip("anthropic", reason="anthropic is not installed")
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    asked = [{"role": "user", "content": QUESTION}]
    free = client.messages.create(model=model, max_tokens=8, messages=asked)
    assert free.role == "assistant" and free.content[0].type == "text"
    tools = [{"name": "weather", "input_schema": WEATHER}]
    choice = {"type": "any", "disable_parallel_tool_use": True}
    fields = {"model": model, "max_tokens": 200, "messages": asked, "tools": tools, "tool_choice": choice}
    answer = client.messages.create(**fields)
    assert answer.stop_reason == "tool_use"
    assert answer.content[0].name == "weather" and answer.content[0].input == {"city": "Lisbon"}
    with client.messages.stream(**fields) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_message()
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
    assert final.content[0].input == {"city": "Lisbon"} and final.usage.output_tokens > 0
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
    extra = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    told = client.messages.create(model=model, max_tokens=90, messages=asked, extra_body=extra)
    jsonschema.validate(json.loads(told.content[0].text), schema)
    result = {"type": "tool_result", "tool_use_id": answer.content[0].id, "content": "Rain."}
    going = [
        *asked,
        {"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in answer.content]},
        {"role": "user", "content": [result]},
    ]
    assert client.messages.create(model=model, max_tokens=8, messages=going, tools=tools).content is not None
    with pytest.raises(anthropic.BadRequestError, match="fits into 2 tokens"):
        client.messages.create(model=model, max_tokens=2, messages=asked, extra_body=extra)
