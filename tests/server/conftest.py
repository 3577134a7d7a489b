"""A server of the built-in model on a port of the system's choice, for the whole module."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the server needs tokenform[serve]")
pytest.importorskip("uvicorn", reason="the server needs tokenform[serve]")
httpx = pytest.importorskip("httpx", reason="the server's tests need httpx")

from tokenform.server import Engine, create_app  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
from running import running  # noqa: E402


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
