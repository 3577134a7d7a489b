"""A thought before the answer, in each API: it has its budget, and the answer keeps its form."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

import tokenform as tf
from tokenform.decoding.scheduler import Scheduler, Thinking
from tokenform.errors import BudgetTooSmall, OptionError

PARCEL = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "paid": {"type": "boolean"}},
    "required": ["number", "paid"],
    "additionalProperties": False,
}
ASKED = [{"role": "user", "content": "The parcel 4821 is paid."}]
FORM = {"type": "json_schema", "json_schema": {"name": "it", "schema": PARCEL}}
PLAIN_FORM = {"type": "json_schema", "name": "it", "schema": PARCEL}
TOOL = {"type": "function", "function": {"name": "send", "parameters": PARCEL}}


def post(client, path: str, status: int = 200, **body: Any) -> Any:
    answer = client.post(f"/v1/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def events(client, path: str, **body: Any) -> list[dict[str, Any]]:
    with client.stream("POST", f"/v1/{path}", json={**body, "stream": True}) as answer:
        assert answer.status_code == 200
        return [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: {")]


@pytest.mark.parametrize("asking", [{"thinking_token_budget": 24}, {"reasoning_effort": "low"}])
def test_chats_think_and_then_keep_to_the_form(client, asking):
    body = {"messages": ASKED, "response_format": FORM, "max_tokens": 120, "seed": 5, **asking}
    answer = post(client, "chat/completions", **body, temperature=0.9, n=2)
    thought_tokens = answer["usage"]["completion_tokens_details"]["reasoning_tokens"]
    assert 0 < thought_tokens <= 2 * (24 if "thinking_token_budget" in asking else 30)
    assert answer["usage"]["completion_tokens"] > thought_tokens
    for choice in answer["choices"]:
        jsonschema.validate(json.loads(choice["message"]["content"]), PARCEL)
        assert "think>" not in choice["message"]["reasoning_content"]
    deltas: list[tuple[int, dict[str, Any]]] = [
        (choice["index"], choice["delta"])
        for chunk in events(client, "chat/completions", **body, temperature=0.9, n=2)
        for choice in chunk["choices"]
    ]
    for number, choice in enumerate(answer["choices"]):
        for name in ("content", "reasoning_content"):
            joined = "".join(delta.get(name) or "" for index, delta in deltas if index == number)
            assert joined == choice["message"][name]


def test_calls_come_after_a_thought(client):
    body = {"messages": ASKED, "tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}
    answer = post(client, "chat/completions", **body, max_tokens=150, thinking_token_budget=20)
    message = answer["choices"][0]["message"]
    (call,) = message["tool_calls"]
    jsonschema.validate(json.loads(call["function"]["arguments"]), PARCEL)
    assert answer["choices"][0]["finish_reason"] == "tool_calls" and message["content"] is None
    assert isinstance(message["reasoning_content"], str)


def test_responses_have_an_item_of_reasoning(client):
    body = {"input": "The parcel 4821 is paid.", "text": {"format": PLAIN_FORM}, "max_output_tokens": 120}
    asking = {**body, "reasoning": {"effort": "low"}, "seed": 2, "temperature": 0.8}
    answer = post(client, "responses", **asking)
    thinking, message = answer["output"]
    assert thinking["type"] == "reasoning" and message["type"] == "message"
    jsonschema.validate(json.loads(message["content"][0]["text"]), PARCEL)
    assert answer["usage"]["output_tokens_details"]["reasoning_tokens"] > 0
    assert answer["reasoning"]["effort"] == "low"
    told = events(client, "responses", **asking)
    joined = "".join(one["delta"] for one in told if one["type"] == "response.reasoning_text.delta")
    assert joined == thinking["content"][0]["text"]
    assert [item["type"] for item in told[-1]["response"]["output"]] == ["reasoning", "message"]
    text = "".join(one["delta"] for one in told if one["type"] == "response.output_text.delta")
    assert text == message["content"][0]["text"]


def test_messages_have_a_block_of_thinking(client):
    config = {"format": {"type": "json_schema", "schema": PARCEL}}
    body = {"messages": ASKED, "max_tokens": 120, "output_config": config, "seed": 3, "temperature": 0.8}
    asking = {**body, "thinking": {"type": "enabled", "budget_tokens": 25}}
    answer = post(client, "messages", **asking)
    thinking, text = answer["content"]
    assert thinking["type"] == "thinking" and text["type"] == "text"
    jsonschema.validate(json.loads(text["text"]), PARCEL)
    told = events(client, "messages", **asking)
    deltas = [one["delta"] for one in told if one["type"] == "content_block_delta"]
    assert "".join(one.get("thinking", "") for one in deltas) == thinking["thinking"]
    assert "".join(one.get("text", "") for one in deltas) == text["text"]
    blocks = [one["content_block"]["type"] for one in told if one["type"] == "content_block_start"]
    assert blocks == ["thinking", "text"]
    assert told[-2]["usage"]["output_tokens"] == answer["usage"]["output_tokens"]
    adaptive = post(client, "messages", **body, thinking={"type": "adaptive"})
    assert adaptive["content"][0]["type"] == "thinking"
    assert post(client, "messages", **body)["content"][0]["type"] == "text"


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("chat/completions", {"reasoning_effort": "extreme"}, "/reasoning_effort"),
        (
            "chat/completions",
            {"reasoning_effort": "none", "thinking_token_budget": 9},
            "/thinking_token_budget",
        ),
        ("chat/completions", {"chat_template_kwargs": {"tokenize": False}}, "/chat_template_kwargs/tokenize"),
        ("completions", {"prompt": "a", "reasoning_effort": "low"}, "/reasoning_effort"),
        ("responses", {"input": "a", "reasoning": {"effort": 3}}, "/reasoning/effort"),
        ("messages", {"max_tokens": 99, "thinking": {"type": "on"}}, "/thinking/type"),
        (
            "messages",
            {"max_tokens": 99, "thinking": {"type": "enabled", "budget_tokens": 0}},
            "/thinking/budget_tokens",
        ),
        ("messages", {"max_tokens": 99, "thinking": {"type": "enabled", "more": 1}}, "/thinking/more"),
    ],
)
def test_what_can_not_be_thought_is_refused_with_its_place(client, path, body, place):
    if path in ("chat/completions", "messages"):
        body = {"messages": ASKED, **body}
    error = post(client, path, status=400, **body)["error"]
    assert error["param"] == place, error


def test_the_least_number_is_for_thought_and_text(client):
    body = {"messages": ASKED, "response_format": FORM, "reasoning_effort": "high"}
    error = post(client, "chat/completions", status=400, **body, max_tokens=4)["error"]
    assert error["code"] == "budget_too_small" and error["least"] > 4
    told = post(client, "chat/completions", **body, max_tokens=error["least"])
    jsonschema.validate(json.loads(told["choices"][0]["message"]["content"]), PARCEL)


def written(job) -> tuple[str, Any]:
    (one,) = job.result(60)
    return one.text, one.thought


def test_a_thought_depends_on_its_seed_alone(engine):
    thinking = Thinking(True, max_tokens=20)
    call = {"sampler": tf.Local(), "max_tokens": 60, "thinking": thinking}
    with Scheduler(engine.generator, batch_size=4) as scheduler:
        alone = scheduler.submit("a", PARCEL, seed=1, **call)
        first = written(alone)
        jobs = [scheduler.submit("a", PARCEL, seed=seed, **call) for seed in (1, 2, 1)]
        together = [written(job) for job in jobs]
        assert together[0] == together[2] == first != together[1]
        assert all(len(one.tokens) <= 20 for _, one in together)
        with pytest.raises(OptionError, match="no thought fits into 2"):
            scheduler.submit("a", thinking=2)
        with pytest.raises(BudgetTooSmall):
            scheduler.submit("a", PARCEL, max_tokens=9, thinking=thinking)
        cut = scheduler.submit("a", PARCEL, max_tokens=400, thinking=True)
        assert cut.cancel()
        assert len(scheduler.submit("b", tf.regex("[a-z]{4}")).result(60)) == 1
        assert scheduler._batch.decoder.active == 0


def test_faithful_samplers_draw_what_comes_after_one_thought(engine):
    call = {"sampler": tf.CARS(temperature=0.5), "max_tokens": 60, "thinking": Thinking(True, max_tokens=20)}
    drawn = engine.generator.sample("The parcel is paid.", tf.choice(["paid", "new"]), n=3, seed=1, **call)
    assert len(drawn) == 3 and len({tuple(one.thought.tokens) for one in drawn}) == 1
    assert all(len(one.thought.tokens) <= 20 and one.text in ("paid", "new") for one in drawn)
    with Scheduler(engine.generator) as scheduler:
        pieces = []
        job = scheduler.submit("a", tf.choice(["paid", "new"]), seed=1, **call, listener=pieces.append)
        (one,) = job.result(60)
        assert [piece.thought for piece in pieces] == [True, False] and pieces[0].text == one.reasoning
