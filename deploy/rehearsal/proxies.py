"""TLS and keys behind nginx and Caddy."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator

from .stage import (
    SHORT,
    Caller,
    NotHere,
    Stage,
    Streams,
    block,
    free_port,
    hold,
    until,
)


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


def _logged(stage: Stage, request: str) -> bool:
    """Whether a request is the log's last line within five seconds: it is written after the answer."""
    for _ in range(50):
        if stage.lines()[-1]["request"] == request:
            return True
        time.sleep(0.1)
    return False


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
    hold(_logged(stage, headers["X-Request-Id"]), "the log has the answer's id")
    own, other = f"https://localhost:{caller.port}", "https://evil.example"
    site = "https://localhost" if kind == "nginx" else own
    for origin, wanted in ((site, 200), (other, 403)):  # nginx's $host is without the port
        hold(caller.ask(SHORT, Origin=origin)[0] == wanted, f"a page of {origin}: {wanted}")
    streams = Streams(caller, 1)
    hold(not streams.ends, "the first words come before the last are written")
    hold(streams.join() == {"whole": 1}, "a stream is whole")
