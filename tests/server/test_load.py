"""Many requests at once, a tenth of them hostile, cut off or killed: the others are as on a quiet server.

Every answer of a request that was let finish is valid and is the text of the same seed on a quiet server;
nothing is lost, and nothing is left over: texts, jobs, requests, threads, slots of the cache.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading

import httpx
import jsonschema
import pytest
from running import running

from tokenform.server import Engine, create_app

CHAT = "/v1/chat/completions"
SCHEMAS = [
    {
        "type": "object",
        "properties": {"id": {"type": "integer", "multipleOf": 7}, "tag": {"enum": ["a", "b", "c"]}},
        "required": ["id", "tag"],
        "additionalProperties": False,
    },
    {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 5},
    {"type": "array", "items": {"enum": [1, 2, 3, 4]}, "uniqueItems": True, "minItems": 2},
    {"anyOf": [{"const": "yes"}, {"type": "integer", "minimum": 3, "maximum": 99}]},
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 8}, "of": {"$ref": "#"}},
        "required": ["name"],
        "additionalProperties": False,
    },
]
PATTERNS = ["[a-f]{3,9}", "(ab|cd)+x", "[0-9]{4}-[0-9]{2}"]
TOOL = {
    "type": "function",
    "function": {"name": "weather", "parameters": {**SCHEMAS[0], "title": "Weather"}},
}
HOSTILE = [
    b"{",
    b'{"messages": [{"role": "user", "content": "a"}], "guided_regex": "((a*)*)*b{99999}"}',
    b'{"messages": [{"role": "user", "content": "a"}], "guided_json": {"$ref": "http://a/b"}}',
    b'{"messages": [{"role": "user", "content": "a"}], "guided_grammar": "start: start start"}',
    b'{"messages": [{"role": "user", "content": "a"}], "n": 100000}',
    b'{"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "guided_regex": "[ab]{99}"}',
    b'{"messages": [], "logit_bias": {"-1": 3}}',
    b"[" * 3000,
]


def request(number: int) -> dict:
    """The body of a request that must succeed."""
    picked = random.Random(number)
    body: dict = {"messages": [{"role": "user", "content": f"Item {number}, please."}], "seed": number}
    body |= {"temperature": picked.choice([0.0, 0.7, 1.0]), "max_tokens": 120}
    kind = picked.randrange(4)
    if kind == 0:
        body["guided_regex"] = picked.choice(PATTERNS)
    elif kind == 1:
        body |= {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}
    else:
        form = {"name": "it", "schema": picked.choice(SCHEMAS)}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    return body


def judged(body: dict, message: dict) -> str:
    """The answer as text, after an independent judge has found it valid."""
    if "tools" in body:
        (call,) = message["tool_calls"]
        jsonschema.validate(json.loads(call["function"]["arguments"]), SCHEMAS[0])
        return call["function"]["arguments"]
    text = message["content"]
    if "guided_regex" in body:
        assert re.fullmatch(body["guided_regex"], text), text
    else:
        jsonschema.validate(json.loads(text), body["response_format"]["json_schema"]["schema"])
    return text


async def asked(client: httpx.AsyncClient, number: int) -> str:
    body = request(number)
    while True:
        if number % 3:
            answer = await client.post(CHAT, json=body)
            if answer.status_code == 429:
                await asyncio.sleep(0.05)
                continue
            assert answer.status_code == 200, answer.text
            return judged(body, answer.json()["choices"][0]["message"])
        async with client.stream("POST", CHAT, json={**body, "stream": True}) as answer:
            if answer.status_code == 429:
                await asyncio.sleep(0.05)
                continue
            lines = [line[6:] async for line in answer.aiter_lines() if line.startswith("data: {")]
        deltas = [json.loads(line)["choices"][0]["delta"] for line in lines]
        calls = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
        text = "".join(delta.get("content") or "" for delta in deltas)
        joined = "".join(call["arguments"] for call in calls)
        message = {"content": text, "tool_calls": [{"function": {"arguments": joined}}]}
        return judged(body, message)


async def trouble(client: httpx.AsyncClient, number: int) -> None:
    """A request that is hostile, is cut off, or is killed in the middle of its answer."""
    kind = number // 10 % 3
    if kind == 0:
        content = HOSTILE[number // 30 % len(HOSTILE)]
        headers = {"Content-Type": "application/json"}
        answer = await client.post(CHAT, content=content, headers=headers)
        assert answer.status_code in (400, 429), answer.text
        return
    body = {**request(number), "stream": kind == 1, "guided_regex": "[a-z ]{300}", "max_tokens": 400}
    for name in ("tools", "tool_choice", "parallel_tool_calls", "response_format"):
        body.pop(name, None)
    if kind == 1:
        async with client.stream("POST", CHAT, json=body) as answer:
            async for _ in answer.aiter_lines():
                return
    else:
        with pytest.raises(httpx.TimeoutException):
            await client.post(CHAT, json=body, timeout=httpx.Timeout(60, read=0.05))


async def load(url: str, count: int, connections: int) -> dict[int, str]:
    """The texts of all requests that were let finish."""
    texts: dict[int, str] = {}
    gate = asyncio.Semaphore(connections)
    limits = httpx.Limits(max_connections=connections)
    async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits) as client:

        async def one(number: int) -> None:
            async with gate:
                if number % 10 == 0:
                    await trouble(client, number)
                else:
                    texts[number] = await asked(client, number)

        await asyncio.gather(*(one(number) for number in range(count)))
    return texts


def left(url: str, engine: Engine) -> tuple[int, ...]:
    load = engine.scheduler.load
    requests = httpx.get(f"{url}/health").json()["requests"]
    return load.running, load.waiting, load.jobs, requests, engine.scheduler._decoder.active


def held(engine: Engine) -> int:
    """Slots of the cache that some text holds."""
    return engine.scheduler._decoder._speculator.backbone.held_slots


def check(count: int, connections: int, compared: int) -> None:
    engine = Engine(batch_size=16, waiting=64)
    with running(create_app(engine)) as url:
        quiet = {}
        numbers = [number for number in range(count) if number % 10][:: max(count // compared, 1)]
        with httpx.Client(base_url=url, timeout=120) as client:
            for number in numbers:
                body = request(number)
                quiet[number] = judged(body, client.post(CHAT, json=body).json()["choices"][0]["message"])
        threads = threading.active_count()
        texts = asyncio.run(load(url, count, connections))
        until = 400
        while any(left(url, engine)) and until:
            until -= 1
            threading.Event().wait(0.05)
        assert left(url, engine) == (0, 0, 0, 0, 0)
        assert held(engine) == 0
        assert threading.active_count() <= threads + 40  # the pool of asyncio's threads is bounded
    assert set(texts) == {number for number in range(count) if number % 10}
    different = [number for number in numbers if texts[number] != quiet[number]]
    assert not different, different


def test_many_requests_with_trouble_among_them():
    check(60, 16, 10)


@pytest.mark.slow
def test_two_thousand_requests_with_trouble_among_them():
    check(2000, 64, 200)
