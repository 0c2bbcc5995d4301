"""An MCP server over stdio for the figures: `echo`, `big` (megabytes in one line), `hang`.

`python -m bench.mcp_stdio hang` never answers anything.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import orjson

_SCHEMA = {"type": "object"}
_READ_ONLY = {"readOnlyHint": True}


def _tools() -> list[dict[str, Any]]:
    if sys.argv[1:2] == ["many"]:
        return [_described(number) for number in range(int(sys.argv[2]))]
    return [
        {"name": name, "inputSchema": _SCHEMA, "annotations": _READ_ONLY}
        for name in ("get_echo", "get_big", "get_nothing")
    ]


def _described(number: int) -> dict[str, Any]:
    """A tool as wordy as those of public servers."""
    fields = {
        name: {"type": "string", "description": f"The {name} of the record, as it is written"}
        for name in ("title", "owner", "project", "status")
    }
    return {
        "name": f"get_record_{number}",
        "description": f"Get record {number} of the archive, with all of its fields and history.",
        "inputSchema": {"type": "object", "properties": fields, "required": ["title"]},
        "annotations": _READ_ONLY,
    }


def _called(name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
    if name == "get_nothing":
        return None
    text = "x" * arguments["bytes"] if name == "get_big" else arguments.get("text", "")
    return {"content": [{"type": "text", "text": text}]}


def _result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "bench", "version": "1"},
            }
        case "tools/list":
            return {"tools": _tools()}
        case "tools/call":
            return _called(params["name"], params["arguments"])
        case _:
            return {}


def main() -> None:
    if sys.argv[1:] == ["hang"]:
        time.sleep(600)
    for line in sys.stdin.buffer:
        message = orjson.loads(line)
        if message.get("id") is None:
            continue
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "server/discover":
            body["error"] = {"code": -32601, "message": "Method not found"}
        else:
            result = _result(message["method"], message.get("params") or {})
            if result is None:
                continue
            body["result"] = result
        sys.stdout.buffer.write(orjson.dumps(body) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
