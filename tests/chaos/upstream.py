"""A small MCP server over stdio: `upstream.py NAME`. Standard library only, and little of that.

Its one tool says what it is told; what begins with `drip` it says byte by byte.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

DRIP = "drip"
_BETWEEN_BYTES = 0.002
_TOOL: dict[str, Any] = {
    "name": "get_echo",
    "description": "Says what it is told.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": sys.argv[1], "version": "1"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [_TOOL]}
        case "tools/call":
            return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
        case _:
            return None


def answer(message: dict[str, Any]) -> bytes:
    found = result(message["method"], message.get("params") or {})
    said = {"result": found}
    if found is None:
        said = {"error": {"code": -32601, "message": "Method not found"}}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}).encode()


def drips(message: dict[str, Any]) -> bool:
    match message:
        case {"params": {"arguments": {"text": str(text)}}}:
            return text.startswith(DRIP)
        case _:
            return False


def say(message: dict[str, Any]) -> None:
    data = answer(message) + b"\n"
    for piece in [data[at : at + 1] for at in range(len(data))] if drips(message) else [data]:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        if len(piece) == 1:
            time.sleep(_BETWEEN_BYTES)


def by_stdio() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            say(message)


if __name__ == "__main__":
    by_stdio()
