"""What an operator reads and sets while the server runs: lines, counts, ids, keys, descriptions."""

from __future__ import annotations

import errno
import inspect
import json
import logging
import re
import sys
import time
from collections import Counter
from pathlib import Path

import httpx
import jsonschema
import pytest
from prometheus_client.parser import text_string_to_metric_families
from running import running

import tokenform as tf
from tokenform.cli.serve import serve
from tokenform.errors import OptionError
from tokenform.server import Engine, Key, create_app
from tokenform.server.described import openapi
from tokenform.server.endpoints import ENDPOINTS
from tokenform.server.keys import KeyFile
from tokenform.server.record import Lines

ROOT = Path(__file__).parents[2]
CHAT = "/v1/chat/completions"
SHORT = {"messages": [{"role": "user", "content": "a word"}], "guided_regex": "[a-z]{4}"}
LONG = {**SHORT, "guided_regex": "[a-z ]{900}", "temperature": 1.0, "stream": True}


@pytest.fixture
def engine():
    return Engine(batch_size=4)


def lines(caplog):
    return [json.loads(one.getMessage()) for one in caplog.records if hasattr(one, "fields")]


def wait_for(done):
    end = time.monotonic() + 10
    while not done() and time.monotonic() < end:
        time.sleep(0.01)


def figures(url):
    text = httpx.get(url + "/metrics").text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_request_is_a_line_and_a_count(engine, caplog):
    caplog.set_level(logging.DEBUG, "tokenform.server")
    before = engine.scheduler.load.tokens
    with running(create_app(engine)) as url, httpx.Client(base_url=url, timeout=60) as client:
        whole = client.post(CHAT, json={**SHORT, "n": 2}).json()
        with client.stream("POST", CHAT, json={**SHORT, "stream": True}) as streamed:
            list(streamed.iter_lines())
        for _ in range(3):
            with client.stream("POST", CHAT, json=LONG) as streamed:
                next(streamed.iter_lines())
                streamed.close()
        client.post(CHAT, json={**SHORT, "guided_regex": "("})
        client.post(CHAT, content=b"{", headers={"Content-Type": "application/json"})
        client.get("/v1/nothing")
        client.get("/v1/models", headers={"Host": "evil.example"})
        client.get("/health")
        for _ in range(500):  # the streams that nobody reads end at their next step
            if client.get("/health").json()["requests"] == 0:
                break
        told = figures(url)
    said = lines(caplog)
    counted = {name: value for name, value in told.items() if name[0] == "tokenform_requests_total"}
    listed = Counter((line["endpoint"], str(line["status"])) for line in said)
    # the request for the figures is not in them yet
    listed["metrics", "200"] -= 1
    assert {tuple(value for _, value in labels): n for (_, labels), n in counted.items()} == +listed
    (first,) = [line for line in said if line.get("answer") == whole["id"]]
    assert first["endpoint"] == "chat" and first["reason"] == "end" and first["key"] == "anybody"
    assert first["tokens"] == whole["usage"]["completion_tokens"]
    assert first["prompt_tokens"] == whole["usage"]["prompt_tokens"] and first["model_ms"] > 0
    assert [line.get("reason") for line in said].count("cancelled") == 3
    assert {"invalid_regex", "invalid_json", "foreign_host", "not_found"} <= {
        line.get("reason") for line in said
    }
    assert told["tokenform_cancelled_total", ()] == 3
    written = sum(line.get("tokens", 0) for line in said if line.get("reason") == "end")
    assert engine.scheduler.load.tokens - before >= written > 0
    assert "a word" not in caplog.text


def test_ids_come_and_go(engine, caplog):
    caplog.set_level(logging.INFO, "tokenform.server")
    with running(create_app(engine)) as url, httpx.Client(base_url=url, timeout=60) as client:
        ids = list[str]()
        for given, kept in (("ticket-17", True), ("x" * 128, True), ("x" * 129, False), ("two words", False)):
            for path, body in ((CHAT, SHORT), (CHAT, {}), ("/v1/nothing", {})):
                answer = client.post(path, json=body, headers={"X-Request-Id": given})
                ids.append(answer.headers["x-request-id"])
                assert (ids[-1] == given) is kept
                wait_for(lambda: len(lines(caplog)) == len(ids))  # a line is written behind the answer
                assert lines(caplog)[-1]["request"] == ids[-1]
        made = {client.get("/health").headers["x-request-id"] for _ in range(3)}
        assert len(made) == 3


