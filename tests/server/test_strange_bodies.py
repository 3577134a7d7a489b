"""Every field of every endpoint with values that nobody should send: refused or answered, never a failure."""

from __future__ import annotations

import asyncio
import json
import random

import httpx
import pytest

from tokenform.server import Engine, create_app
from tokenform.server.endpoints import ENDPOINTS

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


def bodies(endpoint):
    for field in endpoint.reads.model_fields:
        for value in VALUES:
            body = {**PLAIN[endpoint.name], field: value}
            if field == "tool_choice":
                body["tools"] = TOOLS[endpoint.name]
            yield body


def check(every):
    app = create_app(Engine(batch_size=4), playground=False)

    async def ask():
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            for path, body in every:
                headers = {"Content-Type": "application/json"}
                answer = await client.post(path, content=json.dumps(body), headers=headers)
                assert answer.status_code in (200, 400, 404), (path, body, answer.text)
                if answer.status_code != 200:
                    message = answer.json()["error"]["message"]
                    assert message and not message.startswith(":"), message

    asyncio.run(ask())
    load = app.state.server.engine.scheduler.load
    assert load.running == load.waiting == load.jobs == 0


def test_some_strange_bodies():
    every = [(one.path, body) for one in ENDPOINTS for body in bodies(one)]
    check([(one.path, body) for one in ENDPOINTS for body in (None, [], "a", 3)])
    check(random.Random(0).sample(every, 150))


@pytest.mark.slow
def test_all_strange_bodies():
    check([(one.path, body) for one in ENDPOINTS for body in bodies(one)])
