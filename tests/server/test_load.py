"""Many requests at once, a tenth of them hostile, cut off or killed: the others are as on a quiet server.

Every answer of a request that was let finish is valid and is the text of the same seed on a quiet server;
nothing is lost, and nothing is left over: texts, jobs, requests, tasks, threads, slots of the cache, memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import json
import resource
import socket
import struct
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from load_requests import SCHEMAS, bodies, hostile, judged, maskbench_schemas, request
from running import running

from tokenform.errors import DataError
from tokenform.server import Engine, create_app

CHAT = "/v1/chat/completions"
LONGEST = 48
"""Tokens of the shortest text of what is asked for; all have `SPARE` more."""
SPARE = 12
MEGABYTE = 1 << 20
Bound = Sequence[dict[str, Any]]


@pytest.fixture(autouse=True)
def one_thread():
    """The server, its clients and the judges share a few cores; torch's threads would wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def affordable(client: httpx.Client, every: Bound) -> list[dict[str, Any]]:
    """What has short texts, each with its budget, as the server's refusals tell it."""
    kept = []
    for bound in every:
        asked = {**bound, "messages": [{"role": "user", "content": "a"}], "max_tokens": 1}
        answer = client.post(CHAT, json=asked)
        if answer.status_code == 200:
            kept.append({**bound, "max_tokens": SPARE})
            continue
        error = answer.json()["error"]
        assert answer.status_code == 400 and error["message"], answer.text
        if error["code"] == "budget_too_small" and error.get("least", LONGEST + 1) <= LONGEST:
            kept.append({**bound, "max_tokens": error["least"] + SPARE})
    return kept


async def asked(client: httpx.AsyncClient, number: int, bound: Bound) -> str:
    body = request(number, bound)
    while True:
        if number % 3:
            answer = await client.post(CHAT, json=body)
            if answer.status_code == 429:
                await asyncio.sleep(0.05)
                continue
            assert answer.status_code == 200, answer.text
            choice = answer.json()["choices"][0]
            return judged(body, choice["message"], choice["finish_reason"])
        async with client.stream("POST", CHAT, json={**body, "stream": True}) as answer:
            if answer.status_code == 429:
                await asyncio.sleep(0.05)
                continue
            lines = [line[6:] async for line in answer.aiter_lines() if line.startswith("data: {")]
        assert answer.status_code == 200, (answer.status_code, body)
        choices = [json.loads(line)["choices"][0] for line in lines]
        deltas = [choice["delta"] for choice in choices]
        calls = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
        text = "".join(delta.get("content") or "" for delta in deltas)
        joined = "".join(call["arguments"] for call in calls)
        message = {"content": text, "tool_calls": [{"function": {"arguments": joined}}]}
        return judged(body, message, choices[-1]["finish_reason"])


