"""A server over stdio that changes while it runs. Standard library only.

`grow` adds a tool, `alter` describes `echo` by its text, `die` ends the process in its call.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS: dict[str, str] = dict.fromkeys(["echo", "grow", "alter", "die", "pid"], "As it says.")


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(name: str, text: str) -> str:
    match name:
        case "die":
            os._exit(9)
        case "pid":
            return str(os.getpid())
        case "grow" | "alter":
            TOOLS["grown" if name == "grow" else "echo"] = text
            send(method="notifications/tools/list_changed")
        case _:
            pass
    return text


def result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            offered = {"tools": {"listChanged": True}}
            info = {"name": "fickle", "version": "1"}
            version = params["protocolVersion"]
            return {"protocolVersion": version, "capabilities": offered, "serverInfo": info}
        case "tools/list":
            tools = TOOLS.items()
            return {
                "tools": [{"name": n, "description": d, "inputSchema": SCHEMA} for n, d in tools]
            }
        case "tools/call":
            given: dict[str, str] = params.get("arguments") or {}
            said = call(params["name"], given.get("text", ""))
            return {"content": [{"type": "text", "text": said}]}
        case _:
            return {}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked and asked.get("method") == "server/discover":
        send(id=asked["id"], error={"code": -32601, "message": "Method not found"})
    elif "id" in asked and "method" in asked:
        send(id=asked["id"], result=result(asked["method"], asked.get("params") or {}))
