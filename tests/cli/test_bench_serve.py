"""`tokenform bench serve` against a server whose times, answers and faults are known."""

from __future__ import annotations

import http.server
import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("httpx", reason='pip install "tokenform[serve]"')

from tokenform.cli import app
from tokenform.errors import DataError, OptionError
from tokenform_bench import serve

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
PIECES = {"good": ['{"n"', ": ", "4}"], "wrong": ['{"n"', ": ", '"4"}'], "cut": ['{"n"', ": "]}
PAUSE = 0.02


class Fake(http.server.BaseHTTPRequestHandler):
    """Streams the pieces that the model's name asks for."""

    asked: list[dict[str, Any]]
    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        data = json.dumps({"data": [{"id": "good"}, {"id": "wrong"}]}).encode()
        self.send_response(200 if self.path == "/v1/models" else 404)
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body | {"path": self.path, "auth": self.headers.get("Authorization")})
        if body["model"] == "missing":
            self.send_error(404, "no such model")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.say({"choices": [{"delta": {"role": "assistant"}}]})
        for piece in PIECES[body["model"]]:
            time.sleep(PAUSE)
            self.say({"choices": [{"delta": {"content": piece}}]})
        if body["model"] != "cut":
            self.say({"choices": [{"delta": {}, "finish_reason": "stop"}]})
            self.say({"choices": [], "usage": {"completion_tokens": 5}})
            self.wfile.write(b"data: [DONE]\n\n")

    def say(self, event: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def fake() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    asked: list[dict[str, Any]] = []
    handler = type("Handler", (Fake,), {"asked": asked})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def load(url: str, model: str, **more: Any) -> serve.Load:
    return serve.Load(url, model, rate=200, requests=6, schemas=[SCHEMA], **more)


def test_times_and_tokens_are_those_of_the_server(fake: tuple[str, list[dict[str, Any]]]) -> None:
    url, asked = fake
    answers = serve.run(load(url, "good", modes=("schema", "free"), key="secret"))
    constrained, free = serve.figures(answers)
    assert (constrained.mode, constrained.requests, constrained.valid, constrained.failed) == (
        "schema",
        3,
        3,
        0,
    )
    assert (free.mode, free.requests, free.valid) == ("free", 3, None)
    for row in (constrained, free):
        assert row.tokens == 15 and row.first[0] >= 1000 * PAUSE  # no upper bounds: the machine may be busy
        assert 1000 * PAUSE * 0.5 <= row.between[0] <= row.between[1]
        assert row.whole[0] >= 3 * 1000 * PAUSE and row.a_token[0] >= 2 * 1000 * PAUSE / 4 * 0.5
    assert all(one["path"] == "/v1/chat/completions" and one["auth"] == "Bearer secret" for one in asked)
    assert [*map(bool, sorted("response_format" in one for one in asked))] == [False] * 3 + [True] * 3


@pytest.mark.parametrize(
    ("model", "failed", "error"), [("wrong", 0, None), ("cut", 6, "without"), ("missing", 6, "404")]
)
def test_bad_answers_are_counted(
    fake: tuple[str, list[dict[str, Any]]], model: str, failed: int, error: str
) -> None:
    answers = serve.run(load(fake[0] + "/v1/", model))
    (row,) = serve.figures(answers)
    assert (row.valid, row.failed, row.requests) == (0, failed, 6)
    assert all(error is None or error in str(answer.error) for answer in answers)


def test_a_server_that_is_not_there_is_no_crash() -> None:
    (row,) = serve.figures(serve.run(load("http://127.0.0.1:9", "good")))
    assert row.failed == 6


def test_arrivals_are_a_poisson_process_of_the_seed() -> None:
    times = serve.Load("", "", rate=5, requests=4000, seed=1).times()
    gaps = [b - a for a, b in itertools.pairwise(times)]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(0.2, rel=0.06)  # four standard errors
    assert sum(gap > 0.2 for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.031)
    assert (
        times
        == serve.Load("", "", rate=5, requests=4000, seed=1).times()
        != serve.Load("", "", seed=2).times()
    )


def test_percentiles_are_by_the_nearest_rank() -> None:
    assert serve._both([n / 1000 for n in range(1, 101)]) == pytest.approx((50, 99))
    assert serve._both([0.007]) == pytest.approx((7, 7))


def test_the_command_prints_a_table_and_writes_a_file(
    fake: tuple[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    schemas, out = tmp_path / "schemas.jsonl", tmp_path / "run.json"
    schemas.write_text(json.dumps({"schema": SCHEMA}) + "\n" + json.dumps(SCHEMA))
    common = [
        "bench",
        "serve",
        "--url",
        fake[0],
        "--rate",
        "100",
        "-n",
        "4",
        "-s",
        str(schemas),
        "--out",
        str(out),
    ]
    done = CliRunner().invoke(app, [*common, "--modes", "schema,free"])  # of the server's first model, "good"
    assert done.exit_code == 0 and "2/2" in done.stdout and "free" in done.stdout, done.output
    told = json.loads(out.read_text())
    assert len(told["answers"]) == 4 and told["figures"][0]["valid"] == 2 and told["errors"] == []
    assert CliRunner().invoke(app, [*common, "-m", "wrong", "--json"]).exit_code == 1
    assert CliRunner().invoke(app, [*common, "--modes", "x"]).exit_code == 2


def test_what_is_wrong_with_a_load_is_said() -> None:
    with pytest.raises(DataError, match=r"file\.json"):
        serve.read_schemas("[1]", "file.json")
    with pytest.raises(DataError):
        serve.read_schemas("{", "file.json")
    with pytest.raises(OptionError):
        serve.Load("", "", rate=0)
    with pytest.raises(DataError, match="--model"):
        serve.first_model("http://127.0.0.1:9")
