"""Every field of every endpoint with values that nobody should send: refused or answered, never a failure."""

from __future__ import annotations

import asyncio
import json
import random
import time

import httpx
import pytest

from tokenform.errors import LimitExceeded
from tokenform.server import Engine, create_app
from tokenform.server.endpoints import ENDPOINTS
from tokenform.server.faults import refused

CHAT = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 8}
PLAIN = {
    "chat": CHAT,
    "completions": {"prompt": "a", "max_tokens": 8},
    "responses": {"input": "a", "max_output_tokens": 8},
    "messages": CHAT,
}
FUNCTION = {"type": "function", "function": {"name": "f"}}
TOOLS = {"chat": [FUNCTION], "responses": [FUNCTION], "messages": [{"name": "f"}]}
VALUES = [
    *(None, True, False, 0, -1, 1, 2.5, 1e308, 10**30, "", "a", "\ud800", "\x00", float("nan"), float("inf")),
    *([], {}, [None], [[]], {"a": None}, [1, 2, 3], {"type": "x"}, {"type": "function"}),
    *([{"type": "function"}], [{"type": "function", "function": None}], [{"type": "custom"}]),
    *([{"type": "custom", "name": "a", "format": {"type": "grammar"}}], [{"type": "custom", "custom": 3}]),
    *({"type": "json_schema"}, {"type": "json_schema", "json_schema": {"schema": "\ud800"}}),
    *({"json": "{"}, {"regex": 3}, {"choice": "a"}, {"choice": []}, {"choice": [1]}, {"structural_tag": "x"}),
    *({"type": "allowed_tools"}, {"type": "allowed_tools", "tools": [3]}, {"type": "custom", "custom": "x"}),
    *(
        [{"role": "user"}],
        [{"role": "user", "content": "\ud800"}],
        [{"role": "assistant", "tool_calls": [3]}],
    ),
    [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "a", "arguments": "[1]"}}]}],
    *([{"type": "function_call"}], [{"type": "function_call", "name": 3, "arguments": None}]),
    *([{"type": "function_call_output", "output": {}}], [{"name": "a", "input_schema": 3}], [{"name": 3}]),
    [{"role": "user", "content": [{"type": "tool_result", "content": 3}]}],
    [{"role": "assistant", "content": [{"type": "tool_use", "id": 3, "name": None, "input": []}]}],
    *({"format": 3}, {"format": {"type": "json_schema"}}, {"name": "cars"}, {"99": 1e9}),
]


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
CHAT_TOOL = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True},
}
TOLD = [
    {"role": "user", "content": [{"type": "text", "text": "a"}]},
    {"role": "assistant", "content": "b", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "d"},
]
FORM = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}
ALLOWED = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}
OWN = {
    "n": 1, "seed": 1, "temperature": 1.0, "top_p": 0.9, "top_k": 5, "stream": False, "report": True,
    "logit_bias": {"5": 1.0}, "drafter": ["input", "suffix"], "metadata": {"a": "b"},
}  # fmt: skip
BLOCKS = [
    {"role": "user", "content": [{"type": "text", "text": "a"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "d"}]},
]
ITEMS = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "d"},
]
MESSAGES = {
    "messages": BLOCKS,
    "max_tokens": 9,
    "system": [{"type": "text", "text": "s"}],
    "tools": [{"name": "f", "input_schema": SCHEMA, "strict": True}],
}
WHOLE = [
    ("/v1/chat/completions", {"messages": TOLD, "max_tokens": 9, "response_format": FORM, **OWN}),
    (
        "/v1/chat/completions",
        {
            "messages": TOLD,
            "max_tokens": 40,
            "tools": [CHAT_TOOL],
            "tool_choice": {"type": "allowed_tools", "allowed_tools": ALLOWED},
            "parallel_tool_calls": True,
            "sampler": {"name": "local"},
            "logprobs": True,
            "top_logprobs": 2,
        },
    ),
    ("/v1/completions", {"prompt": [5, 6], "max_tokens": 9, "logprobs": 1, "stop": ["x"], "best_of": 1}),
    ("/v1/completions", {"prompt": ["a"], "max_tokens": 9, "structured_outputs": {"regex": "a+"}}),
    (
        "/v1/responses",
        {
            "input": ITEMS,
            "max_output_tokens": 40,
            "tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}],
            "tool_choice": {"type": "function", "name": "f"},
            "reasoning": {"effort": "none"},
            "text": {"format": {"type": "text"}, "verbosity": "low"},
            "include": ["message.output_text.logprobs"],
        },
    ),
    ("/v1/messages", {**MESSAGES, "tool_choice": {"type": "tool", "name": "f"}, "max_tokens": 40}),
    (
        "/v1/messages",
        {
            **MESSAGES,
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            "thinking": {"type": "disabled"},
            "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}, "effort": "low"},
            "stop_sequences": None,
        },
    ),
    ("/v1/messages", {"messages": BLOCKS[:1], "max_tokens": 9, "stop_sequences": ["x"]}),
    ("/v1/messages/count_tokens", {**MESSAGES, "tool_choice": {"type": "any"}}),
]
WRONG = [[], {}, 5, "", None, True, [[]]]


