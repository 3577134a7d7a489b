"""Keys, limits, sizes, times, and clients that go away: each costs its own request alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import threading
import time

import httpx
import pytest
import torch
from running import running

import tokenform as tf
from tokenform.decoding.speculative.passes import Passes
from tokenform.server import Engine, Key, create_app
from tokenform.server.connections import ClosingServer
from tokenform.server.turns import Turns

LONG = {"messages": [{"role": "user", "content": "a"}], "guided_regex": "[a-z ]{900}", "temperature": 1.0}
SHORT = {"messages": [{"role": "user", "content": "a"}], "guided_regex": "[a-z]{4}"}
CHAT = "/v1/chat/completions"


def quiet(engine, seconds=20):
    """Waits until nothing runs."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        load = engine.scheduler.load
        if not (load.running or load.waiting or load.jobs):
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def engine():
    return Engine(batch_size=2, waiting=2)


def test_keys_are_asked_for_and_never_written(engine, caplog):
    secret = "sk-very-secret-41"
    with caplog.at_level(logging.DEBUG), running(create_app(engine, keys=[secret])) as url:
        assert httpx.post(url + CHAT, json=SHORT).status_code == 401
        wrong = httpx.post(url + CHAT, json=SHORT, headers={"Authorization": "Bearer sk-other"})
        assert wrong.status_code == 401 and wrong.json()["error"]["code"] == "invalid_api_key"
        for name, value in (("Authorization", f"Bearer {secret}"), ("x-api-key", secret)):
            assert httpx.post(url + CHAT, json=SHORT, headers={name: value}, timeout=60).status_code == 200
            assert httpx.get(url + "/v1/models", headers={name: value}).status_code == 200
        assert httpx.get(url + "/v1/models").status_code == httpx.get(url + "/metrics").status_code == 401
        assert httpx.get(url + "/health").status_code == 200
        metrics = httpx.get(url + "/metrics", headers={"x-api-key": secret}).text
    assert secret not in caplog.text and secret not in metrics and "sk-other" not in caplog.text
    assert secret not in repr(Key(secret))


def test_a_key_has_limits(engine):
    key = Key("k", concurrent=1, tokens=50, schema_bytes=400, limits=tf.engine.Limits(work=2_000_000))
    headers = {"x-api-key": "k"}
    with running(create_app(engine, keys=[key])) as url, httpx.Client(headers=headers, timeout=60) as client:
        assert client.post(url + CHAT, json={**SHORT, "n": 10, "max_tokens": 20}).status_code == 400
        big = {"enum": ["x" * 500]}
        error = client.post(url + CHAT, json={**SHORT, "guided_json": big, "guided_regex": None}).json()[
            "error"
        ]
        assert error["code"] == "too_large" and error["param"] == "/guided_json"
        assert client.post(url + CHAT, json=SHORT).status_code == 200


def test_more_at_once_than_a_key_may_is_refused(engine):
    with running(create_app(engine, keys=[Key("k", concurrent=1)])) as url:
        headers = {"x-api-key": "k"}
        with httpx.stream(
            "POST", url + CHAT, json={**LONG, "stream": True}, headers=headers, timeout=60
        ) as held:
            assert held.status_code == 200
            second = httpx.post(url + CHAT, json=SHORT, headers=headers, timeout=60)
            assert second.status_code == 429 and second.headers["Retry-After"]
    assert quiet(engine)


