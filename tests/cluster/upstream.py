"""A small MCP server over stdio whose one tool has an effect: `upstream.py FILE` adds a line."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_TOOL: dict[str, Any] = {
    "name": "add_line",
    "description": "Adds a line to a file.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
}


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "effects", "version": "1"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [_TOOL]}
        case "tools/call":
            line = params["arguments"]["text"] + "\n"
            handle = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(handle, line.encode())
            os.close(handle)
            return {"content": [{"type": "text", "text": "added"}]}
        case _:
            return None


def answer(message: dict[str, Any]) -> dict[str, Any]:
    found = result(message["method"], message.get("params") or {})
    if found is None:
        return {"error": {"code": -32601, "message": "Method not found"}}
    return {"result": found}


for received in sys.stdin:
    message: dict[str, Any] = json.loads(received)
    if "id" in message and "method" in message:
        said = {"jsonrpc": "2.0", "id": message["id"], **answer(message)}
        print(json.dumps(said), flush=True)  # noqa: T201 - its output
