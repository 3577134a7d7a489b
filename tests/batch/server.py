"""A server of OpenAI's protocol for tests, on this machine: it answers as a script says, and keeps what was
asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any]
"""HTTP status, and a text (or, for errors, the message)."""


@contextmanager
def serving(answer: Callable[[dict[str, Any], int], Answer]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yields the URL and the list of requests; `answer` gets a request's body and how many came before."""
    asked: list[dict[str, Any]] = []
    guard = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(
                200,
                {"object": "list", "data": [{"id": "m", "object": "model", "created": 0, "owned_by": ""}]},
            )

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with guard:
                number = len(asked)
                asked.append(body)
            status, said = answer(body, number)
            if status != 200:
                self._send(status, {"error": {"message": said, "type": "x", "param": None, "code": None}})
                return
            text, reason = said if isinstance(said, tuple) else (said, "stop")
            message = {"role": "assistant", "content": text}
            self._send(200, {
                "id": "c", "object": "chat.completion", "created": 0, "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
                "usage": {"prompt_tokens": 1, "completion_tokens": len(text), "total_tokens": len(text)},
            })  # fmt: skip

        def _send(self, status: int, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Retry-After-Ms", "1")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