def test_a_full_queue_is_said_with_a_time(engine):
    with running(create_app(engine)) as url:
        got = []
        threads = [
            threading.Thread(target=lambda: got.append(httpx.post(url + CHAT, json=LONG, timeout=120)))
            for _ in range(9)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {one.status_code for one in got} == {200, 429}
        refused = next(one for one in got if one.status_code == 429)
        assert refused.headers["Retry-After"] and refused.json()["error"]["code"] == "busy"
        assert all(
            len(one.json()["choices"][0]["message"]["content"]) == 900 for one in got if one.is_success
        )


def test_slow_constraints_of_a_key_keep_no_other_waiting(engine, monkeypatch):
    """One key's compilations fill their places and the queue; another's requests are answered meanwhile."""
    go, begun, compile = threading.Event(), [], engine.compiler.grammar

    def slow(kind, text, **options):
        if "slow" in text:
            begun.append(text)
            go.wait(60)
        return compile(kind, text, **options)

    monkeypatch.setattr(engine.compiler, "grammar", slow)
    keys = [Key("b", "bad"), Key("g", "good")]
    codes = []

    def ask(number, url):
        body = {**SHORT, "guided_regex": f"slow{number}"}
        answer = httpx.post(url + CHAT, json=body, headers={"x-api-key": "b"}, timeout=60)
        codes.append(answer.status_code)

    with running(create_app(engine, keys=keys)) as url:
        threads = [threading.Thread(target=ask, args=(number, url)) for number in range(12)]
        try:
            with pytest.raises(httpx.ReadTimeout):  # who goes away holds the place until its thread ends
                body = {**SHORT, "guided_regex": "slow"}
                httpx.post(url + CHAT, json=body, headers={"x-api-key": "b"}, timeout=0.5)
            for thread in threads:
                thread.start()
            until = time.monotonic() + 20
            while len(begun) < 3 and time.monotonic() < until:
                time.sleep(0.01)
            plain = {"messages": SHORT["messages"], "max_tokens": 4}
            for body in (plain, {**plain, "response_format": {"type": "text"}}, SHORT):
                answer = httpx.post(url + CHAT, json=body, headers={"x-api-key": "g"}, timeout=20)
                assert answer.status_code == 200
            bad = httpx.post(url + CHAT, json=plain, headers={"x-api-key": "b"}, timeout=20)
            assert bad.status_code == 200 and not codes and len(begun) == 3
        finally:
            go.set()
        for thread in threads:
            thread.join()
    assert set(codes) <= {200, 429} and len(codes) == 12
    assert quiet(engine)


def test_places_go_round_the_callers():
    async def order():
        turns, served = Turns(2), []

        async def one(owner, number):
            await turns.take(owner)
            served.append(f"{owner}{number}")
            await asyncio.sleep(0)
            turns.give_back(owner)

        await turns.take("z")
        await turns.take("y")
        tasks = [asyncio.ensure_future(one("a", number)) for number in range(3)]
        tasks += [asyncio.ensure_future(one(owner, 0)) for owner in "bc"]
        await asyncio.sleep(0)
        tasks.pop(1).cancel()
        await asyncio.sleep(0)
        turns.give_back("z")
        await asyncio.gather(*tasks)
        turns.give_back("y")
        for owner in "pq":  # both places are free again
            await asyncio.wait_for(turns.take(owner), 1)
        return served

    assert asyncio.run(order()) == ["a0", "b0", "c0", "a2"]


@pytest.mark.parametrize(
    "error",
    [MemoryError(), torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("can't allocate memory: 9")],
)
def test_memory_that_runs_out_is_said_and_the_server_goes_on(engine, monkeypatch, error):
    def fail(*_, **__):
        raise error

    with running(create_app(engine)) as url:
        with monkeypatch.context() as without:
            without.setattr(Passes, "_logits", fail)
            for stream in (False, True):
                answer = httpx.post(url + CHAT, json={**SHORT, "stream": stream}, timeout=60)
                assert answer.status_code == 503 and answer.headers["Retry-After"]
                assert answer.json()["error"]["code"] == "out_of_memory"
        assert httpx.post(url + CHAT, json=SHORT, timeout=60).status_code == 200
    assert quiet(engine)


def test_bodies_have_a_size_and_are_json(engine):
    with running(create_app(engine, max_bytes=2000)) as url:
        assert httpx.post(url + CHAT, json={**SHORT, "user": "x" * 3000}).status_code == 413
        chunks = (b" " * 500 for _ in range(9))
        kind = {"Content-Type": "application/json"}
        assert httpx.post(url + CHAT, content=chunks, headers=kind).status_code == 413
        for body in (b"{", b"[1]", b"\xff", b"", b"[" * 1500, b'{"messages": 3}'):
            answer = httpx.post(url + CHAT, content=body, headers=kind)
            assert answer.status_code == 400 and answer.json()["error"]["message"]


def test_who_goes_away_frees_the_batch(engine):
    with running(create_app(engine)) as url:
        for stream in (False, True):
            body = json.dumps({**LONG, "stream": stream}).encode()
            host, port = url.removeprefix("http://").split(":")
            with socket.create_connection((host, int(port))) as wire:
                lines = ["Host: localhost", "Content-Type: application/json", f"Content-Length: {len(body)}"]
                head = "\r\n".join([f"POST {CHAT} HTTP/1.1", *lines, "", ""])
                wire.sendall(head.encode() + body)
                until = time.monotonic() + 30
                while not engine.scheduler.load.running and time.monotonic() < until:
                    time.sleep(0.005)
            assert quiet(engine)
        assert httpx.post(url + CHAT, json=SHORT, timeout=60).status_code == 200
        assert "tokenform_cancelled_total" in httpx.get(url + "/metrics").text
        until = time.monotonic() + 10
        while httpx.get(url + "/health").json()["requests"] and time.monotonic() < until:
            time.sleep(0.02)
        assert httpx.get(url + "/health").json()["requests"] == 0


def test_a_request_has_its_time(engine):
    with running(create_app(engine, timeout=0.05)) as url:
        late = httpx.post(url + CHAT, json=LONG, timeout=60)
        assert late.status_code == 504 and late.json()["error"]["code"] == "timeout"
        assert quiet(engine)


def test_a_stream_over_its_time_is_told_and_is_no_fault_of_the_server(engine, monkeypatch, caplog):
    logits = Passes._logits

    def slow(*args, **kwargs):
        time.sleep(0.05)
        return logits(*args, **kwargs)

    monkeypatch.setattr(Passes, "_logits", slow)
    body = {"input": "a", "guided_regex": "[a-z ]{900}", "temperature": 1.0, "stream": True}
    with running(create_app(engine, timeout=0.8)) as url:
        told = httpx.post(url + "/v1/responses", json=body, timeout=60)
    events = [json.loads(line[6:]) for line in told.text.splitlines() if line.startswith("data: ")]
    assert [one["sequence_number"] for one in events] == list(range(len(events))) and len(events) > 3
    assert events[-1]["type"] == "error" and events[-1]["code"] == "timeout"
    assert not any(record.exc_info for record in caplog.records)


def test_a_wrong_method_is_told_the_right_one(engine):
    with running(create_app(engine)) as url:
        answer = httpx.get(url + CHAT)
        assert answer.status_code == 405 and answer.headers["Allow"] == "POST"
        assert answer.json()["error"]["code"] == "method_not_allowed"
        assert httpx.get(url + "/v2").json()["error"]["code"] == "not_found"


def test_cors_is_off_until_it_is_asked_for(engine):
    origin = {"Origin": "https://page.example"}
    with running(create_app(engine)) as url:
        answer = httpx.post(url + CHAT, json=SHORT, headers=origin)
        assert answer.status_code == 403 and answer.json()["error"]["code"] == "foreign_origin"
        assert "access-control-allow-origin" not in answer.headers
    with running(create_app(engine, origins=["https://page.example"])) as url:
        answer = httpx.get(url + "/health", headers=origin)
        assert answer.headers["access-control-allow-origin"] == "https://page.example"


def test_closing_ends_what_was_begun():
    engine = Engine(batch_size=2)
    got = []
    with running(create_app(engine)) as url:
        body = {**SHORT, "guided_regex": "[a-z]{120}"}
        asking = threading.Thread(target=lambda: got.append(httpx.post(url + CHAT, json=body, timeout=60)))
        asking.start()
        while not engine.scheduler.load.running:
            time.sleep(0.002)
    asking.join(60)
    assert got[0].status_code == 200 and len(got[0].json()["choices"][0]["message"]["content"]) == 120
    assert engine.scheduler.load.running == 0


def test_requests_that_outlive_the_end_are_answered(monkeypatch, caplog):
    """Whole, streamed, and still in their constraint: each is told, and recorded, that the server closes."""
    engine, go = Engine(batch_size=4), threading.Event()
    compile, logits = engine.compiler.grammar, Passes._logits

    def slow(kind, text, **options):
        if "slow" in text:
            go.wait(30)
        return compile(kind, text, **options)

    def slow_logits(*args, **kwargs):
        time.sleep(0.05)
        return logits(*args, **kwargs)

    monkeypatch.setattr(engine.compiler, "grammar", slow)
    monkeypatch.setattr(Passes, "_logits", slow_logits)
    text = {"input": "a", "guided_regex": "[a-z ]{900}", "temperature": 1.0, "stream": True}
    asked = {
        "whole": (CHAT, LONG),
        "stream": ("/v1/responses", text),
        "chunks": (CHAT, {**LONG, "stream": True}),
        "reading": (CHAT, {**SHORT, "guided_regex": "slow"}),
    }
    got = {}

    def ask(name, url):
        path, body = asked[name]
        got[name] = httpx.post(url + path, json=body, timeout=60)

    caplog.set_level(logging.INFO)
    with running(create_app(engine, grace=1.0), ClosingServer) as url:
        threads = [threading.Thread(target=ask, args=(name, url)) for name in asked]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 20
        while engine.scheduler.load.running < 3 and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.3)
    for thread in threads:
        thread.join(30)
    go.set()
    for name in ("whole", "reading"):
        assert got[name].status_code == 503 and got[name].headers["Retry-After"], name
        assert got[name].json()["error"]["code"] == "closing"
    events = [line for line in got["stream"].text.splitlines() if line.startswith("data: ")]
    last = json.loads(events[-1][6:])
    assert last["type"] == "error" and last["code"] == "closing"
    assert last["sequence_number"] == len(events) - 1
    assert json.loads(got["chunks"].text.split("data: ")[-1])["error"]["code"] == "closing"
    lines = [record.fields for record in caplog.records if hasattr(record, "fields")]
    assert sorted(line["status"] for line in lines) == [200, 200, 503, 503]
    assert {line["reason"] for line in lines} == {"closing"}
    assert "Traceback" not in caplog.text and not any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_what_any_page_may_send_is_refused(engine, kind):
    with running(create_app(engine)) as url:
        answer = httpx.post(url + CHAT, content=json.dumps(SHORT), headers={"Content-Type": kind})
        assert answer.status_code == 415 and answer.json()["error"]["code"] == "invalid_content_type"


