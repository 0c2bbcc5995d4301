"""A server over stdio whose tool `wait` answers too late: when it was told not to. `seen` tells it.

Standard library only.
"""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {"type": "object"}
TOOLS = [{"name": name, "description": name, "inputSchema": SCHEMA} for name in ("wait", "seen")]
HELLO: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "slow", "version": "1"},
}


def answer(number: object, result: object) -> None:
    write({"jsonrpc": "2.0", "id": number, "result": result})


def write(body: object) -> None:
    sys.stdout.write(f"{json.dumps(body)}\n")
    sys.stdout.flush()


def told(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def main() -> None:
    cancelled: list[object] = []
    for line in sys.stdin:
        message = json.loads(line)
        match message:
            case {"method": "initialize", "id": number}:
                answer(number, HELLO)
            case {"method": "tools/list", "id": number}:
                answer(number, {"tools": TOOLS})
            case {"method": "tools/call", "id": number, "params": {"name": "seen"}}:
                answer(number, told(str(len(cancelled))))
            case {"method": "notifications/cancelled", "params": {"requestId": number}}:
                cancelled.append(number)
                answer(number, told("too late"))
            case {"method": "tools/call"} | {"result": _}:
                continue
            case {"id": number}:
                error = {"code": -32601, "message": "no such method"}
                write({"jsonrpc": "2.0", "id": number, "error": error})
            case _:
                continue


if __name__ == "__main__":
    main()
