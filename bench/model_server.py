"""A model on loopback for `bench models`: it wants one call, and then answers. Prints its port."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def _events(*deltas: dict[str, Any], stop: str) -> bytes:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
    chunks.append({"choices": [], "usage": usage})
    lines = [f"data: {json.dumps({**head, **chunk})}\n\n" for chunk in chunks]
    return "".join((*lines, "data: [DONE]\n\n")).encode()


_FUNCTION = {"name": "system_time", "arguments": "{}"}
_CALL = {"index": 0, "id": "call", "type": "function", "function": _FUNCTION}
WANTS = _events({"role": "assistant", "tool_calls": [_CALL]}, stop="tool_calls")
WORDS = [{"content": f"word {number} "} for number in range(10)]
SAYS = _events({"role": "assistant", "content": ""}, *WORDS, stop="stop")


class Handler(BaseHTTPRequestHandler):
    """Answers by what was said last."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = SAYS if body["messages"][-1]["role"] == "tool" else WANTS
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called
        """Say nothing."""
        del format, args


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    sys.exit(server.serve_forever())
