"""A server over stdio with one tool, which says that it has begun and waits to be told to end.

`later.py FIFO`: each line that is written into it ends the call that it names.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from threading import Thread
from typing import Any

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
TOOL: dict[str, Any] = {
    "name": "get_later",
    "description": "Gets something, later.",
    "inputSchema": SCHEMA,
}
GREETING: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "later", "version": "1"},
}
ANSWERS: dict[str, Any] = {"initialize": GREETING, "ping": {}, "tools/list": {"tools": [TOOL]}}
waiting: dict[str, object] = {}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def release(fifo: Path) -> None:
    while True:
        for name in fifo.read_text().split():
            result = {"content": [{"type": "text", "text": name}]}
            send({"id": waiting.pop(name), "result": result})


def take(message: dict[str, Any]) -> None:
    method, params = message.get("method"), message.get("params", {})
    if method == "tools/call":
        waiting[params["arguments"]["name"]] = message["id"]
        told = {"progressToken": params["_meta"]["progressToken"], "progress": 1}
        send({"method": "notifications/progress", "params": told})
    elif "id" in message:
        known = ANSWERS.get(str(method))
        error = {"code": -32601, "message": "Method not found"}
        send({"id": message["id"], **({"error": error} if known is None else {"result": known})})


if __name__ == "__main__":
    Thread(target=release, args=(Path(sys.argv[1]),), daemon=True).start()
    for line in sys.stdin:
        take(json.loads(line))
