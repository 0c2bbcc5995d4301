"""Somebody on the loopback who is told of what happens to tasks."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any

from tests.faults.daemon import SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping


@dataclass(frozen=True, slots=True)
class Notice:
    """What was told, and how."""

    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(slots=True)
class Receiver:
    """What came, in order. The first `refusals` are answered with 503."""

    url: str
    came: Queue[Notice] = field(default_factory=Queue[Notice])
    refusals: int = 0

    def notices(self, path: str) -> Generator[Notice]:
        """Give what comes to this path, and wait for more."""
        while True:
            notice = self.came.get(timeout=SECONDS)
            if notice.path == path:
                yield notice


@contextmanager
def receiver() -> Generator[Receiver]:
    """Listen for as long as it is held."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            refused = found.refusals > 0
            found.refusals -= refused
            if not refused:
                found.came.put(Notice(self.path, headers, json.loads(content)))
            self.send_response(503 if refused else 204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Receiver(f"http://127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
