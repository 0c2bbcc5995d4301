"""A server whose tools really are listed, and that can be told to die, to hang and to change."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

NAMES = ["echo", "die", "hang", "grow", "pid", "read"]
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(number: object, name: str, arguments: dict[str, Any]) -> None:
    if name == "die":
        os._exit(9)
    if name == "hang":
        time.sleep(60)
    if name == "grow":
        NAMES.append(f"more{len(NAMES)}")
        send(method="notifications/tools/list_changed")
    text = str(os.getpid()) if name == "pid" else arguments.get("text", "")
    text = read(text) if name == "read" else text
    parts = [{"type": "text", "text": text, "x-kept": 1}]
    send(id=number, result={"content": parts, "x-unknown": {"kept": True}})


def read(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as opened:  # noqa: PTH123 - no pathlib is imported here
            return opened.read()
    except OSError as error:
        return type(error).__name__


def serve(number: object, method: str, params: dict[str, Any]) -> None:
    if method == "initialize":
        version = params["protocolVersion"]
        info = {"name": "listed", "version": "1"}
        capabilities = {"tools": {"listChanged": True}}
        result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
        send(id=number, result=result)
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": TEXT} for name in NAMES]
        send(id=number, result={"tools": tools})
    elif method == "tools/call":
        call(number, params["name"], params.get("arguments") or {})
    elif method == "ping":
        send(id=number, result={})
    else:
        send(id=number, error={"code": -32601, "message": f"Method not found: {method}"})


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            serve(message["id"], message["method"], message.get("params") or {})
