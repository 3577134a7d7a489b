"""A server of the built-in model on a port of the system's choice, for the whole module."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

pytest.importorskip("starlette", reason="the server needs tokenform[serve]")
uvicorn = pytest.importorskip("uvicorn", reason="the server needs tokenform[serve]")
httpx = pytest.importorskip("httpx", reason="the server's tests need httpx")

from tokenform.server import Engine, create_app  # noqa: E402


@contextlib.contextmanager
def running(app):
    """The base URL of an app that runs in a thread."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()


@pytest.fixture(scope="session")
def engine():
    return Engine(batch_size=8)


@pytest.fixture(scope="session")
def url(engine):
    with running(create_app(engine, playground=False)) as base:
        yield base


@pytest.fixture
def client(url):
    with httpx.Client(base_url=url, timeout=60) as client:
        yield client