async def trouble(client: httpx.AsyncClient, number: int) -> None:
    """A request that is hostile, or is given up or killed before its body or its answer is whole."""
    kind = number // 10 % 5
    if kind == 0:
        headers = {"Content-Type": "application/json"}
        answer = await client.post(CHAT, content=hostile(number // 50), headers=headers)
        assert answer.status_code in (400, 429), answer.text
        return
    long = {"guided_regex": "[a-z ]{300}", "max_tokens": 400, "seed": number, "stream": kind == 1}
    body = {"messages": [{"role": "user", "content": "a"}], **long}
    if kind == 1:  # the reader goes after the first line
        async with client.stream("POST", CHAT, json=body) as answer:
            async for _ in answer.aiter_lines():
                return
    elif kind == 2:  # nobody waits for the answer, unless the server says at once that it is busy
        with contextlib.suppress(httpx.TimeoutException):
            answer = await client.post(CHAT, json=body, timeout=httpx.Timeout(300, read=0.05))
            assert answer.status_code == 429, answer.text
    else:  # the body ends in the middle, or the connection is reset while the text is written
        await asyncio.to_thread(_killed, str(client.base_url), json.dumps(body).encode(), kind == 3)


def _killed(url: str, body: bytes, half: bool) -> None:
    host, port = url.removeprefix("http://").strip("/").split(":")
    with socket.create_connection((host, int(port))) as wire:
        lines = ["Host: localhost", "Content-Type: application/json", f"Content-Length: {len(body)}"]
        wire.sendall("\r\n".join([f"POST {CHAT} HTTP/1.1", *lines, "", ""]).encode())
        wire.sendall(body[: len(body) // 2] if half else body)
        threading.Event().wait(0.1)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, no goodbye


async def load(url: str, numbers: range, connections: int, bound: Bound) -> dict[int, str]:
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
                    texts[number] = await asked(client, number, bound)

        await asyncio.gather(*(one(number) for number in numbers))
    return texts


class Watched:
    """An app, with what is left over in it."""

    def __init__(self, engine: Engine) -> None:
        self._app, self._engine = create_app(engine), engine
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._loop = asyncio.get_running_loop()
        await self._app(scope, receive, send)

    def left(self, url: str) -> dict[str, int]:
        """What a quiet server has none of."""
        load, requests = self._engine.scheduler.load, httpx.get(f"{url}/health").json()["requests"]
        decoder = self._engine.scheduler._batch.decoder
        slots = decoder.backbone.held_slots
        counts = {"running": load.running, "waiting": load.waiting, "jobs": load.jobs, "requests": requests}
        return {**counts, "active": decoder.active, "slots": slots}

    def quiet(self, url: str) -> None:
        """Everything that was begun has ended."""
        for _ in range(600):
            if not any(self.left(url).values()):
                break
            threading.Event().wait(0.05)
        assert self.left(url) == dict.fromkeys(self.left(url), 0)

    @property
    def tasks(self) -> int:
        """Tasks of the server's loop."""
        assert self._loop is not None
        for _ in range(100):  # those of connections that were closed end in their own time
            try:
                return len(asyncio.all_tasks(self._loop))
            except RuntimeError:  # the set changed while it was read
                continue
        raise AssertionError("the loop's tasks never stood still")


def memory() -> int:
    """Bytes that this process has in memory, what was freed given back first."""
    gc.collect()
    with Path("/proc/self/statm").open() as file:
        ctypes.CDLL(None).malloc_trim(0)
        return int(file.read().split()[1]) * resource.getpagesize()


def check(schemas: Sequence[Any], count: int, connections: int, compared: int, growth: int) -> None:
    engine = Engine(batch_size=16, waiting=64)
    watched = Watched(engine)
    with running(watched) as url:
        with httpx.Client(base_url=url, timeout=120) as client:
            bound = affordable(client, [*bodies(schemas)])
            assert len(bound) >= len(schemas) / 2
            finishing = [number for number in range(count) if number % 10]
            numbers, quiet = finishing[:: max(count // compared, 1)], {}
            for number in numbers:
                body = request(number, bound)
                choice = client.post(CHAT, json=body).json()["choices"][0]
                quiet[number] = judged(body, choice["message"], choice["finish_reason"])
        asyncio.run(load(url, range(count, count + connections), connections, bound))  # pools are filled
        watched.quiet(url)
        threads, tasks = threading.active_count(), watched.tasks
        texts = asyncio.run(load(url, range(count // 2), connections, bound))
        watched.quiet(url)
        half, began = memory(), time.monotonic()
        texts |= asyncio.run(load(url, range(count // 2, count), connections, bound))
        watched.quiet(url)
        grown = memory() - half
        print(f"{len(bound)} constraints; {time.monotonic() - began:.0f} s, {grown / MEGABYTE:.1f} MiB more")
        assert grown <= growth, grown / MEGABYTE
        assert threading.active_count() <= threads + 8  # asyncio's own pool is bounded
        assert watched.tasks <= tasks + 2  # a connection that was just closed may still say goodbye
    assert [*sorted(texts)] == finishing
    different = [number for number in numbers if texts[number] != quiet[number]]
    assert not different, different


def test_many_requests_with_trouble_among_them():
    check(SCHEMAS, 60, 16, 10, 64 * MEGABYTE)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_two_thousand_requests_with_trouble_among_them():
    try:
        schemas = maskbench_schemas(200)
    except DataError as error:
        pytest.skip(str(error))
    check(schemas, 2000, 64, 200, 64 * MEGABYTE)
