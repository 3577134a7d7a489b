"""One request with tools and a final schema: each answer is calls, or a document of the schema."""

from __future__ import annotations

import json

import jsonschema
import pytest

PARCEL = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "paid": {"type": "boolean"}},
    "required": ["number", "paid"],
    "additionalProperties": False,
}
FIND = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
TOOL = {"type": "function", "function": {"name": "find_order", "parameters": FIND}}
FORM = {"type": "json_schema", "json_schema": {"name": "parcel", "schema": PARCEL}}
ASKED = [
    "The parcel has the number 4821 and is paid.",
    "Where is the order 4821?",
    "Call find_order with the number 7.",
    "Hello",
]


def post(client, **body):
    answer = client.post("/v1/chat/completions", json={"max_tokens": 80, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]


@pytest.mark.parametrize("text", ASKED)
def test_an_answer_is_a_call_or_in_its_form(client, text: str) -> None:
    for seed in range(3):
        choice = post(
            client,
            messages=[{"role": "user", "content": text}],
            tools=[TOOL],
            response_format=FORM,
            temperature=1.0,
            seed=seed,
        )
        message = choice["message"]
        if choice["finish_reason"] == "tool_calls":
            for call in message["tool_calls"]:
                assert call["function"]["name"] == "find_order"
                jsonschema.validate(json.loads(call["function"]["arguments"]), FIND)
        elif choice["finish_reason"] == "stop":
            jsonschema.validate(json.loads(message["content"]), PARCEL)


def test_a_choice_of_tools_is_kept_beside_the_form(client) -> None:
    messages = [{"role": "user", "content": ASKED[0]}]
    body = {"messages": messages, "tools": [TOOL], "response_format": FORM}
    called = post(client, **body, tool_choice="required")
    assert called["finish_reason"] == "tool_calls" and called["message"]["tool_calls"]
    said = post(client, **body, tool_choice="none")
    jsonschema.validate(json.loads(said["message"]["content"]), PARCEL)


def test_at_most_one_call_where_calls_are_not_parallel(client) -> None:
    for seed in range(4):
        choice = post(
            client,
            messages=[{"role": "user", "content": "find_order 1, find_order 2, find_order 3"}],
            tools=[TOOL],
            tool_choice="required",
            parallel_tool_calls=False,
            temperature=1.0,
            seed=seed,
        )
        assert len(choice["message"]["tool_calls"]) == 1


BAD = {
    "type": "object",
    "properties": {"a": {"allOf": [{"type": "string"}, {"type": "integer"}]}},
    "required": ["a"],
}
MISSPELT = {"type": "object", "properties": {"a": {"type": "strin"}}}


@pytest.mark.parametrize(
    ("schema", "code", "place"),
    [
        (BAD, "unsatisfiable_schema", "/properties/a"),
        (MISSPELT, "invalid_schema", "/properties/a/type"),
        (5, "invalid_schema", ""),
    ],
)
def test_a_strict_tool_is_kept_or_refused(client, schema, code: str, place: str) -> None:
    """Without `strict` such a tool takes any arguments; with it the request is refused, with the place."""
    good = {"name": "good", "parameters": FIND, "strict": True}
    for strict in (True, False, None):
        bad = {"name": "bad", "parameters": schema} | ({} if strict is None else {"strict": strict})
        listed = [good, bad]
        own = [{"input_schema": one["parameters"], **one} for one in listed]
        for one in own:
            del one["parameters"]
        messages = {"messages": [{"role": "user", "content": "a"}]}
        for path, holder, body in (
            (
                "chat/completions",
                "/function/parameters",
                {**messages, "tools": [as_chat(one) for one in listed]},
            ),
            (
                "responses",
                "/parameters",
                {"input": "a", "tools": [{"type": "function", **one} for one in listed]},
            ),
            ("messages", "/input_schema", {**messages, "tools": own}),
        ):
            most = "max_output_tokens" if path == "responses" else "max_tokens"
            answer = client.post(f"/v1/{path}", json={**body, most: 40})
            if strict:
                assert answer.status_code == 400, (path, answer.text)
                error = answer.json()["error"]
                assert error["code"] == code and error["param"] == f"/tools/1{holder}{place}", error
            else:
                assert answer.status_code == 200, (path, answer.text)


def test_a_strict_tool_beside_a_bad_one_keeps_its_schema(client) -> None:
    """A bad tool that is not strict does not make a strict one loose."""
    listed = [as_chat({"name": "bad", "parameters": BAD}), as_chat({**TOOL["function"], "strict": True})]
    choice = post(
        client,
        messages=[{"role": "user", "content": ASKED[2]}],
        tools=listed,
        tool_choice={"type": "function", "function": {"name": "find_order"}},
    )
    for call in choice["message"]["tool_calls"]:
        jsonschema.validate(json.loads(call["function"]["arguments"]), FIND)


def as_chat(function):
    return {"type": "function", "function": function}
