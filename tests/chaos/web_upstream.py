"""The same server over HTTP, on loopback: `web_upstream.py NAME PORT`; it prints its port."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from upstream import answer  # its own folder is where a program is looked for


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        data = answer(message) if "id" in message else b""
        self.send_response(200 if data else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def handle(self) -> None:
        with suppress(ConnectionError):  # whoever asked may have gone
            super().handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), _Handler)
    print(server.server_address[1], flush=True)  # noqa: T201 - whoever started it reads this
    server.serve_forever()


if __name__ == "__main__":
    main()
