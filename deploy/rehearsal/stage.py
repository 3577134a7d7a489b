"""A server that is up by the page's two commands, and who asks it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shlex
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE, IMAGE = ROOT / "docs" / "guides" / "operating.md", ROOT / "deploy" / "Dockerfile"
CHAT = "/v1/chat/completions"
SHORT = {"messages": [{"role": "user", "content": "a word"}], "guided_regex": "[a-z]{4}"}
LONG = {**SHORT, "guided_regex": "[a-z ]{400}", "temperature": 1.0, "max_tokens": 420}
PATIENCE = 300.0
"""Seconds that one answer may take on a busy machine; a server that hangs takes longer."""


class NotHere(Exception):
    """A part that this machine has not what it takes for."""


def hold(held: bool, what: str) -> None:
    """Raises where a promise is broken."""
    if not held:
        raise AssertionError(what)


class Caller:
    """A client of one address.

    Args:
        port: on 127.0.0.1.
        key: sent with each request; None: none.
        certificate: a file, for TLS; the server's name is localhost.
    """

    def __init__(self, port: int, key: str | None, certificate: Path | None = None) -> None:
        self.port, self.key, self.certificate = port, key, certificate

    def open(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[http.client.HTTPConnection, Any]:
        if self.certificate is None:
            wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        else:
            trusted = ssl.create_default_context(cafile=str(self.certificate))
            wire = http.client.HTTPSConnection("localhost", self.port, timeout=PATIENCE, context=trusted)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.key is not None:
            sent["Authorization"] = f"Bearer {self.key}"
        if body is not None:
            sent["Content-Type"] = "application/json"
        wire.request(method, path, None if body is None else json.dumps(body), sent)
        return wire, wire.getresponse()

    def ask(self, body: Any = None, path: str = CHAT, **headers: str) -> tuple[int, bytes, Any]:
        """Status, body, headers."""
        wire, answer = self.open("GET" if body is None else "POST", path, body, **headers)
        with contextlib.closing(wire):
            return answer.status, answer.read(), answer.headers

    def stream(self, body: Any, begun: Callable[[], None]) -> str:
        """ "whole", "broken", or the status of a refusal; `begun` is called at the first text."""
        told, whole = False, False
        try:
            wire, answer = self.open("POST", CHAT, {**body, "stream": True})
            with contextlib.closing(wire):
                if answer.status != 200:
                    return str(answer.status)
                for line in answer:
                    if not told and b'"content":"' in line:
                        told = True
                        begun()
                    whole |= line.strip() == b"data: [DONE]"
        except (OSError, http.client.HTTPException):
            return "broken"
        return "whole" if whole else "broken"


class Stage:
    """A folder with the page's files, and the server of its commands.

    Args:
        folder: for keys, logs and settings.
        command: words that start `tokenform`.
        model: a model's folder; "": the built-in model.
    """

    def __init__(self, folder: Path, command: list[str], model: str = "") -> None:
        self.folder, self.port = folder, free_port()
        self.log = folder / "log"
        self.process: subprocess.Popen[bytes] | None = None
        self.first, self.second = commands(model, self.port)
        (folder / "bin").mkdir()
        start = folder / "bin" / "tokenform"
        start.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        start.chmod(0o755)
        self.shell(self.first)

    def environment(self, **more: str) -> dict[str, str]:
        return {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", **more}

    def shell(self, line: str) -> None:
        subprocess.run(["bash", "-c", line], cwd=self.folder, env=self.environment(), check=True)

    @property
    def key(self) -> str:
        return (self.folder / "keys").read_text().split()[1]

    def caller(self) -> Caller:
        return Caller(self.port, self.key)

    def start(self, command: str = "", log: Path | None = None, **more: Any) -> None:
        """Runs the page's second command until it answers."""
        environment = self.environment(**more.pop("environment", {}))
        with (log or self.log).open("a") as out:
            line = ["bash", "-c", f"exec {command or self.second}"]
            self.process = subprocess.Popen(line, cwd=self.folder, env=environment, stderr=out, **more)
        until(lambda: self.alive() and answers(self.port), "the server answers")

    def alive(self) -> bool:
        hold(self.process is not None and self.process.poll() is None, f"the server ended: {self.tail()}")
        return True

    def tail(self) -> str:
        return self.log.read_text()[-2000:] if self.log.exists() else ""

    def lines(self) -> list[dict[str, Any]]:
        """Lines of requests."""
        told = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in told if "request" in line]

    def end(self, number: int = signal.SIGTERM) -> int:
        """The exit status after a signal."""
        assert self.process is not None
        self.process.send_signal(number)
        status: int = self.process.wait(60)
        return status


def commands(model: str, port: int) -> tuple[str, str]:
    """The page's two commands, for this model and port."""
    first, second = block("echo ").strip().splitlines()
    return first, f"{second.replace('./my-model', shlex.quote(model) if model else '')} --port {port}"


def block(begins: str) -> str:
    """The page's commands or settings that begin so."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return str(next(one for one in blocks if one.startswith(begins)))


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def answers(port: int) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        return Caller(port, None).ask(path="/health")[0] == 200
    return False


def until(so: Callable[[], Any], what: str, seconds: float = 180.0) -> None:
    end = time.monotonic() + seconds
    while not so():
        hold(time.monotonic() < end, f"{what}: not within {seconds:.0f} s")
        time.sleep(0.05)


class Streams:
    """Long texts that are under way together; `start` returns when each has its first words."""

    def __init__(self, caller: Caller, count: int, body: Any = LONG) -> None:
        self.ends: list[str] = []
        begun = threading.Semaphore(0)

        def one(number: int) -> None:
            told = caller.stream({**body, "seed": number}, begun.release)
            self.ends.append(told)
            begun.release()

        self._threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
        for thread in self._threads:
            thread.start()
        for _ in range(count):
            hold(begun.acquire(timeout=PATIENCE), "the streams begin")

    def join(self) -> Counter[str]:
        for thread in self._threads:
            thread.join(PATIENCE)
        hold(len(self.ends) == len(self._threads), "every stream ends")
        return Counter(self.ends)


def by_status(stage: Stage) -> dict[tuple[str, str], float]:
    """Requests by endpoint and status, as /metrics tells them."""
    _, body, _ = stage.caller().ask(path="/metrics")
    found = re.findall(rb'tokenform_requests_total\{endpoint="(\w+)",status="(\d+)"\} (\S+)', body)
    return Counter({(name.decode(), status.decode()): float(value) for name, status, value in found})