def replaced(whole):
    """The value with each of its parts replaced in turn."""
    yield from WRONG
    parts = whole.items() if isinstance(whole, dict) else enumerate(whole) if isinstance(whole, list) else ()
    for place, part in parts:
        for other in replaced(part):
            copied = whole.copy()
            copied[place] = other
            yield copied


def bodies(endpoint):
    for field in endpoint.reads.model_fields:
        for value in VALUES:
            body = {**PLAIN[endpoint.name], field: value}
            if field == "tool_choice":
                body["tools"] = TOOLS[endpoint.name]
            yield body


def check(every, wanted=(200, 400, 404)):
    app = create_app(Engine(batch_size=4), playground=False)

    async def ask():
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            for path, body in every:
                headers = {"Content-Type": "application/json"}
                answer = await client.post(path, content=json.dumps(body), headers=headers)
                assert answer.status_code in wanted, (path, body, answer.text)
                if answer.status_code != 200:
                    message = answer.json()["error"]["message"]
                    assert message and not message.startswith(":"), message

    asyncio.run(ask())
    scheduler, until = app.state.server.engine.scheduler, time.monotonic() + 5
    while scheduler.load.running and time.monotonic() < until:  # the batch lets go of a text after its answer
        time.sleep(0.01)
    load = scheduler.load
    assert load.running == load.waiting == load.jobs == 0


def test_some_strange_bodies():
    every = [(one.path, body) for one in ENDPOINTS for body in bodies(one)]
    check([(one.path, body) for one in ENDPOINTS for body in (None, [], "a", 3)])
    check(random.Random(0).sample(every, 150))


def test_whole_bodies_with_a_part_replaced():
    """Each body is valid as it stands."""
    every = [(path, body) for path, whole in WHOLE for body in replaced(whole)]
    check(WHOLE, wanted=(200,))
    check(random.Random(1).sample(every, 250))


@pytest.mark.slow
def test_all_whole_bodies_with_a_part_replaced():
    check([(path, body) for path, whole in WHOLE for body in replaced(whole)])


@pytest.mark.parametrize(
    ("path", "change", "param"),
    [
        *(
            ("chat/completions", {"messages": [{"role": role, "content": "a"}]}, "/messages/0/role")
            for role in ([], {})
        ),
        (
            "chat/completions",
            {"messages": [{"role": "assistant", "content": "a", "tool_calls": 5}]},
            "/messages/0/tool_calls",
        ),
        ("chat/completions", {"tools": [FUNCTION], "tool_choice": {"type": []}}, "/tool_choice"),
        (
            "chat/completions",
            {"tools": [FUNCTION], "tool_choice": {"type": "allowed_tools", "mode": [], "tools": [FUNCTION]}},
            "/tool_choice",
        ),
        *(
            (path, {"tools": [{"name": "f"}], "tool_choice": {"type": kind}}, "/tool_choice/type")
            for path in ("messages", "messages/count_tokens")
            for kind in ([], {})
        ),
        ("completions", {"prompt": []}, "/prompt"),
        ("completions", {"prompt": [[]]}, "/prompt/0"),
        ("completions", {"prompt": ["a", 5]}, "/prompt/1"),
        ("completions", {"prompt": ["a"] * 65, "n": 2}, "/prompt"),
        ("completions", {"prompt": ["a", "b"], "sampler": "cars"}, "/prompt"),
        ("chat/completions", {"drafter": ["ngram", "ngram"]}, "/drafter/1"),
    ],
)
def test_wrong_parts_are_refused_with_their_place(client, path, change, param):
    body = {"max_tokens": 8} | ({} if path == "completions" else {"messages": CHAT["messages"]}) | change
    answer = client.post(f"/v1/{path}", json=body)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == param, answer.text


LONG_TEXT = "a b " * 5000
BOUND = {"guided_regex": "[a-z]{40}"}
DRAWN = {"guided_regex": "a", "sampler": "cars"}