def test_foreign_pages_and_foreign_names_are_refused(engine):
    with running(create_app(engine, hosts=["models.lan"])) as url:
        port = url.rpartition(":")[2]
        for origin in ("https://evil.example", "null", "http://127.0.0.1:1", f"https://127.0.0.1:{port}"):
            assert httpx.post(url + CHAT, json=SHORT, headers={"Origin": origin}).status_code == 403
        assert httpx.post(url + CHAT, json=SHORT, headers={"Origin": url}, timeout=60).status_code == 200
        for host, status in (
            ("evil.example", 403),
            (f"evil.example:{port}", 403),
            ("127.0.0.1.evil.example", 403),
            (f"localhost:{port}", 200),
            ("models.lan", 200),
            ("192.168.0.7", 200),
            ("[::1]:80", 200),
            ("[::1", 403),
        ):
            answer = httpx.get(url + "/health", headers={"Host": host})
            assert answer.status_code == status, host
    with running(create_app(Engine(batch_size=2), keys=["k"])) as url:
        assert httpx.get(url + "/health", headers={"Host": "models.example"}).status_code == 200


def test_a_client_that_is_gone_before_the_first_event_leaves_nothing(engine):
    app = create_app(engine, playground=False)
    asked = json.dumps({**LONG, "stream": True}).encode()
    calls = 0

    async def receive():
        nonlocal calls
        calls += 1
        if calls == 1:
            return {"type": "http.request", "body": asked, "more_body": False}
        if calls in (2, 3):  # while the constraint is read, and until the first piece
            await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message):
        raise OSError("nobody is there")

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": CHAT,
        "raw_path": CHAT.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    with contextlib.suppress(Exception):
        asyncio.run(app(scope, receive, send))
    assert calls >= 4 and app.state.server.guard.in_use == 0
    assert quiet(engine)
