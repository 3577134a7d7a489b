"""What a thinking model says through the server, by clients: thought, content and calls in their places."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from scripted import Scripted, tokenizer

import tokenform as tf

pytest.importorskip("starlette", reason="the server needs tokenform[serve]")
openai = pytest.importorskip("openai", reason="the server's tests need its clients")
anthropic = pytest.importorskip("anthropic", reason="the server's tests need its clients")

from starlette.testclient import TestClient  # noqa: E402

from tokenform.server import Engine, create_app  # noqa: E402

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}
ARGUMENTS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": ARGUMENTS}}
FORM = {"type": "json_schema", "json_schema": {"name": "it", "schema": SCHEMA}}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
ASKED = [{"role": "user", "content": "hi"}]
THOUGHT = "I should greet."
TEMPLATES = {"open": True, "own": True, "always": True, "asked": False}
"""By a template whether a thought comes where nobody says anything."""

KINDS = {
    # name: (what the model says, content, calls, members of a chat's request)
    "chat": ("Hello there.", "Hello there.", 0, {}),
    "schema": ('{"answer": 4}', '{"answer": 4}', 0, {"response_format": FORM}),
    "tools auto": (CALL, None, 1, {"tools": [TOOL]}),
    "tools auto, text": ("Hello there.", "Hello there.", 0, {"tools": [TOOL]}),
    "tools required": (CALL, None, 1, {"tools": [TOOL], "tool_choice": "required"}),
    "tools none": ("Hello there.", "Hello there.", 0, {"tools": [TOOL], "tool_choice": "none"}),
    "both, call": (CALL, None, 1, {"tools": [TOOL], "response_format": FORM}),
    "both, required": (CALL, None, 1, {"tools": [TOOL], "response_format": FORM, "tool_choice": "required"}),
    "both, none": (
        '{"answer": 4}',
        '{"answer": 4}',
        0,
        {"tools": [TOOL], "response_format": FORM, "tool_choice": "none"},
    ),
}


class Served:
    """A server of one scripted model, and clients of it."""

    def __init__(self, template: str, special: bool | None) -> None:
        torch.set_num_threads(1)
        known = tokenizer(template, special=special)
        self.model = Scripted(known, [])
        self.engine = Engine(tf.Generator(self.model, known), name="it")
        self.http = TestClient(create_app(self.engine, playground=False), base_url="http://localhost")
        self.openai = openai.OpenAI(
            api_key="none", base_url="http://localhost/v1", http_client=self.http, max_retries=0
        )
        self.anthropic = anthropic.Anthropic(
            api_key="none", base_url="http://localhost", http_client=self.http, max_retries=0
        )

    def says(self, said: str) -> None:
        self.model.turns = [f"<think>\n{THOUGHT}\n</think>\n\n{said}", f"<think>\n\n</think>\n\n{said}", said]


@pytest.fixture(scope="module")
def served() -> Any:
    made: dict[tuple[str, bool | None], Served] = {}

    def of(template: str, special: bool | None = True) -> Served:
        if (template, special) not in made:
            made[template, special] = Served(template, special)
        return made[template, special]

    yield of
    for one in made.values():
        one.engine.scheduler.close(drain=False)


def chat(one: Served, stream: bool, **body: Any) -> tuple[Any, Any, list[tuple[str, Any]], str]:
    """Reasoning, content, calls, and why it ended."""
    create = one.openai.chat.completions.create
    asked: dict[str, Any] = {"model": "it", "messages": ASKED, "max_tokens": 200, **body}
    if not stream:
        choice = create(**asked).choices[0]
        message = choice.message
        calls = [(c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls or ()]
        return getattr(message, "reasoning_content", None), message.content, calls, choice.finish_reason
    thought, content, names, arguments, reason = "", "", [], [], ""
    for chunk in create(**asked, stream=True):
        delta = chunk.choices[0].delta
        thought += getattr(delta, "reasoning_content", None) or ""
        content += delta.content or ""
        for call in delta.tool_calls or ():
            if call.function.name:
                names.append(call.function.name)
                arguments.append("")
            arguments[call.index] += call.function.arguments or ""
        reason = chunk.choices[0].finish_reason or reason
    calls = [(name, json.loads(text)) for name, text in zip(names, arguments, strict=True)]
    return thought or None, content or None, calls, reason


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("template", "special"), [*((t, True) for t in TEMPLATES), ("own", None)])
def test_chats(served, template, special, kind, stream):
    one, (said, content, calls, body) = served(template, special), KINDS[kind]
    one.says(said)
    switches = {"enable_thinking": False, "thinking": False}
    asked = [
        ({}, TEMPLATES[template]),
        ({"reasoning_effort": "none"}, False),
        ({"reasoning_effort": "low"}, True),
        ({"extra_body": {"chat_template_kwargs": switches}}, False),
        ({"extra_body": {"thinking_token_budget": 60}}, True),
    ]
    for more, thought in asked if kind in ("chat", "tools required") else asked[:2]:
        found = chat(one, stream, **body, **more)
        expected = [("weather", {"city": "Oslo"})] * calls
        assert found[:3] == (THOUGHT if thought else None, content, expected), more
        assert found[3] == ("tool_calls" if calls else "stop"), more


@pytest.mark.parametrize("kind", ["chat", "schema", "tools auto", "tools required"])
@pytest.mark.parametrize("template", TEMPLATES)
def test_responses(served, template, kind):
    one, (said, content, calls, body) = served(template), KINDS[kind]
    one.says(said)
    asked: dict[str, Any] = {"model": "it", "input": "hi", "max_output_tokens": 200}
    if "response_format" in body:
        asked["text"] = {"format": {"type": "json_schema", "name": "it", "schema": SCHEMA}}
    if "tools" in body:
        asked["tools"] = [{"type": "function", "name": "weather", "parameters": ARGUMENTS}]
        asked["tool_choice"] = body.get("tool_choice", "auto")
    thought = TEMPLATES[template]
    for more, thinks in (({}, thought), ({"reasoning": {"effort": "none"}}, False)):
        whole = one.openai.responses.create(**asked, **more)
        events = list(one.openai.responses.create(**asked, **more, stream=True))
        for response in (whole, events[-1].response):
            kinds = [item.type for item in response.output]
            assert kinds == ["reasoning"] * thinks + ["function_call" if calls else "message"]
            if thinks:
                assert response.output[0].content[0].text == THOUGHT
            if calls:
                assert json.loads(response.output[-1].arguments) == {"city": "Oslo"}
            else:
                assert response.output_text == content
        deltas = "".join(e.delta for e in events if e.type == "response.reasoning_text.delta")
        assert deltas == (THOUGHT if thinks else "")
        assert bool(whole.usage.output_tokens_details.reasoning_tokens) == thinks


@pytest.mark.parametrize("kind", ["chat", "schema", "tools auto", "tools required"])
@pytest.mark.parametrize("template", TEMPLATES)
def test_messages(served, template, kind):
    one, (said, content, calls, body) = served(template), KINDS[kind]
    one.says(said)
    asked: dict[str, Any] = {"model": "it", "messages": ASKED, "max_tokens": 200}
    if "response_format" in body:
        asked["output_config"] = {"format": {"type": "json_schema", "schema": SCHEMA}}
    if "tools" in body:
        asked["tools"] = [{"name": "weather", "input_schema": ARGUMENTS}]
        asked["tool_choice"] = {"type": "any" if "tool_choice" in body else "auto"}
    for more, thinks in (
        ({}, TEMPLATES[template]),
        ({"thinking": {"type": "disabled"}}, False),
        ({"thinking": {"type": "enabled", "budget_tokens": 50}}, True),
    ):
        whole = one.anthropic.messages.create(**asked, **more)
        with one.anthropic.messages.stream(**asked, **more) as stream:
            streamed = stream.get_final_message()
        for message in (whole, streamed):
            kinds = [block.type for block in message.content]
            assert kinds == ["thinking"] * thinks + ["tool_use" if calls else "text"], more
            if thinks:
                assert message.content[0].thinking == THOUGHT
            last = message.content[-1]
            assert last.input == {"city": "Oslo"} if calls else last.text == content
        counted = {name: value for name, value in asked.items() if name != "max_tokens"}
        tokens = one.anthropic.messages.count_tokens(**counted, **more)
        assert tokens.input_tokens == whole.usage.input_tokens


def test_counting_takes_systems_tools_and_answers_of_tools(served):
    one = served("open")
    one.says("Hello there.")
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": ""},
            {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Oslo"}},
        ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "rain"}]},
    ]  # fmt: skip
    asked: dict[str, Any] = {
        "model": "it", "messages": messages, "system": "Be brief.",
        "tools": [{"name": "weather", "input_schema": ARGUMENTS}],
    }  # fmt: skip
    counted = one.anthropic.messages.count_tokens(**asked).input_tokens
    assert counted == one.anthropic.messages.create(**asked, max_tokens=200).usage.input_tokens
    assert counted > one.anthropic.messages.count_tokens(model="it", messages=ASKED).input_tokens
    with pytest.raises(anthropic.BadRequestError):
        one.anthropic.messages.count_tokens(model="it", messages=[])
    with pytest.raises(anthropic.NotFoundError):
        one.anthropic.messages.count_tokens(model="other", messages=ASKED)


def test_completions_go_on_with_their_prompt(served):
    one = served("open", None)
    one.says("Hello there.")
    prompt, create = "<|im_start|>assistant\n<think>\n", one.openai.completions.create
    (choice,) = create(model="it", prompt=prompt, max_tokens=200).choices
    assert choice.text == f"{THOUGHT}\n</think>\n\nHello there."
    one.says('{"answer": 4}')
    bound = {"extra_body": {"structured_outputs": {"json": SCHEMA}}}
    (choice,) = create(model="it", prompt=prompt, max_tokens=200, **bound).choices
    assert (choice.text, choice.reasoning_content) == ('{"answer": 4}', THOUGHT)


def test_several_choices_have_a_thought_each(served):
    one = served("own")
    one.says('{"answer": 4}')
    answer = one.openai.chat.completions.create(
        model="it", messages=ASKED, n=3, max_tokens=200, response_format=FORM
    )
    assert [choice.message.reasoning_content for choice in answer.choices] == [THOUGHT] * 3
    assert [choice.message.content for choice in answer.choices] == ['{"answer": 4}'] * 3
    assert answer.usage.completion_tokens_details.reasoning_tokens % 3 == 0


def test_what_a_template_is_told_is_no_way_around_the_prompt(served):
    one = served("open")
    for name in ("tokenize", "tools", "chat_template", "add_generation_prompt", "messages", "conversation"):
        with pytest.raises(openai.BadRequestError) as told:
            chat(one, False, extra_body={"chat_template_kwargs": {name: False}})
        assert told.value.body["param"] == f"/chat_template_kwargs/{name}"


def test_a_model_without_a_template_for_tools_names_the_option(served):
    plain = "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" + (
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    known = tokenizer(plain, special=None)
    model = Scripted(known, [CALL])
    for form in (None, "hermes"):
        engine = Engine(tf.Generator(model, known), name="it", tool_format=form)
        with TestClient(create_app(engine, playground=False), base_url="http://localhost") as http:
            body = {"messages": ASKED, "tools": [TOOL], "tool_choice": "required", "max_tokens": 100}
            answer = http.post("/v1/chat/completions", json=body)
        if form is None:
            assert answer.status_code == 400 and "--tool-format" in answer.json()["error"]["message"]
        else:
            (call,) = answer.json()["choices"][0]["message"]["tool_calls"]
            assert json.loads(call["function"]["arguments"]) == {"city": "Oslo"}


def test_a_model_reads_the_schema_where_a_request_says_so(served):
    one = served("own")
    one.says('{"answer": 4}')
    read = []
    for shown in ({}, {"show_schema": False}, {"show_schema": True}):
        answer = one.openai.chat.completions.create(
            model="it", messages=ASKED, max_tokens=200, response_format=FORM, extra_body=shown
        )
        assert answer.choices[0].message.content == '{"answer": 4}'
        read.append(answer.usage.prompt_tokens)
    assert read[0] == read[1] < read[2]
