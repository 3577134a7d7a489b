"""A diffusion model behind the server: the clients' own calls, and what it says of what it can't do."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx
import jsonschema
import pytest
from starlette.testclient import TestClient

import tokenform as tf
from tokenform.decoding.diffusion import LeftToRight
from tokenform.server import Engine, create_app
from tokenform.server.playground import filling

from .running import running

openai = pytest.importorskip("openai", reason="openai is not installed")
anthropic = pytest.importorskip("anthropic", reason="anthropic is not installed")

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "born": {"type": "integer"}, "city": {"type": "string"}},
    "required": ["name", "born", "city"],
    "additionalProperties": False,
}
TEXT = "Ada Moreau, born 1975, lives in Lisbon."
FORM = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
MESSAGES = [{"role": "user", "content": TEXT}]


@pytest.fixture(scope="module")
def filler() -> Engine:
    return Engine("builtin:diffusion", length=64)


@pytest.fixture(scope="module")
def base(filler: Engine) -> Any:
    with running(create_app(filler)) as base:
        yield base


@pytest.fixture(scope="module")
def asks(base: str) -> Any:
    with openai.OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0) as client:
        yield client


def post(base: str, path: str = "/v1/chat/completions", **body: Any) -> httpx.Response:
    return httpx.post(base + path, json=body, timeout=120)


def test_a_form_is_kept(asks: Any) -> None:
    model = asks.models.list().data[0].id
    assert model == "builtin:diffusion"
    answer = asks.chat.completions.create(model=model, messages=MESSAGES, response_format=FORM)
    value = json.loads(answer.choices[0].message.content)
    jsonschema.validate(value, PERSON)
    assert value["born"] == 1975 and answer.choices[0].finish_reason == "stop"
    assert 0 < answer.usage.completion_tokens <= 64 and answer.usage.prompt_tokens > 0


def test_any_object_and_other_constraints(asks: Any) -> None:
    model = "builtin:diffusion"
    flat = {"guided_regex": "[a-c]{3}"}
    answer = asks.chat.completions.create(model=model, messages=MESSAGES, extra_body=flat)
    assert set(answer.choices[0].message.content) <= set("abc")
    answer = asks.chat.completions.create(
        model=model, messages=MESSAGES, response_format={"type": "json_object"}
    )
    assert isinstance(json.loads(answer.choices[0].message.content), dict)


def test_texts_of_one_request_are_valid_and_drawn_by_its_seed(base: str) -> None:
    asked = {"messages": MESSAGES, "response_format": FORM, "n": 3, "temperature": 1.5, "seed": 4}
    first, again = post(base, **asked).json(), post(base, **asked).json()
    texts = [choice["message"]["content"] for choice in first["choices"]]
    assert texts == [choice["message"]["content"] for choice in again["choices"]] and len(texts) == 3
    for text in texts:
        jsonschema.validate(json.loads(text), PERSON)


def test_what_is_streamed_is_the_text(asks: Any) -> None:
    with asks.chat.completions.stream(
        model="builtin:diffusion", messages=MESSAGES, response_format=FORM
    ) as stream:
        deltas = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion().choices[0].message.content
    assert "".join(deltas) == final
    jsonschema.validate(json.loads(final), PERSON)


def test_a_text_is_streamed_as_far_as_it_is_known() -> None:
    engine = Engine(tf.DiffusionGenerator(length=48, policy=LeftToRight(4)), name="filler")
    with running(create_app(engine)) as base, openai.OpenAI(base_url=f"{base}/v1", api_key="none") as client:
        stream = client.chat.completions.create(
            model="filler", messages=MESSAGES, response_format=FORM, stream=True
        )
        parts = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
    assert len([part for part in parts if part]) > 3
    jsonschema.validate(json.loads("".join(filter(None, parts))), PERSON)


def test_calls_of_tools(asks: Any) -> None:
    weather = {"type": "object", "properties": {"city": {"enum": ["Lisbon", "Oslo"]}}, "required": ["city"]}
    answer = asks.chat.completions.create(
        model="builtin:diffusion",
        messages=[{"role": "user", "content": "What is the weather in Lisbon?"}],
        tools=[{"type": "function", "function": {"name": "weather", "parameters": weather}}],
        tool_choice="required",
        parallel_tool_calls=False,
    )
    (call,) = answer.choices[0].message.tool_calls
    jsonschema.validate(json.loads(call.function.arguments), weather)
    assert answer.choices[0].finish_reason == "tool_calls"


def test_other_apis(base: str) -> None:
    told = {"input": TEXT, "text": {"format": {"type": "json_schema", "name": "p", "schema": PERSON}}}
    found = post(base, "/v1/responses", **told).json()
    jsonschema.validate(json.loads(found["output"][0]["content"][0]["text"]), PERSON)
    found = post(base, "/v1/completions", prompt=TEXT, max_tokens=64, structured_outputs={"json": PERSON})
    jsonschema.validate(json.loads(found.json()["choices"][0]["text"]), PERSON)
    with anthropic.Anthropic(base_url=base, api_key="none", max_retries=0) as client:
        answer = client.messages.create(
            model="builtin:diffusion",
            max_tokens=64,
            messages=MESSAGES,
            extra_body={"output_config": {"format": {"type": "json_schema", "schema": PERSON}}},
        )
    jsonschema.validate(json.loads(answer.content[0].text), PERSON)


@pytest.mark.parametrize(
    ("field", "place"),
    [
        ({"logprobs": True}, "/logprobs"),
        ({"top_p": 0.5}, "/top_p"),
        ({"presence_penalty": 1}, "/frequency_penalty"),
        ({"logit_bias": {"5": 1}}, "/logit_bias"),
        ({"stop": ["x"]}, "/stop"),
        ({"sampler": "smc"}, "/sampler"),
        ({"drafter": "suffix"}, "/drafter"),
        ({"confidence": True}, "/confidence"),
        ({"reasoning_effort": "high"}, "/reasoning_effort"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_canvases_can_not_do_is_refused(base: str, field: dict[str, Any], place: str) -> None:
    answer = post(base, messages=MESSAGES, response_format=FORM, **field)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "unsupported_parameter", place)


def test_defaults_that_clients_send_change_nothing(base: str) -> None:
    sent = {"top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "logprobs": False, "stop": None}
    assert post(base, messages=MESSAGES, response_format=FORM, **sent).status_code == 200


def test_a_canvas_that_is_too_short_is_said_with_the_length_that_would_do(base: str) -> None:
    answer = post(base, messages=MESSAGES, response_format=FORM, max_tokens=3)
    error = answer.json()["error"]
    assert answer.status_code == 400 and error["param"] == "/max_tokens" and error["least"] > 3
    again = post(base, messages=MESSAGES, response_format=FORM, max_tokens=error["least"])
    jsonschema.validate(json.loads(again.json()["choices"][0]["message"]["content"]), PERSON)


def test_what_no_canvas_holds_is_written_from_left_to_right(base: str) -> None:
    keys = {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 3}
    form = {"type": "json_schema", "json_schema": {"name": "keys", "schema": keys}}
    answer = post(base, messages=MESSAGES, response_format=form, temperature=1.0, seed=2)
    jsonschema.validate(json.loads(answer.json()["choices"][0]["message"]["content"]), keys)


def test_many_at_once(base: str) -> None:
    found: list[Any] = []

    def ask(seed: int) -> None:
        told = {"messages": MESSAGES, "response_format": FORM, "temperature": 1.0, "seed": seed}
        found.append(post(base, **told).json()["choices"][0]["message"]["content"])

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(found) == 8
    for text in found:
        jsonschema.validate(json.loads(text), PERSON)
    assert httpx.get(base + "/health").json()["status"] == "ok"
    assert "tokenform_" in httpx.get(base + "/metrics").text


def test_a_folder_of_a_diffusion_gemma(tmp_path: Any) -> None:
    from tests.diffusion.test_diffusion_gemma import tiny

    from tokenform.builtin.loading import WEIGHTS, read_tokenizer

    tiny(2048).save_pretrained(tmp_path)
    read_tokenizer(WEIGHTS / "model").save_pretrained(tmp_path)
    engine = Engine(str(tmp_path), name="gemma", length=32)
    with running(create_app(engine)) as base:
        schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
        form = {"type": "json_schema", "json_schema": {"name": "ok", "schema": schema}}
        answer = post(base, messages=[{"role": "user", "content": "ok?"}], response_format=form)
    jsonschema.validate(json.loads(answer.json()["choices"][0]["message"]["content"]), schema)


def test_options_that_are_of_other_models_are_said() -> None:
    with pytest.raises(tf.errors.OptionError, match="length"):
        Engine(length=9)
    with pytest.raises(tf.errors.OptionError, match="device"):
        Engine("builtin:diffusion", device="cpu")


def body(**more: Any) -> dict[str, Any]:
    constraint = {"kind": "schema", "source": json.dumps(PERSON), "options": {}}
    return {"constraint": constraint, "prompt": TEXT, **more}


def filled(client: Any, **more: Any) -> list[dict[str, Any]]:
    answer = client.post("/playground/api/fill", json=body(**more))
    assert answer.status_code == 200, answer.text
    return [json.loads(part[6:]) for part in answer.text.split("\n\n") if part.startswith("data: ")]


@pytest.mark.parametrize("policy", filling.POLICIES)
def test_the_playground_shows_every_pass(filler: Engine, policy: str) -> None:
    client = TestClient(create_app(filler), base_url="http://127.0.0.1:8000")
    first, *passes, done = filled(client, policy=policy, length=48, temperature=1.0)
    assert first == {"type": "canvas", "length": 48} and {one["type"] for one in passes} == {"pass"}
    cells: dict[int, str | None] = {}
    for one in passes:
        new = dict(one["filled"])
        assert new and not cells.keys() & new.keys()
        cells |= new
        assert one["known"] == len(cells)
    assert sorted(cells) == list(range(48))
    assert "".join(cells[at] or "" for at in range(48)) == done["text"]
    jsonschema.validate(json.loads(done["text"]), PERSON)
    assert len(passes) <= done["forwards"] if policy == "draft" else len(passes) == done["forwards"]


def test_the_playground_of_a_diffusion_model_only_fills(filler: Engine, engine: Engine) -> None:
    client = TestClient(create_app(filler), base_url="http://127.0.0.1:8000")
    assert client.get("/playground/config.json").json()["fills"] is True
    assert client.post("/playground/api/inspect", json=body(text="{")).status_code == 200
    for name in ("next", "write", "compare"):
        refused = client.post(f"/playground/api/{name}", json=body())
        said = refused.text if refused.status_code == 400 else refused.text.split("data: ")[-1]
        assert "fills canvases" in said, name
    other = TestClient(create_app(engine), base_url="http://127.0.0.1:8000")
    assert other.get("/playground/config.json").json()["fills"] is False
    assert filled(other, length=64)[-1]["type"] == "done"  # the built-in model fills
    assert other.post("/playground/api/fill", json=body(length=300)).text.count("OptionError") == 1
