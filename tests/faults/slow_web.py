"""A server over HTTP whose tool `wait` never answers, and that notices who hangs up."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, ClassVar, cast

from tests.faults.slow_peer import HELLO, TOOLS

if TYPE_CHECKING:
    from collections.abc import Generator


class SlowWeb(ThreadingHTTPServer):
    """It serves on loopback."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked = Event()
        self.left = Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mcp"


class _Handler(BaseHTTPRequestHandler):
    results: ClassVar[dict[str, Any]] = {
        "initialize": HELLO,
        "tools/list": {"tools": TOOLS},
        "ping": {},
    }

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = message.get("method")
        if method == "tools/call":
            web = cast("SlowWeb", self.server)
            web.asked.set()
            self.connection.recv(1)
            web.left.set()
            self.close_connection = True
        elif "id" not in message:
            self._answer(202, b"")
        elif method in self.results:
            body = {"jsonrpc": "2.0", "id": message["id"], "result": self.results[method]}
            self._answer(200, json.dumps(body).encode())
        else:
            error = {"code": -32601, "message": "no such method"}
            body = {"jsonrpc": "2.0", "id": message["id"], "error": error}
            self._answer(200, json.dumps(body).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


@contextmanager
def slow_web() -> Generator[SlowWeb]:
    """Serve."""
    with SlowWeb() as web:
        thread = Thread(target=web.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield web
        finally:
            web.shutdown()
            thread.join()
