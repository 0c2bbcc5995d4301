"""Somebody who speaks the first dialect of A2A, and does with what it is told as it likes."""

from __future__ import annotations

import http.client
import json
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

from tests.faults.daemon import SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


@dataclass(slots=True)
class Foreign:
    """What it does with a message: `answer` is handed its metadata, and says what to say."""

    url: str
    heard: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    answer: Callable[[dict[str, Any]], str] = lambda _: "nothing"

    def asks(
        self, address: tuple[str, int], key: str, metadata: dict[str, Any], headers: dict[str, str]
    ) -> str:
        """Send a message of its own to the agent of a node, and read what came of it."""
        said = {"role": "user", "parts": [{"type": "text", "text": "hello"}]}
        params = {"message": said, "metadata": metadata}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": params}
        sent = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **headers}
        with closing(http.client.HTTPConnection(*address, timeout=SECONDS)) as connection:
            connection.request("POST", "/a2a", json.dumps(body), sent)
            return connection.getresponse().read().decode()


@contextmanager
def foreign() -> Generator[Foreign]:
    """Have it listen."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say(
                {
                    "name": "stranger",
                    "description": "Answers.",
                    "url": found.url,
                    "version": "0.1.0",
                    "capabilities": {},
                    "skills": [],
                    "defaultInputModes": ["text"],
                    "defaultOutputModes": ["text"],
                }
            )

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            params = asked["params"]
            metadata = params.get("metadata", {})
            found.heard.append(metadata)
            text = found.answer(metadata)
            said = {"role": "agent", "parts": [{"type": "text", "text": text}]}
            task = {"id": "t1", "sessionId": "s1", "status": "completed", "messages": [said]}
            self._say({"jsonrpc": "2.0", "id": asked["id"], "result": {**task, "artifacts": []}})

        def _say(self, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's word
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Foreign(url=f"http://127.0.0.1:{server.server_port}/")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
