"""`tokenform serve` from a shell: it says where it listens, answers, and ends when it is told to."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from tokenform.cli import app

SRC = Path(__file__).parents[2] / "src"


def test_the_command_serves_and_ends():
    environment = os.environ | {"PYTHONPATH": str(SRC), "TOKENFORM_API_KEYS": "secret-7"}
    command = [sys.executable, "-m", "tokenform", "serve", "--port", "0", "--name", "small"]
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
        finally:
            process.send_signal(signal.SIGINT)
        said += process.stderr.readlines()
        assert process.wait(60) in (0, -signal.SIGINT)
    assert "secret-7" not in "".join(said) and "Finished server process" in "".join(said)


def test_what_it_can_not_serve_is_said():
    wrong = CliRunner().invoke(app, ["serve", "./no/such/model"])
    assert wrong.exit_code == 2 and "there is no model" in wrong.output
    assert CliRunner().invoke(app, ["serve", "--port", "99999"]).exit_code == 2
