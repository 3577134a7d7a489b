"""A budget that cuts into an answer is said by every endpoint, and no call is finished by it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tokenform as tf
from tokenform.frontends.tools import FORMATS
from tokenform.frontends.tools.shown import written_call
from tokenform.server.endpoints.items import Writer
from tokenform.server.tooling import CallLayout

FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "parcel",
        "schema": {
            "type": "object",
            "properties": {"number": {"type": "integer"}, "note": {"type": "string"}},
            "required": ["number", "note"],
            "additionalProperties": False,
        },
    },
}
ASKED = [{"role": "user", "content": "The parcel 4821 is late; the note says: call before noon, please."}]
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}
BUDGETS = range(18, 60, 3)


def post(client: Any, path: str, **body: Any) -> Any:
    answer = client.post(f"/v1/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(client: Any, path: str, **body: Any) -> list[dict[str, Any]]:
    with client.stream("POST", f"/v1/{path}", json={**body, "stream": True}) as answer:
        lines = [line[6:] for line in answer.iter_lines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.parametrize("tokens", [9, 10, 11, 60])
def test_every_endpoint_says_length(client: Any, tokens: int) -> None:
    body = {"messages": ASKED, "seed": 0}
    one = post(client, "chat/completions", **body, response_format=FORM, max_tokens=tokens)["choices"][0]
    long = post(client, "chat/completions", **body, response_format=FORM, max_tokens=300)["choices"][0]
    cut = one["message"]["content"] != long["message"]["content"]
    assert long["finish_reason"] == "stop" and json.loads(one["message"]["content"])
    assert one["finish_reason"] == ("length" if cut else "stop")
    told = events(client, "chat/completions", **body, response_format=FORM, max_tokens=tokens)
    assert told[-1]["choices"][0]["finish_reason"] == one["finish_reason"]
    assert (tokens < 60) == cut

    config = {"format": {"type": "json_schema", "schema": FORM["json_schema"]["schema"]}}
    sent = {"messages": ASKED, "output_config": config, "max_tokens": tokens, "seed": 0}
    reason = "max_tokens" if cut else "end_turn"
    assert post(client, "messages", **sent)["stop_reason"] == reason
    (delta,) = [one for one in events(client, "messages", **sent) if one["type"] == "message_delta"]
    assert delta["delta"]["stop_reason"] == reason

    text = {"format": {"type": "json_schema", **FORM["json_schema"]}}
    sent = {"input": ASKED[0]["content"], "text": text, "max_output_tokens": max(tokens, 16), "seed": 0}
    if tokens == 60:
        assert post(client, "responses", **sent)["status"] == "completed"
    sent["text"]["format"]["schema"] = {"type": "array", "items": {"type": "integer"}, "minItems": 7}
    whole = post(client, "responses", **sent)
    assert whole["status"] in ("completed", "incomplete")
    last = events(client, "responses", **sent)[-1]
    assert last["type"] == f"response.{whole['status']}"


def test_what_the_budget_made_is_told_where_it_is_asked_for(client: Any) -> None:
    body = {"messages": ASKED, "response_format": FORM, "max_tokens": 9, "report": True}
    choice = post(client, "chat/completions", **body)["choices"][0]
    assert choice["finish_reason"] == "length" and "/note" in choice["tokenform"]["cut"]


@pytest.mark.parametrize("seed", range(3))
def test_no_call_is_finished_by_the_budget(client: Any, seed: int) -> None:
    body = {"messages": ASKED, "tools": [TOOL], "tool_choice": "required", "seed": seed, "temperature": 0.8}
    long = post(client, "chat/completions", **body, max_tokens=400)["choices"][0]
    calls = [one["function"]["arguments"] for one in long["message"].get("tool_calls", ())]
    reasons, whole = set(), 0
    for budget in BUDGETS:
        answer = client.post("/v1/chat/completions", json={**body, "max_tokens": budget})
        if answer.status_code == 400:
            continue
        choice = answer.json()["choices"][0]
        made = [one["function"]["arguments"] for one in choice["message"].get("tool_calls", ())]
        assert made == calls[: len(made)]
        assert choice["finish_reason"] == "length" or made == calls
        assert long["finish_reason"] == "tool_calls" or choice["finish_reason"] == "length"
        reasons.add(choice["finish_reason"])
        whole += len(made)

        told = [one["choices"][0] for one in events(client, "chat/completions", **body, max_tokens=budget)]
        joined: dict[int, str] = {}
        for entry in (call for one in told for call in one["delta"].get("tool_calls", ())):
            piece = entry["function"].get("arguments", "")
            joined[entry["index"]] = joined.get(entry["index"], "") + piece
        assert told[-1]["finish_reason"] == choice["finish_reason"]
        for number, text in joined.items():
            if number < len(made):
                assert text == made[number]
            else:  # it broke off
                assert number == len(made) and (number >= len(calls) or calls[number].startswith(text))
                with pytest.raises(ValueError):
                    json.loads(text)

        sent = {"messages": ASKED, "tools": [{"name": "weather", "input_schema": PARAMETERS}], "seed": seed}
        sent |= {"tool_choice": {"type": "any"}, "temperature": 0.8, "max_tokens": budget}
        message = post(client, "messages", **sent)
        blocks = [one["input"] for one in message["content"] if one["type"] == "tool_use"]
        assert blocks == [json.loads(text) for text in made]
        assert message["stop_reason"] == ("max_tokens" if choice["finish_reason"] == "length" else "tool_use")

        sent = {"input": ASKED[0]["content"], "tools": [{"type": "function", **TOOL["function"]}]}
        sent |= {"tool_choice": "required", "seed": seed, "temperature": 0.8, "max_output_tokens": budget}
        response = post(client, "responses", **sent)
        given = [one["arguments"] for one in response["output"] if one["type"] == "function_call"]
        assert given == made
        last = events(client, "responses", **sent)[-1]["response"]
        assert last["status"] == response["status"]
        items = [one for one in last["output"] if one["type"] == "function_call"]
        assert [one["arguments"] for one in items if one["status"] == "completed"] == made
    assert "length" in reasons


@pytest.mark.parametrize("tokens", [9, 60])
def test_a_streamed_response_has_every_probability_and_its_end(client: Any, tokens: int) -> None:
    form = {"type": "json_schema", "name": "parcel", "schema": FORM["json_schema"]["schema"]}
    body = {"input": ASKED[0]["content"], "seed": 0, "max_output_tokens": tokens, "top_logprobs": 2}
    for more in ({"text": {"format": form}}, {}):
        whole = post(client, "responses", **body, **more)
        told = events(client, "responses", **body, **more)
        (message,) = whole["output"]
        listed = message["content"][0]["logprobs"]
        assert listed and len(listed) == whole["usage"]["output_tokens"]
        deltas = [one for one in told if one["type"] == "response.output_text.delta"]
        close([token for one in deltas for token in one["logprobs"]], listed)
        assert "".join(one["delta"] for one in deltas) == message["content"][0]["text"]
        by_type = {one["type"]: one for one in told}
        close(by_type["response.output_text.done"]["logprobs"], listed)
        close(by_type["response.content_part.done"]["part"]["logprobs"], listed)
        for last in (told[-1]["response"]["output"][0], by_type["response.output_item.done"]["item"]):
            close(last["content"][0]["logprobs"], listed)
            assert last["content"][0]["text"] == message["content"][0]["text"]
            assert last["status"] == message["status"] == whole["status"]
        assert told[-1]["response"]["status"] == whole["status"]
        assert tokens == 60 or whole["status"] == "incomplete"


def close(got: list[Any], wanted: list[Any]) -> None:
    assert [one["token"] for one in got] == [one["token"] for one in wanted]
    for one, other in zip(got, wanted, strict=True):
        assert one["logprob"] == pytest.approx(other["logprob"], abs=1e-4)
        assert len(one["top_logprobs"]) == len(other["top_logprobs"]) == 2


@pytest.mark.parametrize("name", FORMATS)
def test_no_call_is_finished_by_the_end_of_a_cut_text(name: str) -> None:
    """Elements have no end of their own: all of a call's, or none of it, counts."""
    arguments = {"city": "Oslo b", "days": 12}
    tool = {"name": "weather", "parameters": {**PARAMETERS, "required": []}}
    text = written_call("weather", arguments, FORMATS[name])
    layout = CallLayout([tool], FORMATS[name], tf.tools([tool], format=name))
    for place in range(len(text) + 1):
        writer = Writer(layout)
        told = "".join(step.delta for step in [*writer.feed(text[:place]), *writer.close(cut=True)])
        for item in writer.items:
            if item.name is not None and not item.cut:
                assert json.loads(item.text) == arguments, text[:place]
        if any(item.cut for item in writer.items):
            with pytest.raises(ValueError):
                json.loads(told[told.index("{") :] if "{" in told else "")
