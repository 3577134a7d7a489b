"""Clients that send a byte now and then, read nothing, or send no request: none holds a place for long."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from running import running

from tokenform.server import Engine, Key, connections, create_app
from tokenform.server.answering import _Stream

CHAT = "/v1/chat/completions"
SHORT = {"messages": [{"role": "user", "content": "a word"}], "guided_regex": "[a-z]{4}"}
HEAD = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture
def engine():
    return Engine(batch_size=4)  # an app that ends closes it


def connected(url):
    one = socket.socket()
    one.connect((urlsplit(url).hostname, urlsplit(url).port))
    one.settimeout(30)
    return one


def everything(one):
    """What comes until the other side ends."""
    parts = []
    with contextlib.suppress(ConnectionResetError):  # it does not read the rest of what is sent
        while part := one.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def unused(url, seconds=30):
    """Whether no request is under way in the end."""
    until = time.monotonic() + seconds
    while httpx.get(url + "/health").json()["requests"]:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("how", ["half", "none", "chunks"])
def test_a_body_that_does_not_come_holds_no_place(engine, how):
    """The one place of this key is free again."""
    length = "Transfer-Encoding: chunked" if how == "chunks" else "Content-Length: 900"
    app = create_app(engine, keys=[Key(concurrent=1)], patience=0.3)
    with running(app) as url, connected(url) as one:
        one.sendall((HEAD + length + "\r\n\r\n").encode())
        if how != "none":
            one.sendall(b"1\r\n{\r\n" if how == "chunks" else b'{"messages":')
        answer = everything(one)
        assert answer.startswith(b"HTTP/1.1 408 ") and b'"slow_body"' in answer
        answered = httpx.post(url + CHAT, json=SHORT, timeout=60)
        assert answered.status_code == 200, answered.text


@pytest.mark.parametrize("first", [b"", b"POST /v1", HEAD.encode(), b"\r\n"])
@pytest.mark.parametrize("before", [False, True])
def test_a_connection_without_a_request_ends(engine, monkeypatch, first, before):
    monkeypatch.setattr(connections, "PATIENCE", 0.3)
    with running(create_app(engine), http=connections.Connection) as url, connected(url) as one:
        if before:  # an answer, and then nothing that is a request
            one.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert one.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        one.sendall(first)
        everything(one)


def test_a_connection_with_a_request_under_way_stays(engine, monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE", 0.05)
    long = {**SHORT, "guided_regex": "[a-z ]{400}", "temperature": 1.0}
    with (
        running(create_app(engine), http=connections.Connection) as url,
        httpx.Client(base_url=url) as client,
    ):
        for _ in range(2):
            began = time.monotonic()
            answer = client.post(CHAT, json=long, timeout=60)
            assert len(answer.json()["choices"][0]["message"]["content"]) == 400
            assert time.monotonic() - began > 0.05


@pytest.mark.parametrize("family", ["127.0.0.1", "::1"])
def test_connections_send_at_once_on_a_socket_that_names_no_protocol(engine, monkeypatch, family):
    """uvicorn's own socket names none, so that asyncio leaves the kernel waiting for acknowledgements."""
    seen = []
    made = connections.Connection.connection_made

    def look(self, transport):
        made(self, transport)
        one = transport.get_extra_info("socket")
        seen.append((one.proto, one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))

    monkeypatch.setattr(connections.Connection, "connection_made", look)
    try:
        listening = uvicorn.Config(None, host=family, port=0, log_config=None).bind_socket()
    except SystemExit:
        pytest.skip(f"this machine has no address {family}")
    server = uvicorn.Server(
        uvicorn.Config(create_app(engine), http=connections.Connection, log_level="warning")
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    host, port = listening.getsockname()[:2]
    assert httpx.get(
        f"http://[{host}]:{port}/health" if ":" in host else f"http://{host}:{port}/health"
    ).is_success
    server.should_exit = True
    thread.join(30)
    assert seen == [(0, 1)]


@pytest.mark.parametrize("version", ["2.3", "2.4"])
def test_who_reads_no_stream_holds_no_place(version):
    async def events():
        while True:
            yield "data: {}\n\n"

    async def full(message):  # as uvicorn's does where the client takes nothing
        await asyncio.Event().wait()

    async def receive():
        await asyncio.Event().wait()

    resources, let_go = contextlib.ExitStack(), []
    resources.callback(let_go.append, True)
    streamed = _Stream(events(), media_type="text/event-stream")
    streamed.resources, streamed.until = resources, time.monotonic() + 0.2
    scope = {"type": "http", "asgi": {"spec_version": version}}
    asyncio.run(asyncio.wait_for(streamed(scope, receive, full), 30))
    assert let_go


def test_half_closed_and_broken_requests_hold_no_place(engine):
    body = json.dumps(SHORT)
    with running(create_app(engine)) as url:
        for sent in (
            HEAD + f"Content-Length: {len(body)}\r\n\r\n{body}",
            HEAD + "Content-Length: 9\r\n\r\n{",
        ):
            with connected(url) as one:
                one.sendall(sent.encode())
                one.shutdown(socket.SHUT_WR)
                everything(one)
        for sent in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/9\r\n\r\n", b"A" * (1 << 17)):
            with connected(url) as one:
                one.sendall(sent)
                assert everything(one)[:13] in (b"HTTP/1.1 400 ", b"")
        assert unused(url) and httpx.post(url + CHAT, json=SHORT, timeout=60).status_code == 200