def test_the_log_is_json_where_it_is_wanted():
    record = logging.LogRecord("a.b", logging.WARNING, "file", 1, 'say "%s"\nand', ("it",), None)
    told = json.loads(Lines().format(record))
    assert told["message"] == 'say "it"\nand' and told["level"] == "warning"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", told["time"])
    try:
        raise ValueError("x")
    except ValueError:
        record.exc_info = sys.exc_info()
    assert (
        "\n" not in Lines().format(record) and "ValueError: x" in json.loads(Lines().format(record))["error"]
    )


class FullDisk:
    """What a stream does whose disk is full."""

    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")

    def flush(self):
        self.write("")


def test_a_log_that_can_not_be_written_costs_no_answer(engine):
    handler = logging.StreamHandler(FullDisk())
    log = logging.getLogger("tokenform")
    log.addHandler(handler)
    before = log.level
    log.setLevel("INFO")
    try:
        with running(create_app(engine)) as url:
            assert httpx.post(url + CHAT, json=SHORT, timeout=60).status_code == 200
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def test_keys_are_read_again_and_nobody_is_let_in_by_a_broken_file(tmp_path, caplog):
    path = tmp_path / "keys"
    path.write_text("# name and key\n\nteam k-1\nother k-2\n")
    file = KeyFile(path, lambda secret, name: Key(secret, name, concurrent=3))
    app = create_app(Engine(batch_size=2), keys=["k-0"], key_file=file)
    key = app.state.server.guard.key

    def admitted():
        found = set()
        for secret in ("k-0", "k-1", "k-2", "k-3", "", None):
            try:
                found.add(key(secret).name)
            except Exception as error:
                assert getattr(error, "status", None) == 401
        return found

    assert admitted() == {"key-0", "team", "other"} and key("k-1").concurrent == 3
    path.write_text("team k-3\n")
    assert admitted() == {"key-0", "team"} and key("k-3").name == "team"
    for broken in ("team k-1 k-2\n", "team\n", "team k-1\nteam k-2\n"):
        path.write_text(broken)
        assert admitted() == {"key-0", "team"} and key("k-3").name == "team"
        with pytest.raises(OptionError):
            KeyFile(path, lambda secret, name: Key(secret, name))
    path.unlink()
    assert admitted() == {"key-0", "team"} and key("k-3").name == "team"
    path.write_text("")
    assert admitted() == {"key-0"}
    assert "stay as they were" in caplog.text and not re.search(r"k-\d", caplog.text)
    alone = create_app(Engine(batch_size=2), key_file=KeyFile(path, lambda secret, name: Key(secret, name)))
    assert not alone.state.server.guard.open
    with pytest.raises(Exception, match="wants an API key"):
        alone.state.server.guard.key("")


def test_the_server_describes_itself(engine):
    with running(create_app(engine, keys=["k"])) as url, httpx.Client(base_url=url) as client:
        assert client.get("/version").json() == {"version": tf.__version__}
        assert client.get("/openapi.json").json() == openapi()
        page = client.get("/docs")
        assert page.headers["content-type"].startswith("text/html")
        for address in re.findall(r'(?:src|href)="([^"]+)"', page.text):
            assert client.get(f"/{address}").status_code == 200  # and none of elsewhere
        assert "<script" not in page.text and "default-src 'none'" in page.headers["content-security-policy"]
        told = openapi()
        for path, methods in told["paths"].items():
            assert path in page.text
            for method in methods:
                status = client.request(method, path.replace("{name}", engine.name)).status_code
                assert status == (200 if "security" not in methods[method] else 401), path


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: one.name)
def test_what_is_described_is_what_is_taken(endpoint):
    told = openapi()
    schema = {**told["components"]["schemas"][endpoint.name], "components": told["components"]}
    judge = jsonschema.Draft202012Validator(schema)
    judge.check_schema(schema)
    needed = {
        "chat": {"messages": []},
        "completions": {"prompt": "a"},
        "responses": {"input": "a"},
        "messages": {"messages": [], "max_tokens": 4},
    }[endpoint.name]
    changes = ({}, {"temperature": 0.5}, {"temperature": "x"}, {"no_such": 1}, {"top_p": 2}, {"n": 0})
    for body in ({}, *({**needed, **change} for change in changes)):
        try:
            endpoint.reads.model_validate(body)
            taken = True
        except ValueError:
            taken = False
        assert judge.is_valid(body) is taken, body


