"""`/v1/chat/completions` and `/v1/completions` over HTTP: constraints, tools, streams, errors."""

from __future__ import annotations

import json
import time

import jsonschema
import pytest

import tokenform as tf

PARCEL = {
    "type": "object",
    "properties": {"number": {"type": "integer", "multipleOf": 3}, "paid": {"type": "boolean"}},
    "required": ["number", "paid"],
    "additionalProperties": False,
}
ASKED = [{"role": "user", "content": "The parcel 4821 is paid."}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}


def as_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "it", "schema": schema, "strict": True}}


def post(client, path="/v1/chat/completions", status=200, **body):
    if "chat" in path:
        body.setdefault("messages", ASKED)
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def streamed(client, path="/v1/chat/completions", **body):
    if "chat" in path:
        body.setdefault("messages", ASKED)
    with client.stream("POST", path, json={**body, "stream": True}) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in answer.iter_lines() if line]
    assert lines[-1] == "data: [DONE]" and all(line.startswith("data: ") for line in lines)
    return [json.loads(line[6:]) for line in lines[:-1]]


def content(answer):
    return answer["choices"][0]["message"]["content"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_document_satisfies_its_schema(client, seed, temperature):
    answer = post(client, response_format=as_format(PARCEL), seed=seed, temperature=temperature)
    jsonschema.validate(json.loads(content(answer)), PARCEL)
    assert answer["choices"][0]["finish_reason"] == "stop"
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["completion_tokens"] > 0 < usage["prompt_tokens"]


@pytest.mark.parametrize(
    ("fields", "pattern"),
    [
        ({"response_format": {"type": "json_object"}}, r"\{(?s:.*)\}"),
        ({"response_format": {"type": "json_object", "schema": {"const": {"a": 1}}}}, r'\{"a": ?1\}'),
        ({"structured_outputs": {"regex": "[a-c]{4}"}}, "[a-c]{4}"),
        ({"structured_outputs": {"choice": ["new", "paid"]}}, "new|paid"),
        ({"structured_outputs": {"grammar": 'root ::= "a" [0-9]'}}, "a[0-9]"),
        ({"structured_outputs": {"grammar": 'start: "b" /[0-9]/'}}, "b[0-9]"),
        ({"structured_outputs": {"json": {"const": 7}}}, "7"),
        ({"guided_regex": "x+y"}, "x+y"),
        ({"guided_choice": ["yes", "no"]}, "yes|no"),
        ({"guided_json": {"enum": [1, 2]}}, "1|2"),
        ({"guided_grammar": 'start: "q"'}, "q"),
        ({"response_format": {"type": "regex", "pattern": "k{3}"}}, "k{3}"),
    ],
)
def test_every_spelling_of_a_constraint_binds(client, fields, pattern):
    import re

    answer = post(client, temperature=1.0, seed=4, max_tokens=60, **fields)
    assert re.fullmatch(pattern, content(answer)), content(answer)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"guided_jsonn": {}}, "/guided_jsonn"),
        ({"grammar": "root ::= a"}, "/grammar"),
        ({"structured_outputs": {"jsonschema": {}}}, "/structured_outputs/jsonschema"),
        ({"structured_outputs": {}}, "/structured_outputs"),
        ({"response_format": {"type": "xml"}}, "/response_format/type"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "regex": "a"}}},
            "/response_format/json_schema/regex",
        ),
        (
            {"response_format": as_format({"properties": {"a": {"type": "strng"}}})},
            "/response_format/json_schema/schema/properties/a/type",
        ),
        ({"guided_regex": "(a"}, "/guided_regex"),
        ({"guided_regex": "a", "guided_choice": ["b"]}, "/guided_choice"),
        (
            {"response_format": as_format({"$ref": "https://example.org/s.json"})},
            "/response_format/json_schema/schema/$ref",
        ),
        ({"temperature": -1}, "/temperature"),
        ({"n": 0}, "/n"),
        ({"logit_bias": {"99999999": 1}}, "/logit_bias"),
        ({"top_logprobs": 3}, "/top_logprobs"),
        ({"tool_choice": "required"}, "/tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "name": "no"}}, "/tool_choice"),
        ({"sampler": "magic"}, "/sampler"),
        ({"messages": []}, "/messages"),
        ({"messages": [{"role": "king", "content": ""}]}, "/messages/0/role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "/messages/0/content/0"),
        ({"stop": ["a", ""], "guided_regex": "b"}, "/stop"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_place(client, fields, param):
    error = post(client, status=400, **fields)["error"]
    assert set(error) >= {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param, error


def test_a_budget_is_kept_or_refused_with_the_least_number(client):
    error = post(client, status=400, response_format=as_format(PARCEL), max_tokens=3)["error"]
    assert error["code"] == "budget_too_small" and error["param"] == "/max_tokens"
    for seed in range(4):
        answer = post(
            client, response_format=as_format(PARCEL), max_tokens=error["least"], seed=seed, temperature=1.5
        )
        jsonschema.validate(json.loads(content(answer)), PARCEL)


def test_free_text_is_cut_at_its_budget_and_says_so(client):
    answer = post(client, max_tokens=3)
    assert answer["choices"][0]["finish_reason"] in ("length", "stop")
    answer = post(client, "/v1/completions", prompt="Once upon a time", max_tokens=4)
    assert answer["usage"]["completion_tokens"] <= 4


def test_chunks_joined_are_the_answer(client):
    fields = {"response_format": as_format(PARCEL), "seed": 1, "temperature": 1.0, "n": 2}
    whole = post(client, **fields)
    chunks = streamed(client, stream_options={"include_usage": True}, **fields)
    for number in range(2):
        mine = [c for chunk in chunks for c in chunk["choices"] if c["index"] == number]
        assert mine[0]["delta"]["role"] == "assistant"
        joined = "".join(choice["delta"].get("content") or "" for choice in mine)
        assert joined == whole["choices"][number]["message"]["content"]
        assert [c["finish_reason"] for c in mine if c["finish_reason"]] == ["stop"]
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"] == whole["usage"]
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_probabilities_are_the_models_own(client, engine):
    answer = post(client, guided_choice=["new", "paid"], logprobs=True, top_logprobs=3)
    listed = answer["choices"][0]["logprobs"]["content"]
    text = b"".join(bytes(one["bytes"]) for one in listed).decode()
    assert text == content(answer)
    (alone,) = engine.generator.sample(ASKED, tf.choice(["new", "paid"]))
    assert [one["logprob"] for one in listed] == pytest.approx(alone.token_logprobs, abs=1e-4)
    for one in listed:
        top = [t["logprob"] for t in one["top_logprobs"]]
        assert len(top) == 3 and top == sorted(top, reverse=True) and one["logprob"] <= top[0] + 1e-5
    told = post(client, "/v1/completions", prompt="Ada", max_tokens=5, logprobs=2)["choices"][0]
    assert "".join(told["logprobs"]["tokens"]) == told["text"]
    assert all(len(top) == 2 for top in told["logprobs"]["top_logprobs"])


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
def test_calls_satisfy_their_tools(client, choice):
    asked = [{"role": "user", "content": "What is the weather in Lisbon?"}]
    fields = {"messages": asked, "tools": [WEATHER, ADD], "tool_choice": choice, "parallel_tool_calls": False}
    answer = post(client, **fields)
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert answer["choices"][0]["finish_reason"] == "tool_calls" and call["type"] == "function"
    assert call["function"]["name"] == "weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Lisbon"}
    deltas = [c["delta"] for chunk in streamed(client, **fields) for c in chunk["choices"]]
    calls = [one for delta in deltas for one in delta.get("tool_calls", ())]
    assert calls[0]["id"] and calls[0]["function"]["name"] == "weather"
    assert "".join(one["function"].get("arguments", "") for one in calls) == call["function"]["arguments"]


def test_a_bad_tool_costs_itself(client):
    """Its schema is none, or can't be kept: the request is answered, the other tools are as they were."""
    for said in ({"type": 3}, {"type": "string", "pattern": "(a"}):
        bad = {"name": "bad", "parameters": {"type": "object", "properties": {"q": said}}}
        listed = [{"type": "function", "function": bad}, WEATHER]
        for name in ("weather", "bad"):
            choice = {"type": "function", "function": {"name": name}}
            answer = post(client, tools=listed, tool_choice=choice, parallel_tool_calls=False, max_tokens=200)
            for call in answer["choices"][0]["message"].get("tool_calls") or ():
                arguments = json.loads(call["function"]["arguments"])
                assert call["function"]["name"] == name and isinstance(arguments, dict)
                assert name == "bad" or list(arguments) == ["city"]


def test_answers_of_tools_go_on(client):
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    messages = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "text": "What is the weather in Oslo?"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Rain."},
    ]
    answer = post(
        client, messages=messages, tools=[WEATHER], tool_choice="none", guided_choice=["Rain", "Sun"]
    )
    assert content(answer) in ("Rain", "Sun")


def test_tools_and_a_final_form_in_one_request(client):
    fields = {"tools": [WEATHER], "response_format": as_format(PARCEL), "temperature": 1.0}
    for seed in range(6):
        choice = post(client, seed=seed, max_tokens=200, **fields)["choices"][0]
        message = choice["message"]
        if choice["finish_reason"] == "length":  # a call that was cut is left out
            assert not message.get("tool_calls")
        elif message.get("tool_calls"):
            assert all("city" in json.loads(c["function"]["arguments"]) for c in message["tool_calls"])
        else:
            jsonschema.validate(json.loads(message["content"]), PARCEL)


def test_faithful_samplers_tell_their_certificate(client):
    answer = post(client, guided_choice=["new", "paid"], sampler={"name": "cars"}, n=3, seed=0)
    assert len(answer["choices"]) == 3
    for choice in answer["choices"]:
        assert choice["message"]["content"] in ("new", "paid")
        assert choice["tokenform"]["certificate"]["exact"] is True
    weighted = post(client, guided_regex="[ab]{3}", sampler={"name": "smc", "particles": 4}, seed=0)
    assert "log_weight" in weighted["choices"][0]["tokenform"]


def test_stop_bias_and_penalties(client, engine):
    text = post(client, "/v1/completions", prompt="Ada", max_tokens=40, stop="e", seed=1, temperature=1.0)
    assert "e" not in text["choices"][0]["text"]
    tokens = engine.generator.vocabulary.tokens
    bias = {str(tokens.index(b"7")): 100}
    assert "7" in content(post(client, guided_regex="[0-9]{6}", logit_bias=bias))
    fewer = content(post(client, guided_regex="[a-z]{12}", frequency_penalty=2.0, presence_penalty=2.0))
    assert len(fewer) == 12


def test_texts_with_a_seed_are_those_of_the_library(client, engine):
    pattern = "[a-z]{3,9}( [a-z]{2,5})?"
    for seed in range(4):
        sampler = tf.Local(temperature=0.8)
        (alone,) = engine.generator.sample(ASKED, tf.regex(pattern), seed=seed, sampler=sampler)
        assert content(post(client, guided_regex=pattern, seed=seed, temperature=0.8)) == alone.text


def test_models_health_and_metrics(client):
    (model,) = client.get("/v1/models").json()["data"]
    assert client.get(f"/v1/models/{model['id']}").json() == model
    assert client.get("/v1/models/other").status_code == 404
    assert client.get("/health").json()["status"] == "ok"
    post(client, model=model["id"], guided_regex="a")
    assert post(client, status=404, model="gpt-5")["error"]["code"] == "model_not_found"
    text = client.get("/metrics").text
    assert 'tokenform_requests_total{endpoint="chat",status="200"}' in text
    assert "tokenform_tokens_per_forward" in text and 'reason="model_not_found"' in text
    assert client.get("/v1/nothing").json()["error"]["code"] == "not_found"


@pytest.mark.parametrize("more", [{}, {"guided_regex": "[a-z]{3,9}"}])
def test_several_prompts_are_answered_in_order(client, engine, more):
    """Choices over prompts x n, as each prompt alone has them; streamed and whole."""
    ids = [5, 6, 7]
    body = {"max_tokens": 12, "seed": 3, "temperature": 1.0, "n": 2, "logprobs": 1, **more}
    for prompts in (["Ada", "The parcel"], [ids, [9, 8]], ["Ada", ids]):
        alone = [post(client, "/v1/completions", prompt=prompt, **body) for prompt in prompts]
        whole = post(client, "/v1/completions", prompt=prompts, **body)
        assert [one["index"] for one in whole["choices"]] == [0, 1, 2, 3]
        wanted = [choice["text"] for one in alone for choice in one["choices"]]
        assert [one["text"] for one in whole["choices"]] == wanted
        for name in ("prompt_tokens", "completion_tokens"):
            assert whole["usage"][name] == sum(one["usage"][name] for one in alone)
        texts = ["", "", "", ""]
        with client.stream(
            "POST", "/v1/completions", json={**body, "prompt": prompts, "stream": True}
        ) as told:
            for line in told.iter_lines():
                if line.startswith("data: {"):
                    (choice,) = json.loads(line[6:])["choices"]
                    texts[choice["index"]] += choice["text"]
        assert texts == wanted


def test_one_bad_prompt_of_several_refuses_the_request(client, engine):
    wrong = {"prompt": ["a", [10**6]], "max_tokens": 4}
    answer = client.post("/v1/completions", json=wrong)
    assert answer.status_code == 400
    load = engine.scheduler.load
    for _ in range(200):
        if not (load.running or load.waiting):
            break
        time.sleep(0.02)
        load = engine.scheduler.load
    assert load.running == load.waiting == 0


def test_offsets_of_tokens_are_in_characters(client):
    body = {"prompt": "a", "guided_choice": ["é€😀 xé"], "logprobs": 0}
    told = post(client, "/v1/completions", **body)["choices"][0]
    text, offsets = told["text"], told["logprobs"]["text_offset"]
    assert offsets[0] == 0 and offsets == sorted(offsets) and max(offsets) < len(text)
    assert len(offsets) > len(text) or set(offsets) <= set(
        range(len(text))
    )  # bytes of a character share its place
    plain = [(one, at) for one, at in zip(told["logprobs"]["tokens"], offsets) if one.isascii()]
    assert plain and all(text[at : at + len(one)] == one for one, at in plain)
    heard = []
    with client.stream("POST", "/v1/completions", json={**body, "stream": True}) as lines:
        for line in lines.iter_lines():
            if line.startswith("data: {"):
                heard += json.loads(line[6:])["choices"][0]["logprobs"]["text_offset"]
    assert heard == offsets


def test_a_stop_ends_what_is_complete_and_cuts_no_document(client):
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    document = content(post(client, response_format=form, stop=["\n", "}", '"'], max_tokens=60))
    assert isinstance(json.loads(document), dict)
    text = content(post(client, guided_regex="a(ba)*", stop=["b"], max_tokens=20))
    assert text == "a"
    asked = {"messages": ASKED, "max_tokens": 40}
    bound = post(client, "/v1/messages", guided_regex="a(ba)*", stop_sequences=["b"], **asked)
    assert (bound["stop_reason"], bound["stop_sequence"]) == ("stop_sequence", "b")
    free = post(client, "/v1/messages", stop_sequences=["e", "a", "o", "i"], **asked)
    assert free["stop_reason"] == "stop_sequence" and free["stop_sequence"] in "eaoi"
