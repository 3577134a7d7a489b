"""An app in a thread, at a port of the system's choice."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import uvicorn


@contextlib.contextmanager
def running(app, server=uvicorn.Server, **options):
    """The base URL of an app that runs in a thread; `options` are of `uvicorn.Config`."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = server(uvicorn.Config(app, log_level="warning", lifespan="on", **options))
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