def test_the_page_works_with_keys_and_by_other_names(engine):
    asking = {"constraint": {"kind": "regex", "source": "[ab]+", "options": {}}, "text": "a"}
    with running(create_app(engine, keys=["k"], playground=True)) as url:
        assert httpx.get(url + "/playground/").status_code == 200
        there = url + "/playground/api/inspect"
        assert httpx.post(there, json=asking).status_code == 401
        for name, value in (("Authorization", "Bearer k"), ("Host", "models.example")):
            headers = {"Authorization": "Bearer k", name: value}
            assert httpx.post(there, json=asking, headers=headers).status_code == 200
        assert (
            httpx.post(there, json=asking, headers=headers | {"Origin": "https://evil.example"}).status_code
            == 403
        )
    with running(create_app(engine, keys=["k"])) as url:
        assert httpx.get(url + "/playground/").status_code == 404
    with running(create_app(engine, hosts=["models.lan"])) as url:
        for host, status in (("models.lan", 200), ("evil.example", 403)):
            answer = httpx.post(url + "/playground/api/inspect", json=asking, headers={"Host": host})
            assert answer.status_code == status
        assert "--allowed-host" in answer.json()["error"]["message"]


def test_a_proxy_with_tls_stands_before_it(engine):
    """The scheme that the proxy tells is that of the pages that may ask."""
    with running(create_app(engine, keys=["k"])) as url:
        own = {"x-api-key": "k", "Host": "models.example", "Origin": "https://models.example"}
        assert httpx.get(url + "/v1/models", headers=own).status_code == 403
        forwarded = own | {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"}
        assert httpx.get(url + "/v1/models", headers=forwarded).status_code == 200


def test_memory_and_threads_are_told(engine):
    with running(create_app(engine)) as url:
        told = {name for name, _ in figures(url)}
        values = {name: value for (name, _), value in figures(url).items()}
    assert values["tokenform_threads"] >= 2 and values["tokenform_device_memory_bytes"] >= 0
    if sys.platform == "linux":
        assert values["process_resident_memory_bytes"] > 50 << 20
        assert {"process_open_fds", "process_cpu_seconds_total"} <= told


def test_the_dashboard_reads_what_is_told(engine):
    board = json.loads((ROOT / "deploy" / "grafana.json").read_text(encoding="utf-8"))
    texts = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked = {name for text in texts for name in re.findall(r"\b(?:tokenform|process)_\w+", text)}
    labels = {name for text in texts for name in re.findall(r"by \(([^)]*)\)", text)}
    with running(create_app(engine)) as url:
        for body in (SHORT, {**SHORT, "stream": True}, {}):
            httpx.post(url + CHAT, json=body, timeout=60)
        told = figures(url)
    if sys.platform != "linux":
        asked = {name for name in asked if not name.startswith("process_")}
    assert len(asked) > 12 and asked <= {name for name, _ in told}
    known = {label for _, pairs in told for label, _ in pairs} | {"job"}
    assert {one.strip() for name in labels for one in name.split(",")} <= known


def test_what_is_deployed_names_options_that_there_are():
    folder = ROOT / "deploy"
    image, unit = (
        (folder / name).read_text(encoding="utf-8") for name in ("Dockerfile", "tokenform.service")
    )
    known = {
        option for one in inspect.signature(serve).parameters for option in ["--" + one.replace("_", "-")]
    }
    page = (ROOT / "docs" / "guides" / "operating.md").read_text(encoding="utf-8")
    for text in (image, unit, page):
        commands = re.findall(r"(?:tokenform serve|\btokenform\b.* --).*|ENTRYPOINT.*", text)
        used = {option for command in commands for option in re.findall(r"--[a-z-]+", command)}
        assert used & known and used <= known | {"--rm"}, used
    assert image.index("\nUSER tokenform") < image.index("\nENTRYPOINT") and "\nHEALTHCHECK" in image
    assert "\nUser=tokenform\n" in unit
    copied = re.findall(
        r"^!(\S+)", (folder / "Dockerfile.dockerignore").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert all((ROOT / name).exists() for name in copied)
