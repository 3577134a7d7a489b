"""Rehearses what docs/guides/operating.md promises of a server, with that page's own commands.

    python deploy/rehearse.py                                # the `tokenform` of this PATH
    python deploy/rehearse.py --tokenform /opt/tokenform/bin/tokenform --only proxies,killed
    .ci/operate                                              # the wheel, in a fresh Debian

Purpose: two commands bring a server up; behind nginx and Caddy it speaks TLS; a key is taken back, the
process is killed under load, told to end, left without disk and without memory; each time what was promised
is looked for.
Invariant: commands and settings are read from the page and the image's file, and only addresses, ports and
paths are put in their place.  Nothing but Python's own library is needed: a wheel alone may be there.
What can't be tried here (no nginx, no root for a user of its own) is said and is not counted as held.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
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


@contextlib.contextmanager
def proxy(stage: Stage, kind: str) -> Iterator[Caller]:
    """nginx or Caddy with the page's settings and a certificate of its own making."""
    program = shutil.which(kind, path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None or shutil.which("openssl") is None:
        raise NotHere(f"no {kind}, or no openssl")
    certificate, secret, port = stage.folder / "models.pem", stage.folder / "models.key", free_port()
    if not certificate.exists():
        asked = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
        asked += f" -addext subjectAltName=DNS:localhost -out {certificate} -keyout {secret}"
        subprocess.run(asked.split(), check=True, capture_output=True)
    if kind == "nginx":
        written = block("server {")
        for old, new in (
            ("listen 443", f"listen 127.0.0.1:{port}"),
            ("models.example.org", "localhost"),
            ("/etc/ssl/models.pem", str(certificate)),
            ("/etc/ssl/models.key", str(secret)),
            ("127.0.0.1:8000", f"127.0.0.1:{stage.port}"),
        ):
            hold(old in written, f"the page's settings of nginx have {old!r}")
            written = written.replace(old, new)
        bodies = "".join(f"{one}_temp_path {stage.folder}/{one};\n" for one in NGINX_FOLDERS)
        user = "user root;\n" if os.geteuid() == 0 else ""
        head = f"{user}pid {stage.folder}/nginx.pid;\nevents {{}}\n"
        text = f"{head}http {{\naccess_log off;\n{bodies}{written}}}\n"
        command = [program, "-g", "daemon off;", "-e", f"{stage.folder}/nginx.log", "-c"]
    else:
        written = block("models.example.org {")
        written = written.replace(
            "models.example.org {", f"https://localhost:{port} {{\n    tls {certificate} {secret}"
        )
        written = written.replace("127.0.0.1:8000", f"127.0.0.1:{stage.port}")
        text = (
            "{\n    admin off\n    auto_https off\n    storage file_system "
            + f"{stage.folder}/caddy\n}}\n{written}"
        )
        command = [program, "run", "--adapter", "caddyfile", "--config"]
    file = stage.folder / f"{kind}.conf"
    file.write_text(text)
    with (stage.folder / f"{kind}.out").open("w") as out:
        process = subprocess.Popen([*command, str(file)], stdout=out, stderr=out)
    try:
        caller = Caller(port, stage.key, certificate)

        def ready() -> bool:
            hold(
                process.poll() is None, f"{kind} ended: {(stage.folder / f'{kind}.out').read_text()[-1500:]}"
            )
            with contextlib.suppress(ConnectionError):
                return caller.ask(path="/health")[0] == 200
            return False

        until(ready, f"{kind} answers")
        yield caller
    finally:
        process.terminate()
        process.wait(30)


NGINX_FOLDERS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def check_proxies(stage: Stage) -> Iterator[str]:
    """TLS and keys, by each proxy."""
    stage.start()
    hold(oct((stage.folder / "keys").stat().st_mode)[-3:] == "600", "the keys are the owner's alone")
    yield f"up by two commands: {stage.first} ; {stage.second}"
    for kind in ("nginx", "caddy"):
        try:
            with proxy(stage, kind) as caller:
                _behind(stage, caller, kind)
                yield f"{kind}: TLS, keys, ids, its own pages' requests; streams come as they are written"
        except NotHere as error:
            yield f"not tried: {error}"
    hold(stage.key not in stage.log.read_text(), "the log has no key")
    hold(stage.end() in (0, -signal.SIGTERM), "it ends when it is told to")


def _behind(stage: Stage, caller: Caller, kind: str) -> None:
    nobody = Caller(caller.port, None, caller.certificate)
    hold(nobody.ask(SHORT)[0] == 401, "without a key: 401")
    hold(nobody.ask(path="/metrics")[0] == 401, "/metrics asks for a key")
    for path in ("/health", "/version", "/docs", "/openapi.json"):
        hold(nobody.ask(path=path)[0] == 200, f"{path} asks for none")
    hold(caller.ask(path="/playground/")[0] == 404, "with keys there is no playground")
    status, body, headers = caller.ask(SHORT)
    text = json.loads(body)["choices"][0]["message"]["content"] if status == 200 else ""
    hold(re.fullmatch("[a-z]{4}", text) is not None, f"an answer of the form: {status} {body[:300]!r}")
    hold(stage.lines()[-1]["request"] == headers["X-Request-Id"], "the log has the answer's id")
    own, other = f"https://localhost:{caller.port}", "https://evil.example"
    site = "https://localhost" if kind == "nginx" else own
    for origin, wanted in ((site, 200), (other, 403)):  # nginx's $host is without the port
        hold(caller.ask(SHORT, Origin=origin)[0] == wanted, f"a page of {origin}: {wanted}")
    streams = Streams(caller, 1)
    hold(not streams.ends, "the first words come before the last are written")
    hold(streams.join() == {"whole": 1}, "a stream is whole")


def check_reload(stage: Stage) -> Iterator[str]:
    """Keys given and taken back while texts are written."""
    stage.start()
    assert stage.process is not None
    keys, old = stage.folder / "keys", stage.caller()
    before = keys.stat()
    streams = Streams(old, 4)
    keys.write_text("team " + "0" * len(old.key or "") + "\n")
    os.utime(keys, ns=(before.st_atime_ns, before.st_mtime_ns))  # its date and size tell nothing
    stage.process.send_signal(signal.SIGHUP)
    hold(stage.caller().ask(SHORT)[0] == 200, "the new key may ask")
    hold(old.ask(SHORT)[0] == 401, "the old one may not")
    hold(streams.join() == {"whole": 4}, "texts under way are finished")
    with keys.open("a") as more:
        more.write("other k-other\n")
    hold(Caller(stage.port, "k-other").ask(SHORT)[0] == 200, "a key that is added may ask, without a signal")
    keys.write_text("team\n")
    hold(Caller(stage.port, "k-other").ask(SHORT)[0] == 200, "a broken file leaves the keys as they were")
    hold("stay as they were" in stage.log.read_text(), "and the log says so")
    stage.end()
    stage.shell(stage.first)
    yield "SIGHUP: the new key asks, the old one does not, 4 texts under way were finished"
    yield "a broken file of keys changes nothing"


def check_killed(stage: Stage) -> Iterator[str]:
    """kill -9 under load; the same command again."""
    stage.start()
    there = {path.name for path in stage.folder.iterdir()}
    with contextlib.ExitStack() as behind:
        caller, way = stage.caller(), "no proxy"
        with contextlib.suppress(NotHere):
            caller, way = behind.enter_context(proxy(stage, "nginx")), "nginx"
            there = {path.name for path in stage.folder.iterdir()}
        streams = Streams(caller, 16)
        stage.end(signal.SIGKILL)
        ends = streams.join()
        hold(ends["broken"] >= 8 and not set(ends) - {"broken", "whole"}, f"who lost a text knows it: {ends}")
        if way == "nginx":
            hold(caller.ask(SHORT)[0] == 502, "while it is away: 502")
        stage.start()
        hold(caller.ask(SHORT)[0] == 200, "the same command serves again")
        hold({path.name for path in stage.folder.iterdir()} == there, "it keeps nothing on disk")
    stage.end()
    told = f"{ends['broken']} broken and known to be, {ends['whole']} whole"
    yield f"kill -9 under 16 streams ({way}): {told}; serves again"


def check_ended(stage: Stage) -> Iterator[str]:
    """SIGTERM under load: what was begun is finished."""
    stage.start()
    assert stage.process is not None
    kept, answer = stage.caller().open("GET", "/health")  # a connection that stays open
    answer.read()
    streams = Streams(stage.caller(), 8)
    stage.process.terminate()
    time.sleep(0.5)
    try:
        kept.request(
            "POST",
            CHAT,
            json.dumps(SHORT),
            {"Authorization": f"Bearer {stage.key}", "Content-Type": "application/json"},
        )
        refused = kept.getresponse()
        later = f"{refused.status}, Retry-After: {refused.headers['Retry-After']}"
        hold(
            refused.status == 503 and refused.headers["Retry-After"] is not None,
            f"nothing more is taken: {later}",
        )
    except (OSError, http.client.HTTPException):
        later = "no connection"
    ends = streams.join()
    status = stage.process.wait(60)
    hold(ends == {"whole": 8}, f"what was begun is finished: {ends}")
    hold(status in (0, -signal.SIGTERM), f"it ends well: {status}")
    yield f"SIGTERM under 8 streams: 8 whole, a new request: {later}; exit {status}"


def check_disk(stage: Stage) -> Iterator[str]:
    """The log, the home and the folder for temporary files on a disk that is full."""
    place, mounted = stage.folder / "small", False
    place.mkdir()
    if os.geteuid() == 0:
        small = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
        mounted = subprocess.run(small, capture_output=True).returncode == 0
    log = place / "log" if mounted else Path("/dev/full")
    try:
        home = {"environment": {"HOME": str(place), "TMPDIR": str(place)}} if mounted else {}
        stage.start(log=log, **home)
        if mounted:
            with contextlib.suppress(OSError), (place / "rest").open("wb", buffering=0) as rest:
                while rest.write(b"x" * 4096):
                    pass
        asked = [stage.caller().ask(SHORT)[0] for _ in range(40)]
        hold(asked == [200] * 40, f"answers are as before: {Counter(asked)}")
        ends = Streams(stage.caller(), 4).join()
        hold(ends == {"whole": 4}, f"streams, too: {ends}")
        hold(_requests(stage)["chat", "200"] == 44, "the figures count what the log could not hold")
        if mounted:
            (place / "rest").unlink()
            _, _, headers = stage.caller().ask(SHORT)
            hold(headers["X-Request-Id"] in log.read_text(), "the log goes on where there is room again")
        stage.end()
    finally:
        if mounted:
            subprocess.run(["umount", str(place)], check=True)
    disk = "tmpfs of 64 KiB" if mounted else "/dev/full"
    yield f"a full disk ({disk}): 44 of 44 answers, counted{'; the log goes on after' if mounted else ''}"


def check_memory(stage: Stage) -> Iterator[str]:
    """Nothing more to be had than `room`, under load; then as before."""
    if sys.platform != "linux":
        raise NotHere("limits of another process are Linux's")
    for room in (1500, 400, 100):
        stage.start()
        assert stage.process is not None
        number = stage.process.pid
        hold(stage.caller().ask(SHORT)[0] == 200, "it serves")
        size = int(re.search(r"VmSize:\s+(\d+)", Path(f"/proc/{number}/status").read_text())[1])  # type: ignore[index]
        before = resource.prlimit(number, resource.RLIMIT_AS)  # type: ignore[attr-defined]
        limit = (size << 10) + (room << 20)
        resource.prlimit(number, resource.RLIMIT_AS, (limit, before[1]))  # type: ignore[attr-defined]
        ends = _starved(stage)
        lived = stage.process.poll() is None
        unknown = set(ends) - {"200", "400", "503", "broken"}
        hold(not unknown, f"answers that say what is: {dict(ends)}")
        hold(not lived or not ends["broken"], f"who is not answered was not served: {dict(ends)}")
        if lived:
            resource.prlimit(number, resource.RLIMIT_AS, before)  # type: ignore[attr-defined]
        else:
            stage.start()
        hold(stage.caller().ask(SHORT)[0] == 200, "it serves as before")
        stage.end()
        after = "the limit lifted, it serves" if lived else "it ended, and serves when started again"
        yield f"{room} MiB left, 48 requests at once: {dict(sorted(ends.items()))}; {after}"


def _starved(stage: Stage) -> Counter[str]:
    """Ends of requests that want memory."""
    fields = {
        f"k{n}": {"type": "string", "pattern": f"^[a-{'bcdefghijk'[n % 10]}]{{3,{n}}}$"} for n in range(9, 90)
    }
    bodies = [
        {**SHORT, "guided_regex": "[a-z ]{300}", "max_tokens": 320, "temperature": 1.0, "n": 4},
        {
            "messages": SHORT["messages"],
            "guided_json": {"type": "object", "properties": fields},
            "max_tokens": 200,
        },
        {**SHORT, "messages": [{"role": "user", "content": "many words " * 80}]},
        {**SHORT, "messages": [{"role": "user", "content": "x" * 300_000}]},
    ]
    ends: list[str] = []

    def one(number: int) -> None:
        try:
            ends.append(str(stage.caller().ask({**bodies[number % 4], "seed": number})[0]))
        except (OSError, http.client.HTTPException) as error:
            ends.append("hung" if isinstance(error, TimeoutError) else "broken")

    threads = [threading.Thread(target=one, args=(number,)) for number in range(48)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Counter(ends)


def check_image(stage: Stage) -> Iterator[str]:
    """The image's user, environment, command and health check, without the image."""
    text = IMAGE.read_text(encoding="utf-8").replace("\\\n", " ")
    if os.geteuid() != 0:
        raise NotHere("the image's user needs root")
    entry = json.loads(re.search(r"ENTRYPOINT (\[.*\])", text)[1])  # type: ignore[index]
    health = json.loads(re.search(r"HEALTHCHECK .*?CMD (\[.*\])", text)[1])  # type: ignore[index]
    user = int(re.search(r"--uid (\d+)", text)[1])  # type: ignore[index]
    variables = dict(one.split("=") for one in re.search(r"\nENV (HF\S+.*)", text)[1].split())  # type: ignore[index]
    stage.folder.chmod(0o755)
    os.chown(stage.folder / "keys", user, user)
    asked = subprocess.run(
        [str(stage.folder / "bin" / "tokenform"), "--version"], user=user, capture_output=True
    )
    if asked.returncode:
        raise NotHere("the command is not for other users")
    port = str(stage.port)
    command = shlex.join([port if word == "8000" else word for word in entry]) + " --api-key-file keys"
    bare = {"HOME": "/nonexistent", **variables}
    stage.start(command, user=user, group=user, environment=bare)
    check = [word.replace("8000", port) for word in health]
    hold(subprocess.run([sys.executable, *check[1:]]).returncode == 0, "the health check finds it well")
    hold(stage.caller().ask(SHORT)[0] == 200, "it serves")
    stage.end()
    hold(subprocess.run([sys.executable, *check[1:]], capture_output=True).returncode != 0, "... and gone")
    yield f"the image's command as user {user}, without a home: serves; the health check tells well from gone"


def check_counts(stage: Stage) -> Iterator[str]:
    """Lines of the log and figures add up to the requests."""
    stage.start()
    began, caller = len(stage.lines()), stage.caller()
    hostile = [
        {"guided_regex": "("},
        {"guided_jsn": {}},
        {**SHORT, "max_tokens": 1},
        {**SHORT, "model": "none"},
    ]
    statuses = [caller.ask({**SHORT, **(hostile[n % 4] if n % 10 == 0 else {})})[0] for n in range(60)]
    statuses += [Caller(stage.port, "k-none").ask(SHORT)[0]]
    asked = Counter(str(one) for one in statuses)
    told = Counter(str(line["status"]) for line in stage.lines()[began:])
    counted = Counter({status: int(n) for (name, status), n in _requests(stage).items() if name == "chat"})
    hold(asked == told == counted, f"asked {asked}, told {told}, counted {counted}")
    stage.end()
    yield f"61 requests, a tenth hostile: {dict(asked)} asked, told in the log, and counted"


def _requests(stage: Stage) -> dict[tuple[str, str], float]:
    _, body, _ = stage.caller().ask(path="/metrics")
    found = re.findall(rb'tokenform_requests_total\{endpoint="(\w+)",status="(\d+)"\} (\S+)', body)
    return Counter({(name.decode(), status.decode()): float(value) for name, status, value in found})


CHECKS = {
    "proxies": check_proxies,
    "counts": check_counts,
    "reload": check_reload,
    "killed": check_killed,
    "ended": check_ended,
    "disk": check_disk,
    "memory": check_memory,
    "image": check_image,
}


def rehearse(names: list[str], command: list[str], model: str = "") -> Iterator[tuple[str, str, bool]]:
    """Name, what was found, and whether it held."""
    for name in names:
        folder = Path(tempfile.mkdtemp(prefix="tokenform-"))
        stage = Stage(folder, command, model)
        try:
            for told in CHECKS[name](stage):
                yield name, told, True
        except NotHere as error:
            yield name, f"not tried: {error}", True
        except AssertionError as error:
            yield name, str(error), False
        finally:
            if stage.process is not None and stage.process.poll() is None:
                stage.process.kill()
                stage.process.wait()
            shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokenform", default="tokenform", help="the command, as a shell reads it")
    parser.add_argument("--model", default="", help="a model's folder; default: the built-in model")
    parser.add_argument("--only", default=",".join(CHECKS), help=f"of {', '.join(CHECKS)}")
    options = parser.parse_args()
    command = shlex.split(options.tokenform)
    command[0] = shutil.which(command[0]) or command[0]
    good = True
    for name, told, held in rehearse(options.only.split(","), command, options.model):
        print(f"{'held' if held else 'BROKEN':6} {name:8} {told}", flush=True)
        good &= held
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