@pytest.mark.parametrize(
    ("path", "change", "code", "param", "said"),
    [
        (
            "chat/completions",
            {**BOUND, "max_completion_tokens": 2},
            "budget_too_small",
            "/max_completion_tokens",
            "40",
        ),
        ("chat/completions", {**BOUND, "max_tokens": 2}, "budget_too_small", "/max_tokens", "40"),
        ("responses", {**BOUND, "max_output_tokens": 2}, "budget_too_small", "/max_output_tokens", "40"),
        (
            "chat/completions",
            {"n": 100, "max_completion_tokens": 2000},
            "too_many_tokens",
            "/max_completion_tokens",
            "a request may have 8192 here",
        ),
        ("responses", {"max_tokens": 5}, "unknown_field", "/max_tokens", "does not know"),
        (
            "responses",
            {"input": [{"role": "x"}]},
            "invalid_request",
            "/input/0/role",
            "/input/0/role is one of",
        ),
        ("chat/completions", {**BOUND, "stop": [""]}, "invalid_request", "/stop", "1 to 256"),
        (
            "messages",
            {**BOUND, "stop_sequences": [""], "max_tokens": 50},
            "invalid_request",
            "/stop_sequences",
            "",
        ),
        (
            "chat/completions",
            {"thinking_token_budget": 1},
            "unsupported_parameter",
            "/thinking_token_budget",
            "12",
        ),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": LONG_TEXT}]},
            "context_length_exceeded",
            "/messages",
            "shorten it",
        ),
        ("responses", {"input": LONG_TEXT}, "context_length_exceeded", "/input", "shorten it"),
        ("completions", {"prompt": LONG_TEXT}, "context_length_exceeded", "/prompt", "shorten it"),
        ("completions", {"prompt": [5, 10**6]}, "invalid_request", "/prompt", "the id 1000000"),
        ("completions", {"prompt": ["a", [-1]]}, "invalid_request", "/prompt/1", "the id -1"),
        (
            "chat/completions",
            {**DRAWN, "logprobs": True, "top_logprobs": 2},
            "invalid_request",
            "/top_logprobs",
            "CARS draws whole texts",
        ),
        ("completions", {**DRAWN, "prompt": "a", "logprobs": 2}, "invalid_request", "/logprobs", ""),
        ("chat/completions", {**DRAWN, "logit_bias": {"5": 1}}, "invalid_request", "/logit_bias", ""),
        ("chat/completions", {**DRAWN, "presence_penalty": 1}, "invalid_request", "/presence_penalty", ""),
        (
            "chat/completions",
            {"sampler": {"name": "smc", "particles": 300}},
            "invalid_field",
            "/sampler/particles",
            "less than or equal to 256",
        ),
        *(
            ("responses", {name: value}, "invalid_field", f"/{name}", "nothing is stored here")
            for name, value in (("previous_response_id", "x"), ("conversation", {}), ("background", True))
        ),
        ("chat/completions", {"drafter": ["auto", "ngram"]}, "invalid_request", "/drafter/0", "stands alone"),
        *(
            (
                "chat/completions",
                {"structured_outputs": {kind: 5}},
                "invalid_request",
                f"/structured_outputs/{kind}",
                "",
            )
            for kind in ("regex", "grammar", "choice", "structural_tag")
        ),
    ],
)
def test_an_error_has_the_place_that_the_api_has(client, path, change, code, param, said):
    plain = {"completions": {"prompt": "a"}, "responses": {"input": "a"}}.get(
        path, {"messages": CHAT["messages"]}
    )
    answer = client.post(f"/v1/{path}", json={**plain, **change})
    error = answer.json()["error"]
    assert answer.status_code == 400 and (error["code"], error["param"]) == (code, param), error
    assert said in error["message"]


def test_a_limit_is_not_the_clients_to_raise():
    told = refused(
        LimitExceeded("more than 9 steps (Limits.work); simplify the constraint or raise the limit")
    )
    assert str(told) == "more than 9 steps (Limits.work); simplify the constraint"
    told = refused(LimitExceeded("shorten it, or raise the limit by set_limits"))
    assert str(told) == "shorten it"


def test_drafters_that_are_one_here_are_taken_once(client):
    bound = {**CHAT, "guided_regex": "[a-z]{8}", "seed": 0}
    plain, *drafted = (
        client.post("/v1/chat/completions", json={**bound, **more}).json()["choices"][0]["message"]["content"]
        for more in ({}, {"drafter": ["input", "suffix"]}, {"drafter": ["suffix", "ngram", "input"]})
    )
    assert drafted == [plain, plain]


@pytest.mark.slow
def test_all_strange_bodies():
    check([(one.path, body) for one in ENDPOINTS for body in bodies(one)])
