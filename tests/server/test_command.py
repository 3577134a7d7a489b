"""`tokenform serve` from a shell: it says where it listens, answers, and ends when it is told to."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from tokenform.builtin.loading import WEIGHTS
from tokenform.cli import app
from tokenform.server.connections import PATIENCE, ClosingServer

SRC = Path(__file__).parents[2] / "src"
MODEL = str(WEIGHTS / "model")


def test_the_command_serves_and_ends(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(SRC), "TOKENFORM_API_KEYS": "secret-7"}
    file, template = tmp_path / "keys", tmp_path / "template.jinja"
    file.write_text("team secret-8\n")
    template.write_text("{% for one in messages %}{{ one.content }}{% endfor %}")
    command = [sys.executable, "-m", "tokenform", "serve", MODEL, "--port", "0", "--name", "small"]
    command += ["--api-key-file", str(file), "--chat-template", str(template), "--log-format", "json"]
    command += ["--playground", "--device", "cpu", "--dtype", "bfloat16"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        said = []
        try:
            for line in process.stderr:
                said.append(line)
                found = re.search(r"running on (http://127\.0\.0\.1:\d+)", line)
                if found:
                    break
            else:
                pytest.fail("".join(said))
            headers = {"Authorization": "Bearer secret-7"}
            body = {"model": "small", "prompt": "a", "structured_outputs": {"regex": "[xy]{3}"}}
            answer = httpx.post(found[1] + "/v1/completions", json=body, headers=headers, timeout=60)
            assert re.fullmatch("[xy]{3}", answer.json()["choices"][0]["text"])
            assert httpx.post(found[1] + "/v1/completions", json=body).status_code == 401
            for secret, wanted in (("secret-8", 200), ("secret-9", 401)):
                assert models(found[1], secret) == wanted
            before = file.stat()
            file.write_text("team secret-9\n")  # as long as it was, and with its date: the signal alone tells
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
            assert models(found[1], "secret-9") == 401
            process.send_signal(signal.SIGHUP)
            for secret, wanted in (("secret-9", 200), ("secret-8", 401), ("secret-7", 200)):
                assert models(found[1], secret) == wanted
            messages = {"messages": [{"role": "user", "content": "abc"}], "max_tokens": 1}
            answer = httpx.post(found[1] + "/v1/chat/completions", json=messages, headers=headers, timeout=60)
            assert answer.json()["usage"]["prompt_tokens"] <= 3  # the template of the file: three characters
            long = {"prompt": "a b c d " * 4000, "max_tokens": 1}  # of which the tokenizer's library warns
            answer = httpx.post(found[1] + "/v1/completions", json=long, headers=headers, timeout=60)
            assert answer.status_code == 400
        finally:
            process.send_signal(signal.SIGINT)
        said += process.stderr.readlines()
        assert process.wait(60) in (0, -signal.SIGINT)
    assert "secret-" not in "".join(said) and "Finished server process" in "".join(said)
    last = next(number for number, line in enumerate(said) if "Finished server process" in line)
    lines = [
        json.loads(line) for line in said[: last + 1]
    ]  # not a line that is none: no bar of a library  # another library may write at the process's end
    messages = [line["message"] for line in lines if "message" in line]
    assert any("model small" in one and "cpu, bfloat16" in one for one in messages)
    assert f"playground: {found[1]}/" in messages
    asked = [line for line in lines if "request" in line]
    assert [line["status"] for line in asked].count(401) == 4 and asked[0]["endpoint"] == "completions"


def models(url, secret):
    return httpx.get(url + "/v1/models", headers={"x-api-key": secret}).status_code


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([MODEL, "--device", "nowhere"], "device='nowhere' is none"),
        ([MODEL, "--device", "cuda:99"], "can't be moved to 'cuda:99'"),
        ([MODEL, "--dtype", "float7"], "float7"),
        ([MODEL, "--dtype", "int8"], "floating-point"),
        (["--device", "cpu"], "the built-in one runs on the CPU in float32"),
    ],
)
def test_a_place_that_is_none_is_said(options, said):
    wrong = CliRunner().invoke(app, ["serve", *options])
    assert wrong.exit_code == 2 and said in " ".join(wrong.output.split())


@pytest.mark.parametrize("option", ["--timeout", "--max-tokens", "--concurrent"])
def test_limits_that_let_nothing_be_answered_are_refused(option):
    for number in ("0", "-1"):
        wrong = CliRunner().invoke(app, ["serve", option, number])
        assert wrong.exit_code == 2 and f"{option} {number}" in " ".join(wrong.output.split())


def test_a_key_that_can_not_be_sent_is_refused(tmp_path):
    file = tmp_path / "keys"
    file.write_text("team schlüssel\n", encoding="utf-8")
    for options in (["--api-key", "schlüssel"], ["--api-key-file", str(file)]):
        wrong = CliRunner().invoke(app, ["serve", *options])
        said = " ".join(wrong.output.split())
        assert wrong.exit_code == 2 and "can't be sent in a header" in said and "schlüssel" not in said


def test_idle_connections_stay_as_long_as_silent_ones(monkeypatch):
    """As long as the page for operators says, and not uvicorn's own 5 seconds."""
    configs = []
    monkeypatch.setattr(ClosingServer, "run", lambda self, **_: configs.append(self.config))
    CliRunner().invoke(app, ["serve", "--port", "0"])
    assert configs[0].timeout_keep_alive == PATIENCE == 60


def test_an_address_that_is_taken_is_said_before_the_model_is_loaded():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        wrong = CliRunner().invoke(app, ["serve", "./no/such/model", "--port", port])
    said = " ".join(wrong.output.split())
    assert wrong.exit_code == 2 and f"--host 127.0.0.1 --port {port} can't be listened at" in said


@pytest.mark.parametrize(
    ("options", "environment", "said"),
    [
        (["--api-key", ""], None, "--api-key is empty"),
        (["--api-key", " "], None, "--api-key is empty"),
        (["--api-key", "a", "--api-key", ""], None, "--api-key is empty"),
        ([], " , ", "TOKENFORM_API_KEYS is empty"),
        ([], "", "TOKENFORM_API_KEYS is empty"),
        (["--api-key", "a"], ",", "TOKENFORM_API_KEYS is empty"),
    ],
)
def test_an_empty_key_does_not_open_the_server(monkeypatch, options, environment, said):
    if environment is not None:
        monkeypatch.setenv("TOKENFORM_API_KEYS", environment)
    wrong = CliRunner().invoke(app, ["serve", *options])
    assert wrong.exit_code == 2 and said in " ".join(wrong.output.split())


def test_what_it_can_not_serve_is_said(tmp_path):
    wrong = CliRunner().invoke(app, ["serve", "./no/such/model"])
    assert wrong.exit_code == 2 and "there is no model" in wrong.output
    assert CliRunner().invoke(app, ["serve", "--port", "99999"]).exit_code == 2
    for options, said in (
        (["--length", "9"], "length"),
        (["builtin:diffusion", "--device", "cpu"], "device"),
    ):
        wrong = CliRunner().invoke(app, ["serve", *options])
        assert wrong.exit_code == 2 and said in wrong.output
    for option in ("--api-key-file", "--chat-template"):
        absent = CliRunner().invoke(app, ["serve", option, "./no/such/file"])
        assert absent.exit_code == 2 and "can't be read" in absent.output
    template = tmp_path / "template.jinja"
    template.write_text("{{ no_such_thing.at.all }}")
    broken = CliRunner().invoke(app, ["serve", "--chat-template", str(template)])
    assert broken.exit_code == 2 and "chat template" in broken.output
